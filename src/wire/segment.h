/*
 * The layout of a segment: the memory that the agent inside a process shares with the collector.
 * One sealed memfd a process, made by the agent, handed over once (wire/session.h) and then only
 * mapped. It outlives its process, so what was written is never lost with it.
 *
 *     header | module table | thread slots | rings, one a slot
 *
 * The agent writes everything but `tail` and the step of a slot from ENDED to FREE. The collector
 * believes nothing: it copies, then checks against the layout it computed itself.
 *
 * A ring has one producing thread (whose signal handler may interrupt it between any two
 * instructions) and one consumer. Positions count bytes and never wrap. A record is
 *
 *     word 0   type (8 bits) | length in words, this one included (16) | tag (40)
 *     word 1…  payload
 *
 * The producer reserves by moving `head`, writes the payload, and commits by storing word 0 with
 * its tag: a function of position and generation, so that neither bytes of an earlier lap nor a
 * half-written record can pass for a committed one, and a reader can find the next good one.
 */
#ifndef SONDE_SEGMENT_H
#define SONDE_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEGMENT_MAGIC 0x31676573646e6f73ull /* "sondseg1" */
#define SEGMENT_VERSION 1

#define SEGMENT_SLOTS_MAX 16384u
#define SEGMENT_RING_MIN 4096u
#define SEGMENT_RING_MAX (1u << 24)
#define SEGMENT_MODULES_MAX 4096u

#define SEGMENT_PATH 928
#define SEGMENT_BUILD_ID 20
#define SEGMENT_DEPTH 4096        /* addresses in a sample, at most */
#define SEGMENT_PYTHON_DEPTH 4096 /* Python frames in a sample, at most */
#define SEGMENT_KERNEL_DEPTH 127  /* kernel addresses in a sample, at most */
#define SEGMENT_TEXT_MAX 1024     /* bytes of a name or a path of Python code */
#define SEGMENT_TABLE_MAX 65536   /* bytes of its line table */

/* What the collector should tell the user. */
enum segment_flag {
    SEGMENT_QUIET = 1,         /* seccomp: no system calls any more, so no timers for new threads */
    SEGMENT_SIGNAL_SHARED = 2, /* the program uses the agent's signal as well */
    SEGMENT_SIGNAL_PROF = 4,   /* no free real-time signal, SIGPROF is used */
    SEGMENT_NO_STACK_COPY = 8, /* process_vm_readv is refused: foreign stacks have one frame */
    SEGMENT_MODULES_FULL = 16, /* more modules than the table holds */
    SEGMENT_FEWER_SLOTS = 32,  /* limits of the process allowed only a small segment */
    SEGMENT_TIMERS_REFUSED = 64, /* timer_create failed for some threads */
    SEGMENT_NO_SIGNAL = 128,     /* no signal is free (any more): no samples */
    SEGMENT_CLOCK_REFUSED = 256, /* no perf event for a thread: samples follow the kernel's tick */
};

enum segment_thread_state { SLOT_FREE = 0, SLOT_LIVE = 1, SLOT_ENDED = 2 };

enum segment_record { SEGMENT_SAMPLE = 1, SEGMENT_CODE = 2, SEGMENT_RECORDS };

/* Counters are kept by kind; kind k counts records of type k + 1. */
#define SEGMENT_KINDS 4

/* generated = recorded + lost whenever the thread is outside a producer. */
struct segment_count {
    uint64_t generated, recorded, lost;
    uint64_t value, value_lost; /* sums over generated, over lost */
};

struct segment_header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_size;
    uint64_t size; /* of the whole segment */
    uint32_t slots, ring_bytes, modules;
    uint32_t flags;
    uint32_t pid, parent; /* as the process sees them */
    int32_t clock;        /* of every time: CLOCK_MONOTONIC */
    uint64_t start;
    uint64_t interval; /* CPU ns between two samples of a thread, as asked */
    uint32_t signal;
    uint32_t kinds;                               /* bit k: records of kind k may come */
    uint32_t slots_used;                          /* slots at and above this one were never used */
    uint32_t modules_used;                        /* the same for modules */
    uint32_t modules_version;                     /* moves after each change of the table */
    uint32_t threads_refused;                     /* threads that found no slot or got no timer */
    struct segment_count unplaced[SEGMENT_KINDS]; /* of threads that had no slot */
    uint32_t python;                       /* major << 16 | minor << 8 | micro; 0: none (yet) */
    int32_t python_fault;                  /* why one that is there cannot be read, or 0 */
    uint32_t python_lines;                 /* enum cpython_lines: of the tables in SEGMENT_CODE */
    uint32_t wanted;                       /* the collector's: another interval, µs; 0: as asked */
    uint32_t handed;                       /* the collector's: the kernel samples from now on */
    uint64_t python_eval, python_eval_end; /* the interpreter loop */
    uint32_t exe_len;
    char comm[16];
    char exe[SEGMENT_PATH];
};

