/* What a callgrind file says (callgrind_read.c), and how stacks are made of it
 * (callgrind_stacks.c). */
#ifndef SONDE_CALLGRIND_INTERNAL_H
#define SONDE_CALLGRIND_INTERNAL_H

#include "formats/import.h"

#define CALLGRIND_EVENTS_MAX 64
#define CALLGRIND_ENTRIES_MAX ((size_t)1 << 24)

struct callgrind_function {
    uint32_t name, file, object; /* strings */
};

/* Costs at a line of a function: its own, or those of a call from there. */
struct callgrind_entry {
    uint32_t function, line;
    uint32_t callee; /* PROFILE_NONE: its own */
    uint32_t file;   /* of the line: the function's, or one whose code was put into it */
    size_t values;   /* first of as many as there are events */
};

struct callgrind {
    struct import im;
    VECTOR(struct callgrind_function) functions;
    VECTOR(struct callgrind_entry) entries;
    VECTOR(uint64_t) values;
    struct map index;       /* (name, object) -> function */
    struct map entry_index; /* (function, callee) and line -> entry */
    uint32_t events[CALLGRIND_EVENTS_MAX];
    size_t event_count;
    int32_t pid; /* 0: unknown */
};

/* Makes cells of all that was read. */
int callgrind_stacks(struct callgrind *c, struct error *err);

#endif
