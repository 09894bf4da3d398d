/*
 * Which part of a profile a view is over: events, processes, threads, and the
 * stacks that contain a function or a module. Decided once, for every event, thread and
 * stack; after that a look at a cell is three loads.
 *
 * Time is not chosen here: samples outside a range are left out by the loader.
 */
#ifndef SONDE_SELECTION_H
#define SONDE_SELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "profile/profile.h"

struct selection_options {
    /* Names or globs of events; "wall" is cpu and every off-cpu. None: cpu, or the first there is.
     */
    const char *const *events;
    size_t event_count;
    const int32_t *pids; /* none: all */
    size_t pid_count;
    const char *const *threads; /* thread ids, or globs of names; none: all */
    size_t thread_count;
    const char *function; /* part of a name or an extended regular expression; NULL: all stacks */
    const char *module;   /* part of a path, or a glob of the module's name; NULL: all */
    bool no_inline;       /* inlined functions count as the function they were put into */
};

struct selection {
    const struct profile *profile; /* must outlive the selection */
    bool *event, *thread;          /* by index: chosen? */
    bool *stack;                   /* by index: contains what was asked for; NULL: all do */
    bool no_inline;
    bool waits; /* on-CPU and off-CPU time together */
    enum value_unit unit;
    struct text label;     /* what is counted: "cpu", "wall", "off-cpu:io, off-cpu:lock" */
    uint64_t value, count; /* sums over what was chosen */
};

/* `o` may be NULL. The sentence of a fault says what there is to choose from. Release in every
 * case. A profile without events gives an empty selection. */
int selection_init(struct selection *s, const struct profile *p, const struct selection_options *o,
                   struct error *err);
void selection_release(struct selection *s);
/* Computes the sums anew, for who has changed which threads or stacks are chosen. */
void selection_add_up(struct selection *s);

/* The next chosen cell at or after *cursor (start at 0), or NULL at the end. */
const struct profile_cell *selection_next(const struct selection *s, size_t *cursor);
/* Is (event, thread, stack), of a cell or a sample, in the selection? */
static inline bool selection_has(const struct selection *s, uint32_t event, uint32_t thread,
                                 uint32_t stack)
{
    return s->event[event] && s->thread[thread] && (!s->stack || s->stack[stack]);
}

/* Is there nothing in it? What a stack held at a peak has a value and no count. */
static inline bool selection_empty(const struct selection *s)
{
    return !s->value && !s->count;
}
/* What its counts count, many of it: "samples", "allocations", "blocks". */
const char *selection_noun(const struct selection *s);
/* One of it, or many. */
const char *selection_noun_of(const struct selection *s, uint64_t count);
/* The same threads and stacks with another event, of which there may be none. Release it. */
void selection_init_event(struct selection *s, const struct selection *like, const char *event);

/* Time spent waiting, not running? */
bool selection_event_waits(const struct profile *p, uint32_t event);

#endif
