/*
 * The collector's side of the agents: a session socket that processes of the tree report to, and
 * the segments they hand over. Call agents_drain when agents_fd is readable and every 100 ms or
 * so; it tells the sink, in this order for each process: process, mapping…, thread, sample…,
 * thread_end, process_end. Times are CLOCK_MONOTONIC ns.
 *
 * A target may write anything into its segment. Everything is copied, then checked: a forged one
 * yields nonsense numbers for its own process at worst, within bounds of memory and time.
 */
#ifndef SONDE_AGENTS_H
#define SONDE_AGENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "capture/nesting.h"
#include "wire/heap.h"
#include "wire/segment.h"

/* Lists of patterns are separated by colons; any of the texts may be NULL. */
struct agents_trace {
    bool calls;        /* with neither these nor lines: spans that programs mark themselves */
    bool no_builtins;  /* no C functions that Python calls */
    const char *lines; /* functions whose lines are counted; NULL: none */
    const char *only, *skip;
    uint32_t depth;      /* 0: no limit */
    uint32_t ring_words; /* 0 for the usual */
    bool rss;            /* resident memory at each line */
    bool tsc;
};

struct agents_options {
    const char *library;              /* libsonde.so */
    const char *preload;              /* LD_PRELOAD that the target had anyway, or NULL */
    const char *rows;                 /* folder of compiled unwind rows, or NULL */
    int pack;                         /* descriptor of those at hand; 0: none */
    uint32_t rate;                    /* samples a second of CPU; 0: no samples */
    uint32_t ring_bytes;              /* of each thread, 0 for the usual size */
    bool python_only;                 /* processes without Python stay as they are */
    bool single;                      /* and so do children that a process forks */
    const struct agents_trace *trace; /* what to trace, or NULL */
    enum heap_mode heap;
    uint64_t
        heap_interval;    /* of sampled mode, and the bytes of addresses for a process's tables; */
    uint64_t heap_memory; /* 0 for the usual */
    bool pymalloc;        /* each object of Python's too */
};

struct agents_process {
    pid_t pid, parent;
    struct nesting nesting; /* what its threads are called here */
    uint32_t epoch;         /* 0, then one more after each exec */
    uint64_t start;         /* of this image, or of the fork */
    uint64_t interval;
    uint32_t flags; /* enum segment_flag, may gain bits until the end */
    uint32_t threads_refused;
    bool execed;  /* at process_end: it goes on in another image */
    bool damaged; /* the segment broke its own rules: forged, or overwritten by the target */
    void *user;   /* the sink's, from `process` on */
    void *trace_user;
    const void *trace; /* its trace segment (wire/trace.h), the same */
    size_t trace_size;
    const void *heap; /* its heap segment (wire/heap.h), once it came; believe nothing in it */
    size_t heap_size;
    uint32_t python;       /* its interpreter, as in the segment's header; 0: none (yet) */
    uint32_t python_lines; /* enum cpython_lines */
    uint64_t python_eval, python_eval_end; /* the interpreter loop */
    void *python_user;                     /* the sink's as well */
    uint64_t cost;    /* ns that the agent has spent in its threads; in `round`, since the last */
    const char *comm; /* bytes from the target: any but NUL */
    const char *exe;
};

struct agents_mapping {
    uint64_t start, end;   /* executable, in the process */
    uint64_t bias, offset; /* address - vaddr in the file; file offset of start */
    uint64_t since;
    const char *path; /* "" when it is unknown; "[vdso]" */
    const uint8_t *build_id;
    size_t build_id_len;
};

struct agents_thread {
    pid_t tid;
    uint64_t start, end; /* end is 0 while it runs */
    char name[16];
    bool sampled; /* it has a timer */
    /* At thread_end: generated = recorded + lost, and recorded is what the sink was given. */
    uint64_t generated, recorded, lost;
    uint64_t value, value_lost; /* CPU ns */
    uint64_t cost;              /* ns spent by the agent in this thread */
    void *user;
};

struct agents_sample {
    uint64_t time, value; /* value: CPU ns since the thread's previous sample */
    const uint64_t *address;
    size_t count;           /* innermost first; out[0] is exact, the others are return addresses */
    size_t interrupted;     /* the other exact one, see unwind/walk.h; or 0 */
    uint8_t reason;         /* enum unwind_reason */
    uint8_t flags;          /* enum segment_sample_flag */
    const uint64_t *kernel; /* addresses, innermost first */
    size_t kernel_count;
    const uint64_t *python; /* frames, two words each: see wire/segment.h */
    size_t python_count;
    bool python_whole;
};

/* What Python code an address means from now on, in one thread. Bytes of the target: any. */
struct agents_code {
    uint64_t code, stamp;
    int32_t first_line;
    const char *name, *path; /* without NULs within or at the end */
    size_t name_len, path_len;
    const uint8_t *table;
    uint32_t table_len;
};

/* Any of these may be NULL. */
struct agents_sink {
    void (*process)(void *context, struct agents_process *p);
    /* New or changed; replaces what was in its range, as mmap does. */
    void (*mapping)(void *context, struct agents_process *p, const struct agents_mapping *m);
    void (*thread)(void *context, struct agents_process *p, struct agents_thread *t);
    void (*code)(void *context, struct agents_process *p, struct agents_thread *t,
                 const struct agents_code *c);
    void (*sample)(void *context, struct agents_process *p, struct agents_thread *t,
                   const struct agents_sample *s);
    /* The thread is not sampled since t->end, or again if that is 0: it is about to exec. */
    void (*paused)(void *context, struct agents_process *p, struct agents_thread *t);
    void (*thread_end)(void *context, struct agents_process *p, struct agents_thread *t);
    void (*process_end)(void *context, struct agents_process *p);
    /* The process has handed over its heap segment: p->heap, until process_end. */
    void (*heap)(void *context, struct agents_process *p);
    /* The process's header was read again: p->flags and what else may have changed. */
    void (*round)(void *context, struct agents_process *p);
    /* ... its trace segment: p->trace. */
    void (*trace)(void *context, struct agents_process *p);
    /* A process that is not observed; `why` is a clause for the user. */
    void (*refused)(void *context, pid_t pid, const char *why);
};

struct agents;

int agents_new(const struct agents_options *options, struct agents **out, struct error *err);
void agents_free(struct agents *a); /* NULL-safe; what was not drained is gone */

/* "K=V" strings for the target's environment, NULL-terminated; they live as long as `a`. */
const char *const *agents_environment(const struct agents *a);

int agents_fd(const struct agents *a); /* to poll for reading */
void agents_drain(struct agents *a, const struct agents_sink *sink, void *context);
/* The last call: drains, then ends every process that is left. */
void agents_finish(struct agents *a, const struct agents_sink *sink, void *context);

/* The page that all processes of a session with a heap share, or NULL. Any of them may have written
 * anything to it. */
struct heap_tree *agents_tree(const struct agents *a);

size_t agents_processes(const struct agents *a); /* alive now */

/* Another interval between two samples of a thread, CPU ns, for all processes; each thread takes it
 * up at its next sample. */
void agents_set_interval(struct agents *a, uint64_t interval);
/* Each thread of the process is sampled once more, then no more: `paused` tells when. */
void agents_hand_over(struct agents *a, pid_t pid);

#endif