/* An executable segment of a loaded module. */
struct segment_module {
    uint32_t sequence; /* odd while the entry is being written */
    uint32_t alive;
    uint64_t start, end;   /* in the process */
    uint64_t bias, offset; /* address - vaddr in the file; file offset of start */
    uint64_t since;        /* when it was first seen here */
    uint32_t path_len;
    uint32_t build_id_len;
    uint8_t build_id[SEGMENT_BUILD_ID];
    char path[SEGMENT_PATH];
};

struct segment_thread {
    uint32_t state;
    uint32_t generation; /* of the slot; each thread that takes it adds one */
    uint32_t tid;
    uint32_t timer; /* whether it is sampled */
    uint64_t start, end;
    char name[16];
    uint64_t head; /* bytes reserved so far */
    uint64_t cost; /* ns spent inside producers */
    struct segment_count count[SEGMENT_KINDS];
    uint64_t tail __attribute__((aligned(64))); /* bytes consumed; the collector's */
} __attribute__((aligned(64)));

/* Payload of SEGMENT_SAMPLE: these words, then the addresses, then the Python frames, two words
 * each: the code object's address; offset of the instruction (32 bits) | flags (32); then the
 * kernel's addresses. Innermost first. What the code object is stands in a SEGMENT_CODE before it
 * in the same ring. */
struct segment_sample {
    uint64_t time;
    uint64_t value; /* CPU ns since the thread's previous sample */
    uint16_t count;
    uint16_t interrupted;   /* index of the first address that a signal interrupted, or 0 */
    uint16_t guessed;       /* steps made by frame pointers */
    uint8_t reason;         /* why the stack ends: enum unwind_reason */
    uint8_t flags;          /* enum segment_sample_flag */
    uint16_t python;        /* Python frames */
    uint16_t shared;        /* outermost addresses that are left out ... */
    uint16_t python_shared; /* ... and Python frames: the ring's sample before has the same */
    uint8_t python_whole;   /* the Python frames reach the outermost one */
    uint8_t kernel;         /* addresses in the kernel, which the thread was in */
};

enum segment_sample_flag {
    SAMPLE_LATE = 1,    /* the signal was held back: value is larger than a few intervals */
    SAMPLE_FOREIGN = 2, /* not on the thread's own stack: a coroutine, an alternate stack */
    SAMPLE_GIL = 4,     /* the thread held its interpreter's lock */
};

/* Payload of SEGMENT_CODE: these words, then the bytes of name, path and line table, filled up to a
 * word. From now on, in this ring, the address means this code. */
struct segment_code {
    uint64_t code;
    uint64_t stamp;
    int32_t first_line;
    uint16_t name, path; /* bytes */
    uint32_t table;
    uint32_t flags; /* co_flags */
};

#define SEGMENT_WORD_BYTES 8u
#define SEGMENT_CODE_WORDS_MAX                                                                     \
    (sizeof(struct segment_code) / 8 + (2 * SEGMENT_TEXT_MAX + SEGMENT_TABLE_MAX) / 8)
#define SEGMENT_SAMPLE_WORDS_MAX                                                                   \
    (sizeof(struct segment_sample) / 8 + SEGMENT_DEPTH + 2 * SEGMENT_PYTHON_DEPTH +                \
     SEGMENT_KERNEL_DEPTH)

static inline uint64_t segment_word(uint64_t position, uint32_t generation, uint32_t type,
                                    uint32_t words)
{
    uint64_t tag = position / SEGMENT_WORD_BYTES + generation * 0x9e3779b97f4a7ull;
    return tag << 24 | (uint64_t)(words & 0xffff) << 8 | (type & 0xff);
}

struct segment_layout {
    uint64_t modules, slots, rings, size; /* offsets; size of it all */
};

/* False when the numbers are out of bounds. */
static inline bool segment_layout(uint32_t slots, uint32_t ring_bytes, uint32_t modules,
                                  struct segment_layout *l)
{
    if (slots == 0 || slots > SEGMENT_SLOTS_MAX || modules > SEGMENT_MODULES_MAX ||
        ring_bytes < SEGMENT_RING_MIN || ring_bytes > SEGMENT_RING_MAX ||
        (ring_bytes & (ring_bytes - 1)))
        return false;
    l->modules = (sizeof(struct segment_header) + 4095) & ~4095ull;
    l->slots = l->modules + (((uint64_t)modules * sizeof(struct segment_module) + 4095) & ~4095ull);
    l->rings = l->slots + (((uint64_t)slots * sizeof(struct segment_thread) + 4095) & ~4095ull);
    l->size = l->rings + (uint64_t)slots * ring_bytes;
    return true;
}

#endif
