/* A small segment in ordinary memory, with a thread that writes to it as the agent does. */
#ifndef SONDE_TESTS_MADE_SEGMENT_H
#define SONDE_TESTS_MADE_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"

#define MADE_SLOTS 4
#define MADE_RING 4096

struct made_segment {
    void *base;
    size_t size;
    struct segment_header *header;
    struct segment_module *modules;
    struct segment_thread *slots;
    struct segment_layout layout;
};

void made_segment_init(struct made_segment *m);
void made_segment_release(struct made_segment *m);

/* Slot `index` taken by a new thread; *t then writes to it with agent/ring.h. */
void made_segment_thread(struct made_segment *m, uint32_t index, struct agent_thread *t);

/* A sample of `count` addresses made from `seed`, so that a reader can check it. */
bool made_segment_put(struct agent_thread *t, uint64_t seed, uint16_t count);
#define MADE_ADDRESS(seed, i) ((seed)*1000003u + (i)*7919u + 1)

#endif
