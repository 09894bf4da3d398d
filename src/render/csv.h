/*
 * The main table of a view as CSV (RFC 4180): a line of column ids, then a line a
 * row; raw numbers, nothing where a value is not known. A text that a spreadsheet
 * would take for a formula (it begins with = + - or @) gets a ' before it.
 */
#ifndef SONDE_CSV_H
#define SONDE_CSV_H

#include "analyze/view.h"
#include "base/text.h"

/* Nothing is written if the view has no such table. */
void csv_write(const struct view *v, struct text *out);

#endif
