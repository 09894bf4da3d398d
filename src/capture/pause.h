/*
 * A thread stopped for as long as it takes to copy its registers and stack, and to read its Python
 * frames: `attach --pause`. What is read so is of one moment. Every stop is measured from the last
 * look at which the thread still ran, so what is told is what it can have been at most.
 */
#ifndef SONDE_PAUSE_H
#define SONDE_PAUSE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vector.h"
#include "capture/borrow.h"
#include "capture/perf_record.h"

#define PAUSE_REGS 17
#define PAUSE_STACK 61440

/* Of a session; zeroed at first. */
struct pauses {
    uint64_t count, missed, longest, sum; /* stops, and those that did not come about; ns */
    uint64_t over;                        /* longer than PAUSE_LIMIT */
    VECTOR(pid_t) owed;                   /* asked to stop, and still to be let go when they do */
};

#define PAUSE_LIMIT 2000000ull /* ns */

/* What was copied: a record as if a sample had met the thread there. */
struct paused {
    struct perf_record record;
    uint64_t regs[PAUSE_REGS];
    uint8_t stack[];
};

/* Stops the thread; false if that cannot be just now. Then pause_end, soon. */
bool pause_begin(struct pauses *p, struct borrowed *b, pid_t pid, pid_t tid, uint64_t *since);
/* The stopped thread as a copy of `like` at that place; freed by the caller. NULL if it is in the
 * kernel: then `like` knows more. */
struct paused *pause_copy(const struct borrowed *b, const struct perf_record *like);
void pause_end(struct pauses *p, struct borrowed *b, uint64_t since);

/* Lets go who came to a stop late. */
void pause_settle(struct pauses *p);
void pauses_release(struct pauses *p);

#endif
