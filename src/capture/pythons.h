/*
 * The interpreters of the tree as they are seen from outside: Python stacks for perf's samples of
 * processes without an agent, and for threads that block, which no agent could ask; who holds an
 * interpreter's lock while others wait for it; what threads are called. A stack is read when the
 * word of a sample has come, some microseconds late, and is used only if it fits the native stack
 * that the kernel copied.
 */
#ifndef SONDE_PYTHONS_H
#define SONDE_PYTHONS_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/perf_record.h"
#include "capture/tasks.h"

struct session;
struct pythons;

struct pythons *pythons_new(void);
void pythons_free(struct pythons *p); /* NULL-safe */

/* Reads the stacks that samples which have come since the last call ask for. */
void pythons_scan(struct session *s);
/* Has the kernel copy the frames of the thread at its samples; false if it cannot. */
bool pythons_expect(struct session *s, pid_t pid, pid_t tid);
/* Looks after the names of threads. */
void pythons_tick(struct session *s, uint64_t now);
/* The process has mapped a file. */
void pythons_on_map(struct session *s, pid_t pid, const char *path);
/* The process ended or runs another program since then. */
void pythons_forget(struct session *s, pid_t pid, uint64_t time);

/* What is known of a sample beside the kernel's word. */
struct pythons_sample {
    bool read;    /* there is a Python stack, or it is known that there is none */
    uint64_t cpu; /* ns that its process had run when it was read; 0: not known */
    bool gil;     /* the thread held the lock */
    bool for_gil;
    pid_t holder; /* of what it waits for, 0: not known */
    uint32_t holder_stack;
};

/* The stack of a sample (of a thread that leaves the CPU: `blocks`), with Python frames where they
 * could be had. */
uint32_t pythons_stack(struct session *s, struct thread *t, const struct perf_record *r,
                       bool blocks, struct pythons_sample *out);

/* What a sample of a clock stands for that would be `period`. Whoever is read at once (`cpu` is not
 * 0 then) is often interrupted for it: where others wait for the CPU it goes on later, is met more
 * often than it runs, and only the kernel's count of its time tells by how much. */
uint64_t pythons_weigh(struct session *s, pid_t pid, uint64_t cpu, uint64_t period);

void pythons_finish(struct session *s);

#endif
