/*
 * How an agent finds its collector and what it says: the environment variables that the collector
 * gives its child, and the few datagrams that each process sends to the session's socket
 * (AF_UNIX, SOCK_SEQPACKET). A segment's memfd rides along as SCM_RIGHTS. There is no answer.
 */
#ifndef SONDE_WIRE_SESSION_H
#define SONDE_WIRE_SESSION_H

#include <stdint.h>

#define SESSION_ADDRESS "SONDE_SESSION"       /* "@name" (abstract) or a path; without it: inert */
#define SESSION_RATE "SONDE_SESSION_RATE"     /* samples a second of CPU time, 0: none */
#define SESSION_RING "SONDE_SESSION_RING"     /* bytes of a thread's ring, a power of two */
#define SESSION_ROWS "SONDE_SESSION_ROWS"     /* folder of compiled unwind rows */
#define SESSION_PACK "SONDE_SESSION_PACK"     /* a file to map: struct rows_pack */
#define SESSION_ONLY "SONDE_SESSION_ONLY"     /* "python": other processes are left alone */
#define SESSION_SINGLE "SONDE_SESSION_SINGLE" /* set: children that are forked are left alone */
#define SESSION_FILTERS                                                                            \
    "SONDE_SESSION_FILTERS" /* seccomp filters that the collector lives under                      \
                             */

/* The tracer: what it writes ("calls", "builtins": C functions with them, "lines"; with commas; or
 * "spans": only what programs say themselves), and by which clock. Lists of patterns are separated
 * by colons. */
#define SESSION_TRACE_WHAT "SONDE_SESSION_TRACE"
#define SESSION_TRACE_CLOCK "SONDE_SESSION_TRACE_CLOCK" /* "tsc", or CLOCK_MONOTONIC */
#define SESSION_TRACE_RING "SONDE_SESSION_TRACE_RING"   /* words of a thread's ring */
#define SESSION_TRACE_DEPTH "SONDE_SESSION_TRACE_DEPTH" /* deepest call that is written */
#define SESSION_TRACE_ONLY "SONDE_SESSION_TRACE_ONLY"   /* paths of Python files */
#define SESSION_TRACE_SKIP "SONDE_SESSION_TRACE_SKIP"
#define SESSION_LINES_RSS "SONDE_SESSION_LINES_RSS" /* resident memory at each of them */
#define SESSION_LINES "SONDE_SESSION_LINES"         /* module.function whose lines are counted */

/* The heap: "exact" or "sampled"; without it malloc is left alone. */
#define SESSION_HEAP_MODE "SONDE_SESSION_HEAP"
#define SESSION_HEAP_INTERVAL "SONDE_SESSION_HEAP_INTERVAL" /* mean bytes between two samples */
#define SESSION_HEAP_MEMORY "SONDE_SESSION_HEAP_MEMORY"     /* bytes of addresses for the tables */
#define SESSION_HEAP_TREE "SONDE_SESSION_HEAP_TREE"         /* a file to map: struct heap_tree */

#define SESSION_PYMALLOC "SONDE_SESSION_PYMALLOC" /* each object of Python's, not only arenas */

#define SESSION_MAGIC 0x316573736e6f73ull /* "sonsse1" */
#define SESSION_VERSION 1
#define SESSION_RATE_DEFAULT 100
#define SESSION_RATE_MAX 10000
#define SESSION_RING_DEFAULT 65536

enum session_kind {
    SESSION_SEGMENT = 1, /* here is my segment */
    SESSION_HEAP = 3,    /* here is my heap's; the segment came before */
    SESSION_TRACE = 4,   /* the same for what is traced */
    SESSION_REFUSED = 2, /* this process is not observed, `reason` says why */
};

enum session_reason {
    SESSION_NO_REASON = 0,
    SESSION_NO_MEMFD = 1,    /* memfd_create or its seals were refused */
    SESSION_LIMIT_FSIZE = 2, /* RLIMIT_FSIZE is smaller than any segment */
    SESSION_NO_MEMORY = 3,   /* the segment could not be mapped */
    SESSION_NO_WIPE = 4,     /* MADV_WIPEONFORK is missing: Linux before 4.14 */
    SESSION_NO_HEAP = 5,     /* the heap's segment could not be made */
    SESSION_PYTHON = 6,      /* a Python that cannot be read: `error` is -enum cpython_fault */
    SESSION_NO_TRACE = 7,    /* the trace's segment could not be made */
    SESSION_OWN_MALLOC = 8,  /* the program defines malloc itself: its calls do not come by us */
    SESSION_REASONS
};

struct session_hello {
    uint64_t magic;
    uint32_t version;
    uint32_t kind;
    uint32_t reason;
    int32_t error; /* errno with reason, or 0 */
};

#endif
