/* What terminal.c (sections, facts, notes) and terminal_table.c (tables) share. */
#ifndef SONDE_TERMINAL_INTERNAL_H
#define SONDE_TERMINAL_INTERNAL_H

#include "render/terminal.h"

enum paint {
    PAINT_NONE,
    PAINT_BOLD,
    PAINT_DIM,
    PAINT_WARM,
    PAINT_HOT,
    PAINT_WARN,
    PAINT_COMMAND,
    PAINT_WORSE,
    PAINT_BETTER
};

struct terminal {
    struct text *out;
    unsigned width;
    bool colour;
};

void terminal_paint(struct terminal *t, enum paint paint, const char *printable);
/* Appends the value as people read it; "-" if it is not known. */
void terminal_value(struct text *out, enum view_kind kind, struct view_value value);
/* The same with a sign, for a column of changes. */
void terminal_change(struct text *out, enum view_kind kind, struct view_value value);
/* Shortens printable UTF-8 to `columns`, with a "…" where it was cut. */
void terminal_shorten(struct text *s, size_t columns, enum view_cut cut);
void terminal_table(struct terminal *t, const struct view_section *s);

#endif
