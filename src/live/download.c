/* The recording so far; see download.h. */
#include "live/download.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "formats/open.h"
#include "symbol/profile.h"

static int write_to_fd(void *context, const void *data, size_t len, struct error *err)
{
    if (io_write(*(const int *)context, data, len) == 0)
        return 0;
    return error_errno(err, FAULT_SYSTEM, "no memory for the file");
}

/* Names are put into a recording when it ends: until then they are looked up for who asks. */
static int load(const char *path, const struct format *format, struct profile *p, struct error *err)
{
    struct load_options how = {.hide_interpreter = true,
                               .keep_samples = format->timed,
                               .samples_apart = format->timed && !format->summed};
    struct symbol_summary summary;
    struct symbol_options options = {.workers = 1};
    int rc = profile_open(path, &how, p, err);
    if (!rc && !p->symbolized)
        symbol_profile(p, NULL, false, &options, &summary, NULL);
    return rc ? rc : profile_settle(p, err);
}

static int export(const char *path, const struct format *format, int fd, struct error *err)
{
    struct profile p;
    struct sink sink;
    profile_init(&p);
    int rc = load(path, format, &p, err);
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

static void send_export(struct http_request *q, const char *path, const struct format *format)
{
    struct error err = {0};
    int fd = memfd_create("sonde-download", MFD_CLOEXEC);
    int rc = fd < 0 ? error_errno(&err, FAULT_SYSTEM, "no memory for the file")
                    : export(path, format, fd, &err);
    if (rc) {
        if (fd >= 0)
            close(fd);
        http_reply_fault(q, &err);
        return;
    }
    lseek(fd, 0, SEEK_SET);
    name_file(q, path, format->extensions && *format->extensions ? *format->extensions : ".txt");
    http_reply_file(q, fd, format->binary ? "application/octet-stream" : "text/plain");
}

void download_answer(struct http_request *q, const char *path)
{
    const char *name = http_query(q, "format");
    const struct format *format = name ? format_find(name) : NULL;
    if (!name || strcmp(name, "sonde") == 0) {
        send_file(q, path);
    } else if (!format || !format->write) {
        struct text names = TEXT_INIT;
        format_names(true, &names);
        http_reply_error(q, 400, "'%s' is no format that can be written: there are sonde, %s", name,
                         names.data);
        text_release(&names);
    } else {
        send_export(q, path, format);
    }
}
