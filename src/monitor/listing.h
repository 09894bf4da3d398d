/* Which tasks are shown, and in which order: a flat list, or a tree with children below parents. */
#ifndef SONDE_WATCH_LISTING_H
#define SONDE_WATCH_LISTING_H

#include "monitor/watch.h"

enum listing_sort {
    LISTING_BY_CPU,
    LISTING_BY_MEMORY,
    LISTING_BY_TIME,
    LISTING_BY_IO,
    LISTING_BY_FAULTS,
    LISTING_BY_PID,
    LISTING_BY_NAME,
    LISTING_BY_NET,
    LISTING_SORTS
};

struct listing_choice {
    const pid_t *roots; /* these and what they started; NULL for all */
    size_t root_count;
    const char *name;   /* processes whose name or command holds this, and what they started */
    const char *filter; /* only rows whose command holds this */
    enum listing_sort sort;
    bool tree;
    bool kernel; /* the kernel's own threads too */
    bool alone;  /* the chosen ones without what they started */
};

struct listing_row {
    struct watch_task *task;
    unsigned depth;
    bool last; /* of its siblings */
};

struct listing {
    VECTOR(struct listing_row) list;
};

/* Replaces what was there. */
void listing_make(struct listing *r, const struct watch *w, const struct listing_choice *c);
void listing_release(struct listing *r);

#endif
