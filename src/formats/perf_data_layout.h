/*
 * Where frames lie in a perf.data file that we write. A profile knows code by module and
 * address in its file, perf by addresses of a process and what is mapped there. So modules are laid
 * out anew, side by side and alike in all processes: what perf and our own reader find at an
 * address is the same place of the same file. Kernel code, code that was compiled at run time and
 * code of nobody knows where keep the addresses that they had.
 */
#ifndef SONDE_PERF_DATA_LAYOUT_H
#define SONDE_PERF_DATA_LAYOUT_H

#include "formats/format.h"

struct layout_frame {
    uint64_t address; /* 0: has none, as frames of Python */
    bool kernel;
};

struct layout_module {
    uint64_t start, end;  /* its mapping; start == end: has none */
    uint64_t offset;      /* of the mapping in the file */
    uint64_t distance;    /* from the file's addresses to those that are written */
    uint64_t first, last; /* of the file's addresses in use, if any is */
    bool used;
};

struct layout {
    struct layout_frame *frames;   /* by frame */
    struct layout_module *modules; /* by module */
};

void layout_init(struct layout *l, const struct profile *p);
void layout_release(struct layout *l);

#endif
