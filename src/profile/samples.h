/*
 * The samples of a profile with their times: a list for each event and thread, packed
 * to about 8 bytes a sample and put aside, so that a profile of any number of samples takes
 * the same memory. Read back in time order: all of them, those of an event or of a thread.
 */
#ifndef SONDE_SAMPLES_H
#define SONDE_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/aside.h"
#include "base/vector.h"

#define SAMPLES_ALL UINT32_MAX /* events, or threads */

struct profile_sample {
    uint64_t time, value;
    uint32_t event, thread, stack;
};

/* A run of samples put aside that can be read on its own. */
struct samples_chunk {
    uint64_t at;
    uint32_t len, count;
};

struct samples_list {
    uint32_t event, thread;
    uint64_t count;
    uint64_t latest; /* time of the newest */
    bool disordered; /* one came with a time before another's */
    VECTOR(struct samples_chunk) chunks;
    VECTOR(uint8_t) open;       /* what is not in a chunk yet */
    uint32_t opened;            /* samples there */
    struct profile_sample last; /* what the next one is coded against */
};

struct samples_event {
    VECTOR(uint32_t) lists; /* by thread: list + 1, 0: none */
    uint64_t count;
};

struct samples {
    uint64_t len; /* samples in all */
    VECTOR(struct samples_list) lists;
    VECTOR(struct samples_event) events;
    struct aside aside;
};

/* A zeroed struct is empty. */
void samples_release(struct samples *s);
void samples_add(struct samples *s, const struct profile_sample *sample);
uint64_t samples_of_event(const struct samples *s, uint32_t event);

/* Where somebody is in one list; private. */
struct samples_run {
    const struct samples_list *list;
    size_t chunk; /* the next one to unpack; chunks.len is the open one */
    uint8_t *bytes;
    size_t at, len, cap;
    struct profile_sample now;
    struct profile_sample *sorted; /* the whole list, if it was in disorder */
    size_t sorted_at;
};

struct samples_cursor {
    const struct samples *from;
    VECTOR(struct samples_run *) runs; /* a heap, the earliest first */
    bool failed;
};

/* Nothing may be added between begin and end. */
void samples_begin(struct samples_cursor *c, const struct samples *s, uint32_t event,
                   uint32_t thread);
bool samples_next(struct samples_cursor *c, struct profile_sample *out);
/* FAULT_SYSTEM if not all could be read back. */
int samples_end(struct samples_cursor *c, struct error *err);

#endif
