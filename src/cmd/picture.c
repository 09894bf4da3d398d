/* Pictures as files; see picture.h. */
#include "cmd/picture.h"

#include <signal.h>

#include "base/output.h"
#include "base/text.h"
#include "cmd/command.h"

#define PICTURE_MODE 0644

const char *const picture_formats[] = {"by-name", "svg", "html", NULL};

static int write_piece(void *context, const char *data, size_t len)
{
    return output_write(context, data, len);
}

/* A reader that has seen enough ends us as SIGPIPE would. */
static int finish(struct output *out, int failed, struct error *err)
{
    int rc = failed ? output_failed(out, err) : 0;
    int closed = output_close(out, !rc, rc ? NULL : err);
    if (!out->abandoned)
        return rc ? rc : closed;
    *err = (struct error){0};
    return STATUS_SIGNAL + SIGPIPE;
}

int picture_write(const char *path, const struct flame_picture *picture, bool html,
                  struct error *err)
{
    struct output out;
    int result = output_open(&out, path, true, PICTURE_MODE, err);
    if (result)
        return result;
    int failed =
        html ? flame_html(picture, write_piece, &out) : flame_svg(picture, write_piece, &out);
    return finish(&out, failed, err);
}

int picture_write_page(const char *path, const struct profile *p, const struct profile *base,
                       const struct page_options *o, struct error *err)
{
    struct output out;
    int result = output_open(&out, path, true, PICTURE_MODE, err);
    if (result)
        return result;
    return finish(&out, page_html(p, base, o, write_piece, &out), err);
}

int picture_write_text(const char *path, const struct text *content, struct error *err)
{
    struct output out;
    int result = output_open(&out, path, true, PICTURE_MODE, err);
    if (result)
        return result;
    return finish(&out, write_piece(&out, content->data, content->len), err);
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
