/* Another process, stopped by ptrace, seen through our unwinder and through libdw's. */
#ifndef SONDE_TEST_PROCESS_H
#define SONDE_TEST_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "unwind/walk.h"

#define PROCESS_DEPTH 512
#define PROCESS_THREADS 64

struct process_stack {
    uint64_t address[PROCESS_DEPTH];
    size_t count;
    struct unwind_end end; /* of our walk; libdw's leaves it empty */
};

/* Starts a program (output to /dev/null), to be ended by process_end. */
pid_t process_start(const char *const argv[]);
void process_end(pid_t pid);

/* Stops all threads; returns how many, their ids in tid. */
size_t process_stop(pid_t pid, pid_t tid[PROCESS_THREADS]);
void process_resume(const pid_t *tid, size_t count);

/* The map of a stopped process, from /proc/pid/maps; rows come from a cache by path. */
void process_map(pid_t pid, struct unwind_map *map);
/* Our walk of a stopped thread, on a copy of `window` bytes of its stack. */
void process_walk(const struct unwind_map *map, pid_t pid, pid_t tid, size_t window,
                  struct process_stack *out);

/* libdw's view of a stopped process, good as long as its mappings stay. */
struct process_libdw;
struct process_libdw *process_libdw_attach(pid_t pid);
void process_libdw_walk(struct process_libdw *libdw, pid_t tid, struct process_stack *out);
void process_libdw_detach(struct process_libdw *libdw);

/* Whether our walk gave what libdw's did. Ours may go on to the outermost frame where libdw's stops
 * short: at a caller that needs rbx, which it loses, and in leaves without rules, such as clone. */
bool process_stack_agrees(const struct process_stack *ours, const struct process_stack *libdw);

#endif
