/* Which tasks are shown, and in which order: a flat list, or a tree with children below parents. */
#ifndef SONDE_WATCH_ROWS_H
#define SONDE_WATCH_ROWS_H

#include "watch/watch.h"

enum rows_sort {
    ROWS_BY_CPU,
    ROWS_BY_MEMORY,
    ROWS_BY_TIME,
    ROWS_BY_IO,
    ROWS_BY_FAULTS,
    ROWS_BY_PID,
    ROWS_BY_NAME,
    ROWS_SORTS
};

struct rows_choice {
    const pid_t *roots; /* these and what they started; NULL for all */
    size_t root_count;
    const char *name;   /* processes whose name or command holds this, and what they started */
    const char *filter; /* only rows whose command holds this */
    enum rows_sort sort;
    bool tree;
    bool kernel; /* the kernel's own threads too */
};

struct rows_row {
    struct watch_task *task;
    unsigned depth;
    bool last; /* of its siblings */
};

struct rows {
    VECTOR(struct rows_row) list;
};

/* Replaces what was there. */
void rows_make(struct rows *r, const struct watch *w, const struct rows_choice *c);
void rows_release(struct rows *r);

#endif
