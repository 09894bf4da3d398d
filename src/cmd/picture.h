/* Where `graph` and `diff` put a picture, and in which of the two forms. */
#ifndef SONDE_PICTURE_H
#define SONDE_PICTURE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"
#include "render/flame.h"
#include "render/page.h"

enum picture_format { PICTURE_BY_NAME, PICTURE_SVG, PICTURE_HTML };
extern const char *const picture_formats[]; /* as typed, ended by NULL */

/* What the name of the file, or --format, asks for. */
int picture_format(const char *path, enum picture_format format, bool *html, struct error *err);
/* Draws into what -o names; see base/output.h. 0, a fault, or the status of a command that nobody
 * reads any more. */
int picture_write(const char *path, const struct flame_picture *picture, bool html,
                  struct error *err);
int picture_write_page(const char *path, const struct profile *p, const struct profile *base,
                       const struct page_options *o, struct error *err);
/* A picture that is made already, or what belongs to one. */
int picture_write_text(const char *path, const struct text *content, struct error *err);

#endif
