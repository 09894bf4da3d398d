/* A view's tables and notes as Markdown, for reviews and logs of continuous integration. */
#ifndef SONDE_MARKDOWN_H
#define SONDE_MARKDOWN_H

#include "analyze/view.h"
#include "base/text.h"

void markdown_write(const struct view *v, struct text *out);

#endif
