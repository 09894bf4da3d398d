/*
 * The figures of one moment, from the document of live/top.h, and what has happened since the
 * moment before. Strings are those of the document, made printable.
 */
#ifndef SONDE_TOP_FIGURES_H
#define SONDE_TOP_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vector.h"

struct figures_process {
    int32_t pid, parent;
    const char *name, *command;
    uint64_t cpu;      /* ns since the beginning */
    double rate;       /* of one CPU, since the moment before; 1 is all of it */
    int64_t rss, heap; /* bytes, -1: unknown */
    uint64_t threads;
    unsigned depth; /* in the tree of processes */
    bool ended;
};

struct figures_thread {
    int32_t pid, tid;
    const char *name;
    uint64_t cpu;
    double rate;
    bool ended;
};

struct figures_function {
    const char *name, *module;
    uint64_t self, total;          /* ns since the beginning */
    uint64_t recent, recent_total; /* since the moment before */
};

struct figures_stack {
    uint64_t key; /* the same from moment to moment, not 0 */
    int32_t pid;
    uint64_t bytes, blocks;
    VECTOR(const char *) frames; /* innermost first */
    size_t python;               /* how many stand before Python code, 0: there is none */
};

struct figures {
    struct arena arena;
    const char *command;
    double seconds; /* of the recording */
    double moment;  /* when the session last looked, on its own clock, in seconds */
    uint64_t samples, lost, cpus;
    bool complete;
    VECTOR(struct figures_process) processes; /* children after their parents */
    VECTOR(struct figures_thread) threads;
    VECTOR(struct figures_function) functions;
    VECTOR(struct figures_function) path; /* outermost first */
    VECTOR(struct figures_stack) stacks;
    uint64_t heap_bytes, heap_blocks, cpu_total, recent_total;
    double rate; /* of all processes */
    int64_t rss; /* of all, or -1 */
};

/* Reads a document; `before` (or NULL) is what differences are taken against. Release in every
 * case. */
int figures_read(struct figures *f, const char *json, size_t len, const struct figures *before,
                 struct error *err);
void figures_release(struct figures *f);

/* "17 processes  17 threads  4,000 samples  lost 0" */
void figures_add_counts(const struct figures *f, struct text *out);

#endif
