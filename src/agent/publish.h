/*
 * The process's segment: made, handed to the collector and taken into use. By system calls alone:
 * a forked child does this from inside the handler of its first sample. Signal-safe.
 */
#ifndef SONDE_AGENT_PUBLISH_H
#define SONDE_AGENT_PUBLISH_H

#include <stdint.h>

#include "agent/agent.h"

/* From WAITING to RUNNING, if this thread wins and the collector is there; to OFF when it is gone
 * or the means are missing (which it is told). Does nothing in any other phase. */
void publish_segment(void);

/* Takes a place in the segment for a thread that has none yet; only the thread itself may call
 * this, or whoever starts it before its timer runs. */
void publish_thread(struct agent_thread *t);

/* The thread is over: what it wrote stays until the collector has read it. */
void publish_thread_end(struct agent_thread *t);

struct segment_thread *publish_slot(uint32_t index); /* NULL while there is no segment */

/* From now on the kernel locks whatever is mapped: what these functions map is unlocked again, and
 * gets no page before it is used. */
void publish_unlocked(void);

/* Memory to share: a sealed file of `size` bytes, as large as limits allow (-EFBIG otherwise), and
 * its mapping, which no child inherits. A descriptor or a negative errno; NULL. */
uint64_t publish_file_limit(void);
int publish_memory_file(uint64_t size);
void *publish_map_file(int fd, uint64_t size);

/* A file of the collector's, which nobody can make shorter, and of exactly that size; NULL if that
 * is not what the path leads to (in another namespace it may be anything). */
void *publish_map_sealed(const char *path, uint64_t size, int access);

/* Private memory that madvise has been told of, and that is not dumped; or NULL. The second one a
 * forked child finds zeroed.
 */
void *publish_map_advised(size_t size, int advice);
void *publish_map_wiped(size_t size);

#endif
