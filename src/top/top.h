/* `sonde top`: a live session in the terminal, or as a table every interval where there is none. */
#ifndef SONDE_TOP_TOP_H
#define SONDE_TOP_TOP_H

#include <stdio.h>

#include "top/feed.h"
#include "top/panel.h"

/* On the terminal that these two are, until q. FAULT_SYSTEM if it cannot be used. */
int top_screen(struct feed *s, FILE *in, FILE *out, struct error *err);
/* As text, `count` times (0: until the end), `rows` of each table, in so many columns. */
int top_plain(struct feed *s, FILE *out, uint64_t count, unsigned rows, unsigned width,
              struct error *err);

#endif
