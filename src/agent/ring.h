/*
 * The producing end of a thread's ring (wire/segment.h draws it). Called by the thread itself, in
 * normal code or in a signal handler that may have interrupted normal code doing the same.
 * Never waits: no room means that the record is dropped and counted.
 */
#ifndef SONDE_AGENT_RING_H
#define SONDE_AGENT_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"

/* Whether a record of `words` payload words would find room now. */
bool ring_has_room(const struct agent_thread *t, size_t words);

/* Writes a record of two pieces and counts it as recorded or lost; `value` is what it stands for,
 * for the sums. The thread must have a slot. */
bool ring_put(struct agent_thread *t, enum segment_record type, uint64_t value,
              const uint64_t *head, size_t head_words, const uint64_t *body, size_t body_words);

/* Counts a record that was generated but not even tried. */
void ring_drop(struct agent_thread *t, enum segment_record type, uint64_t value);

#endif
