/* Counts as a table that users of `perf stat` know. */
#ifndef SONDE_COUNTS_TEXT_H
#define SONDE_COUNTS_TEXT_H

#include "base/text.h"
#include "profile/counts.h"
#include "render/terminal.h"

void counts_write(const struct counts *c, struct terminal_style style, struct text *out);
/* The newest interval; the first one with a heading. */
void counts_write_interval(const struct counts *c, struct text *out);

#endif
