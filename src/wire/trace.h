/*
 * The layout of a trace segment: what the agent in a process writes of calls, spans, counters and
 * lines, shared with the collector as wire/segment.h's segment is.
 *
 *     header | thread slots | names | lines | rings, one a slot
 *
 * A ring has one producing thread and one consumer, in words; positions count words and never wrap.
 * A word is written before `head` passes it, so what lies below `head` is whole:
 *
 *     kind 3 | id 24 | ticks since the word before in this ring 37
 *
 * Ids stand for names: entries of the names area, which only grows, up to `names_used`. Id 0 is
 * everything that found no room there. Lines are sums that the agent keeps where they arise.
 */
#ifndef SONDE_WIRE_TRACE_H
#define SONDE_WIRE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#define TRACE_MAGIC 0x3163617274646e73ull /* "sndtrac1" */
#define TRACE_VERSION 1

#define TRACE_SLOTS_MAX 4096u
#define TRACE_RING_MIN 4096u
#define TRACE_RING_MAX (1u << 24)
#define TRACE_NAMES_MAX (1u << 28)
#define TRACE_LINES_MAX (1u << 22)
#define TRACE_IDS (1u << 24)
#define TRACE_TEXT_MAX 1024 /* bytes of a name or a path */
#define TRACE_DELTA_BITS 37
#define TRACE_DELTA_MAX ((1ull << TRACE_DELTA_BITS) - 1)

enum trace_word {
    TRACE_LEAVE = 0,
    TRACE_ENTER = 1,
    TRACE_MARK = 2,  /* an instant */
    TRACE_VALUE = 3, /* a counter; its value is the word after */
    TRACE_GAP = 4,   /* no event: the word after has more ticks to add */
    TRACE_LOST = 5,  /* the word after says how many words were not written here */
    TRACE_WORDS
};

enum trace_unit { TRACE_NANOSECONDS = 0 /* CLOCK_MONOTONIC */, TRACE_TSC = 1, TRACE_CLOCKS };

enum trace_flag {
    TRACE_HOOK_TAKEN = 1,      /* the program used sys.setprofile itself */
    TRACE_HOOK_REFUSED = 2,    /* the interpreter did not take the hook */
    TRACE_NAMES_FULL = 4,      /* some functions have no name: id 0 */
    TRACE_LINES_FULL = 8,      /* some lines were not counted */
    TRACE_THREADS_UNSEEN = 16, /* C code started threads, which could not be watched */
    TRACE_LINES_TAKEN = 32,    /* sys.settrace was used within a function whose lines are counted */
    TRACE_DEEP = 64, /* one thread's stack was so deep that lines and others were not seen */
};

enum trace_name_kind {
    TRACE_NAME_PYTHON = 0,  /* a function of Python: name, path, line */
    TRACE_NAME_BUILTIN = 1, /* a C function that Python called: name */
    TRACE_NAME_NATIVE = 2,  /* a function at an address */
    TRACE_NAME_SPAN = 3,    /* a name that the program gave: to a span or a mark */
    TRACE_NAME_COUNTER = 4,
    TRACE_NAME_LINES = 5, /* no name: the lines of function `id` start at index `address` */
    TRACE_NAME_KINDS
};

struct trace_header {
    uint64_t magic;
    uint32_t version, header_size;
    uint64_t size;
    uint32_t slots, ring_words, names_size, lines;
    uint32_t pid;
    uint32_t clock; /* enum trace_unit */
    uint32_t flags;
    uint32_t slots_used; /* slots at and above this one were never used */
    uint32_t names_used; /* bytes */
    uint32_t lines_used;
    uint32_t threads_refused;
    uint32_t spare;
};

/* An entry of the names area, then the bytes of name and path, filled up to eight. */
struct trace_name {
    uint32_t size; /* of all of it */
    uint32_t id;
    uint32_t kind;
    int32_t line;
    uint64_t address; /* of a native function; index of the first line */
    uint32_t count;   /* lines */
    uint16_t name, path;
};

struct trace_slot {
    uint32_t state; /* enum segment_thread_state */
    uint32_t generation;
    uint32_t tid;
    uint32_t spare;
    uint64_t start, end;                        /* CLOCK_MONOTONIC */
    uint64_t first;                             /* ticks that the first word counts from */
    uint64_t head;                              /* words written */
    uint64_t lost;                              /* words that found no room */
    uint64_t tail __attribute__((aligned(64))); /* words consumed; the collector's */
} __attribute__((aligned(64)));

/* What a line was: `ticks` while it ran, with what it called; bytes by the allocator, its thread's.
 */
struct trace_line {
    uint64_t hits, ticks;
    uint64_t allocated, freed, allocations;
    uint64_t peak;           /* most that one run of it held at once beyond its start */
    uint64_t rss, rss_freed; /* resident bytes that came and went */
};

static inline uint64_t trace_pack(enum trace_word kind, uint32_t id, uint64_t ticks)
{
    return (uint64_t)kind | (uint64_t)id << 3 | ticks << 27;
}

static inline enum trace_word trace_kind(uint64_t word)
{
    return (enum trace_word)(word & 7);
}

static inline uint32_t trace_id(uint64_t word)
{
    return (uint32_t)(word >> 3) & (TRACE_IDS - 1);
}

static inline uint64_t trace_ticks(uint64_t word)
{
    return word >> 27;
}

struct trace_layout {
    uint64_t slots, names, lines, rings, size; /* offsets; size of it all */
};

/* False when the numbers are out of bounds. */
static inline bool trace_layout(uint32_t slots, uint32_t ring_words, uint32_t names_size,
                                uint32_t lines, struct trace_layout *l)
{
    if (slots == 0 || slots > TRACE_SLOTS_MAX || ring_words < TRACE_RING_MIN ||
        ring_words > TRACE_RING_MAX || (ring_words & (ring_words - 1)) ||
        names_size > TRACE_NAMES_MAX || names_size % 4096 || lines > TRACE_LINES_MAX)
        return false;
    l->slots = (sizeof(struct trace_header) + 4095) & ~4095ull;
    l->names = l->slots + (((uint64_t)slots * sizeof(struct trace_slot) + 4095) & ~4095ull);
    l->lines = l->names + names_size;
    l->rings = l->lines + (((uint64_t)lines * sizeof(struct trace_line) + 4095) & ~4095ull);
    l->size = l->rings + (uint64_t)slots * ring_words * 8;
    return true;
}

_Static_assert(sizeof(struct trace_line) == 64, "a cache line");
_Static_assert(sizeof(struct trace_name) == 32, "part of the layout");

#endif
