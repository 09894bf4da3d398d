/* The recording so far; see download.h. */
#include "live/download.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "formats/open.h"
#include "render/page.h"
#include "symbol/profile.h"

static int write_to_fd(void *context, const void *data, size_t len, struct error *err)
{
    if (io_write(*(const int *)context, data, len) == 0)
        return 0;
    return error_errno(err, FAULT_SYSTEM, "no memory for the file");
}

/* Names are put into a recording when it ends: until then they are looked up for who asks. */
static int load(const char *path, const struct load_options *how, struct profile *p,
                struct error *err)
{
    struct symbol_summary summary;
    struct symbol_options options = {.workers = 1};
    int rc = profile_open(path, how, p, err);
    if (!rc && !p->symbolized)
        symbol_profile(p, NULL, false, &options, &summary, NULL);
    return rc ? rc : profile_settle(p, err);
}

static int export(const char *path, const struct format *format, int fd, struct error *err)
{
    struct profile p;
    struct sink sink;
    struct load_options load_how = {.hide_interpreter = true,
                                    .keep_samples = true,
                                    .keep_spans = format->timed,
                                    .samples_apart = true};
    profile_init(&p);
    int rc = load(path, &load_how, &p, err);
    if (!rc) {
        struct export_options how = {.event = PROFILE_NONE};
        sink_init(&sink, write_to_fd, &fd);
        rc = format->write(&p, &how, &sink, err);
        if (!rc)
            rc = sink_finish(&sink, err);
        sink_release(&sink);
    }
    profile_release(&p);
    return rc;
}

static int page_piece(void *context, const char *data, size_t len)
{
    return io_write(*(int *)context, data, len) < 0 ? FAULT_SYSTEM : 0;
}

/* The page as a file that needs no server. */
static int export_page(const char *path, int fd, struct error *err)
{
    struct profile p;
    struct load_options how = {.hide_interpreter = true, .keep_samples = true, .keep_spans = true};
    profile_init(&p);
    int rc = load(path, &how, &p, err);
    if (!rc) {
        page_prepare(&p);
        if (page_html(&p, NULL, &(struct page_options){.sources = true}, page_piece, &fd))
            rc = error_errno(err, FAULT_SYSTEM, "cannot write the page");
    }
    profile_release(&p);
    return rc;
}

static void name_file(struct http_request *q, const char *path, const char *extension)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t len = strlen(base);
    if (text_ends(base, ".sonde"))
        len -= 6;
    struct text name = TEXT_INIT;
    text_add(&name, "attachment; filename=\"");
    for (size_t i = 0; i < len; i++)
        text_add_char(&name, base[i] <= ' ' || strchr("\"\\/;", base[i]) ? '-' : base[i]);
    text_format(&name, "%s\"", extension);
    http_reply_header(q, "Content-Disposition", name.data);
    text_release(&name);
}

static void send_file(struct http_request *q, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        http_reply_error(q, 500, "the recording cannot be read");
        return;
    }
    name_file(q, path, ".sonde");
    http_reply_file(q, fd, "application/octet-stream");
}

/* `format` NULL: the page. */
static void send_export(struct http_request *q, const char *path, const struct format *format)
{
    struct error err = {0};
    int fd = memfd_create("sonde-download", MFD_CLOEXEC);
    int rc = fd < 0   ? error_errno(&err, FAULT_SYSTEM, "no memory for the file")
             : format ? export(path, format, fd, &err)
                      : export_page(path, fd, &err);
    if (rc) {
        if (fd >= 0)
            close(fd);
        http_reply_fault(q, &err);
        return;
    }
    lseek(fd, 0, SEEK_SET);
    const char *const *ends = format ? format->extensions : NULL;
    name_file(q, path, !format ? ".html" : ends && *ends ? *ends : ".txt");
    http_reply_file(q, fd, !format || format->binary ? "application/octet-stream" : "text/plain");
}

void download_names(struct text *out)
{
    text_add(out, "sonde, page, ");
    format_names(true, out);
}

void download_answer(struct http_request *q, const char *path)
{
    const char *name = http_query(q, "format");
    const struct format *format = name ? format_find(name) : NULL;
    if (!name || strcmp(name, "sonde") == 0) {
        send_file(q, path);
    } else if ((!format || !format->write) && strcmp(name, "page") != 0) {
        struct text names = TEXT_INIT;
        download_names(&names);
        http_reply_error(q, 400, "'%s' is no format that can be written: there are %s", name,
                         names.data);
        text_release(&names);
    } else {
        send_export(q, path, format);
    }
}
