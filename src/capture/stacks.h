/*
 * From registers and a copy of the stack to a stack of the recording: unwinds, finds the
 * module of each address, and hands frames and nodes to the writer. Stacks that could not
 * be followed to their end begin at a frame "[cut]" and are counted.
 */
#ifndef SONDE_STACKS_H
#define SONDE_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/module.h"
#include "capture/perf_record.h"
#include "capture/space.h"
#include "recording/writer.h"

#define STACK_DEPTH_MAX 16384

struct stacks {
    struct writer *writer;
    struct modules *modules;
    uint32_t cut_frame; /* "[cut]" */
    uint64_t whole, cut;
    uint64_t address[STACK_DEPTH_MAX];
};

void stacks_init(struct stacks *s, struct writer *writer, struct modules *modules);

/* Only the walk: what it found is in s->address, innermost first. False if there is no stack of the
 * user's. */
struct stacks_walk {
    size_t count, interrupted;
    bool whole;
};
bool stacks_walk(struct stacks *s, const struct space *space, const struct perf_record *r,
                 struct stacks_walk *out);

/* The stack of addresses that were unwound elsewhere, innermost first; `exact` tells that the first
 * is an instruction pointer and the others return addresses. */
uint32_t stacks_of_addresses(struct stacks *s, const struct space *space, const uint64_t *address,
                             size_t count, size_t interrupted, bool complete);

/* The pieces of it: where a stack begins that was followed to its end or not (and is counted so);
 * the frame of an address. */
uint32_t stacks_root(struct stacks *s, bool complete);
uint32_t stacks_add_kernel(struct stacks *s, uint32_t stack, const uint64_t *address, size_t count);
uint32_t stacks_user_frame(struct stacks *s, const struct space *space, uint64_t address,
                           bool is_return);

#endif
