/*
 * Debug files from debuginfod servers, only where the options allow it. Downloads are capped, kept
 * under the user's cache folder by build-id, and checked like any other file. An empty file there
 * remembers for a day that no server had it.
 */
#include "symbol/symbol_internal.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/io.h"
#include "base/memory.h"
#include "base/text.h"

#define DOWNLOAD_MAX ((uint64_t)1 << 30)
#define DOWNLOAD_SECONDS 90
#define REFUSED_SECONDS (24 * 3600)

struct download {
    int fd;
    uint64_t left;
};

static size_t take_bytes(char *data, size_t size, size_t n, void *context)
{
    struct download *d = context;
    size_t len = size * n;
    if (len > d->left || io_write(d->fd, data, len) != 0)
        return 0;
    d->left -= len;
    return len;
}

/* 1: there; 0: this server has none; -1: cannot say. */
static int fetch(const struct symbol_options *o, const char *url, int fd)
{
    struct download d = {fd, o->debuginfod_max ? o->debuginfod_max : DOWNLOAD_MAX};
    CURL *curl = curl_easy_init();
    long code = 0;
    if (!curl)
        return -1;
    long seconds = o->debuginfod_seconds ? (long)o->debuginfod_seconds : DOWNLOAD_SECONDS;
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https,file");
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 8L);
    curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, seconds);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, seconds < 10 ? seconds : 10L);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "sonde");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &d);
    CURLcode result = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
    curl_easy_cleanup(curl);
    if (result == CURLE_OK)
        return 1;
    return code == 404 || result == CURLE_FILE_COULDNT_READ_FILE ? 0 : -1;
}

static void add_hex(struct text *t, const uint8_t *id, size_t len)
{
    for (size_t i = 0; i < len; i++)
        text_format(t, "%02x", id[i]);
}

static bool cache_path(const struct module *m, struct text *path)
{
    if (!cache_folder("debuginfod", path))
        return false;
    text_add_char(path, '/');
    add_hex(path, m->build_id, m->build_id_len);
    text_add(path, ".debug");
    return true;
}

/* Asks each server in turn, until one has the file; true if all said that they have none. */
static bool ask_servers(const struct module *m, const char *urls, int fd, bool *found)
{
    bool refused = true;
    char *list = memory_strdup(urls), *save = NULL;
    for (char *url = strtok_r(list, " ", &save); url && !*found; url = strtok_r(NULL, " ", &save)) {
        struct text full = TEXT_INIT;
        size_t len = strlen(url);
        text_format(&full, "%.*s/buildid/", (int)(len && url[len - 1] == '/' ? len - 1 : len), url);
        add_hex(&full, m->build_id, m->build_id_len);
        text_add(&full, "/debuginfo");
        int got = fetch(m->options, full.data, fd);
        *found = got == 1;
        refused = refused && got == 0;
        if (got != 1 && (ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0))
            refused = false;
        text_release(&full);
    }
    free(list);
    return refused;
}

/* To a name of its own first, so that others never see half a file. */
static void download(const struct module *m, const char *urls, const char *path)
{
    struct text part = TEXT_INIT;
    text_format(&part, "%s.%d", path, (int)getpid());
    int fd = open(part.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0) {
        bool found = false;
        bool refused = ask_servers(m, urls, fd, &found);
        close(fd);
        if ((!found && !refused) || rename(part.data, path) != 0)
            unlink(part.data);
    }
    text_release(&part);
}

static bool asked_today(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return false;
    return st.st_size > 0 || time(NULL) - st.st_mtime < REFUSED_SECONDS;
}

static int debuginfod_run(struct module *m, struct error *err)
{
    (void)err;
    if (!m->options->debuginfod || m->options->no_debug_info || m->debug || m->build_id_len < 2 ||
        (m->image && module_has(m->image, ".debug_info")))
        return 0;
    const char *urls =
        m->options->debuginfod_urls ? m->options->debuginfod_urls : getenv("DEBUGINFOD_URLS");
    if (!urls || !*urls)
        return 0;
    struct text path = TEXT_INIT;
    if (cache_path(m, &path)) {
        if (!asked_today(path.data))
            download(m, urls, path.data);
        debug_file_try(m, NULL, path.data);
    }
    text_release(&path);
    return 0;
}

const struct resolver resolver_debuginfod = {"debuginfod", SYMBOL_ELF, debuginfod_run};
