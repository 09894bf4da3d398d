/* Pictures as files; see picture.h. */
#include "cmd/picture.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/text.h"

const char *const picture_formats[] = {"by-name", "svg", "html", NULL};

struct output {
    int fd;
    const char *path;
};

/* Replaces a plain file; anything else that has the name is left as it is. */
static int output_open(struct output *out, const char *path, struct error *err)
{
    struct stat st;
    *out = (struct output){.fd = STDOUT_FILENO, .path = "standard output"};
    if (!strcmp(path, "-"))
        return 0;
    out->path = path;
    out->fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
    if (out->fd < 0 && (errno == ELOOP || errno == ENXIO))
        return error_set(err, FAULT_SYSTEM,
                         "cannot write %s: it is a %s, not a plain file; name another, or use -o - "
                         "and redirect",
                         path, errno == ELOOP ? "symbolic link" : "pipe or socket");
    if (out->fd < 0)
        return error_errno(err, FAULT_SYSTEM, "cannot write %s", path);
    if (fstat(out->fd, &st) || !S_ISREG(st.st_mode)) {
        close(out->fd);
        return error_set(err, FAULT_SYSTEM,
                         "cannot write %s: it is not a plain file; name another, or use -o - and "
                         "redirect",
                         path);
    }
    if (ftruncate(out->fd, 0)) {
        close(out->fd);
        return error_errno(err, FAULT_SYSTEM, "cannot empty %s", path);
    }
    return 0;
}

static int output_write(void *context, const char *data, size_t len)
{
    const struct output *out = context;
    return io_write(out->fd, data, len);
}

/* A reader that has seen enough is no fault. */
static int output_close(struct output *out, int failed, struct error *err)
{
    if (failed && !(errno == EPIPE && out->fd == STDOUT_FILENO)) {
        error_errno(err, FAULT_SYSTEM, "cannot write %s", out->path);
        if (out->fd != STDOUT_FILENO)
            close(out->fd);
        return FAULT_SYSTEM;
    }
    if (out->fd != STDOUT_FILENO && close(out->fd))
        return error_errno(err, FAULT_SYSTEM, "cannot write %s", out->path);
    return 0;
}

int picture_write(const char *path, const struct flame_picture *picture, bool html,
                  struct error *err)
{
    struct output out;
    int result = output_open(&out, path, err);
    if (result)
        return result;
    int failed =
        html ? flame_html(picture, output_write, &out) : flame_svg(picture, output_write, &out);
    return output_close(&out, failed, err);
}

int picture_write_page(const char *path, const struct profile *p, const struct profile *base,
                       const struct page_options *o, struct error *err)
{
    struct output out;
    int result = output_open(&out, path, err);
    if (result)
        return result;
    return output_close(&out, page_html(p, base, o, output_write, &out), err);
}

int picture_write_text(const char *path, const struct text *content, struct error *err)
{
    struct output out;
    int result = output_open(&out, path, err);
    if (result)
        return result;
    return output_close(&out, output_write(&out, content->data, content->len), err);
}

int picture_format(const char *path, enum picture_format format, bool *html, struct error *err)
{
    *html = format == PICTURE_HTML;
    if (format != PICTURE_BY_NAME)
        return 0;
    *html = text_ends(path, ".html") || text_ends(path, ".htm");
    if (!*html && !text_ends(path, ".svg"))
        return error_set(err, FAULT_USAGE,
                         "-o %s does not say which format: end it in .svg or .html, or add "
                         "--format",
                         path);
    return 0;
}
