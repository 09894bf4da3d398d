/*
 * A view for people at a terminal: numbers on the left in columns that line up
 * from section to section, names on the right, everything within the width. Names
 * from outside are made printable here, so that none can move the cursor.
 */
#ifndef SONDE_TERMINAL_H
#define SONDE_TERMINAL_H

#include <stdbool.h>

#include "analyze/view.h"
#include "base/text.h"

#define TERMINAL_WIDTH_MIN 60
#define TERMINAL_WIDTH_DEFAULT 80

struct terminal_style {
    unsigned width; /* less than the minimum is taken as the minimum */
    bool colour;
};

/* What suits descriptor `fd`: its width and colours if it is a terminal and NO_COLOR is not set,
 * otherwise the default width without colours. */
struct terminal_style terminal_style_of(int fd);

void terminal_write(const struct view *v, struct terminal_style style, struct text *out);

#endif
