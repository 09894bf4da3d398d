/* The one mapping behind a struct rows: rows, then wide rules, then expression bytes. */
#ifndef SONDE_UNWIND_ROWS_INTERNAL_H
#define SONDE_UNWIND_ROWS_INTERNAL_H

#include "unwind/rows.h"

struct rows_layout {
    uint32_t rows, wides, expr_size;
};

/* Bytes of rows, wides and expressions together: what follows the header of a cache file too. */
size_t rows_payload(const struct rows_layout *layout);
/* Points out at what lies at `data`; it is nobody's to release. */
void rows_place(const void *data, const struct rows_layout *layout, struct rows *out);
/* A zeroed, writable mapping with out's pointers and counts set. 0 or -ENOMEM. */
int rows_allocate(const struct rows_layout *layout, struct rows *out);
/* Whether every row, rule and expression is well formed, so that a search and a walk can rely on
 * it: for rows that come from a file. */
bool rows_valid(const struct rows *rows);

#endif
