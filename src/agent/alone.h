/*
 * The agent without a collector, for who knows gperftools: its environment variables are read, and
 * its files are written by the process itself.
 *
 *   alone.c       the variables, names of files, signals that switch; what a program can ask for
 *   alone_cpu.c   CPUPROFILE: samples by a timer of the process, as sums by stack
 *   alone_heap.c  HEAPPROFILE: the heap's cells, after so many bytes and at the end
 *   alone_file.c  writing, by system calls alone
 */
#ifndef SONDE_AGENT_ALONE_H
#define SONDE_AGENT_ALONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/heap.h"

#define ALONE_PATH 512

struct alone {
    bool on;
    char cpu[ALONE_PATH], heap[ALONE_PATH]; /* "": not asked for */
    int cpu_signal, heap_signal;            /* 0: none */
    uint32_t rate;
    bool real_time; /* the clock on the wall, not the CPU's */
    uint64_t allocation_interval, inuse_interval;
};

extern struct alone alone;
extern bool alone_heap_on; /* every allocation looks at it */

/* Whether the variables ask for anything; `variable` looks one up. */
bool alone_read(const char *(*variable)(const char *name));
/* Once the agent runs. */
void alone_start(void);

/* ---- alone_cpu.c: signal-safe */
bool alone_cpu_start(void);
/* Writes what was gathered. */
bool alone_cpu_stop(const char *path);
bool alone_cpu_running(void);

/* ---- alone_heap.c */
void alone_heap_after(uint64_t size); /* an allocation; the gate is BUSY */
bool alone_heap_dump(void);           /* signal-safe; false: another thread does, or no file */

/* ---- alone_file.c: signal-safe */
struct alone_file {
    int fd;
    bool failed;
    size_t used;
    char bytes[4096];
};

bool alone_open(struct alone_file *f, const char *path);
void alone_put(struct alone_file *f, const void *bytes, size_t size);
void alone_text(struct alone_file *f, const char *text);
void alone_number(struct alone_file *f, uint64_t n, unsigned width); /* decimal, filled by spaces */
void alone_address(struct alone_file *f, uint64_t address);          /* " 0x…" */
void alone_maps(struct alone_file *f);                               /* /proc/self/maps */
bool alone_close(struct alone_file *f);

/* `out` becomes name, then separator and number with so many digits, then the end. */
void alone_name(char out[ALONE_PATH + 32], const char *name, const char *separator, uint64_t number,
                unsigned digits, const char *end);

#endif
