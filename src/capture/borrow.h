/*
 * A thread of another process, borrowed for one call: stopped by ptrace, given a signal frame to
 * come back by, and let go. x86-64.
 */
#ifndef SONDE_CAPTURE_BORROW_H
#define SONDE_CAPTURE_BORROW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/error.h"

struct borrowed {
    pid_t pid, tid;
    int signal; /* that came instead of our stop, and is handed on */
    struct user_regs_struct regs;
};

/* Stops the thread; false if it cannot be had just now. `*err` is set where trying again is of no
 * use. Every success is followed by borrow_call or borrow_release. */
bool borrow_stop(struct borrowed *b, pid_t pid, pid_t tid, struct error *err);
/* Lets it go on as it was; a wait that the stop has ended begins anew. */
void borrow_release(struct borrowed *b);

/* Whether it is in a system call that waits, of a kind that neither loader nor allocator makes. */
bool borrow_waits(const struct borrowed *b);
/* ... or in no system call at all. */
bool borrow_runs(const struct borrowed *b);

/* Lets it go on with function(text, second), to which `text` is copied; `restorer` is an
 * rt_sigreturn in its code. On failure it goes on as it was. */
int borrow_call(struct borrowed *b, uint64_t function, const char *text, uint64_t second,
                uint64_t restorer, struct error *err);

#endif
