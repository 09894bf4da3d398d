/*
 * The tracer inside a process: calls, spans, counters and lines, written to a segment of its own
 * (wire/trace.h).
 *
 *   trace.c          the segment; threads that come and go; what is rare about writing a word
 *   trace_names.c    from a key (code object, method, address, text) to an id
 *   python_hooks.c   when and how the interpreter gets its hooks
 *   python_calls.c   the profile hook, up to 3.10, and where 3.11 needs it
 *   python_builtins.c, python_plain.c  C functions that 3.11 calls, without that hook
 *   python_monitor.c sys.monitoring, from 3.12 on
 *   python_lines.c   lines of chosen functions
 *   span_api.c       what a program says itself
 *
 * Not for signal handlers. A full ring is waited for a little while, since a trace with holes is
 * worth less than a late one; a collector that does not come is not waited for again until it does.
 */
#ifndef SONDE_AGENT_TRACE_H
#define SONDE_AGENT_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "agent/offer.h"
#include "agent/arch.h"
#include "wire/trace.h"

#define TRACE_SLOTS 1024        /* threads at once */
#define TRACE_RING (1u << 19)   /* words */
#define TRACE_NAMES (32u << 20) /* bytes */
#define TRACE_LINES (1u << 17)
#define TRACE_RESERVE 8 /* words of a ring kept for what must be said of others */

/* A thread's private half, in pages that a fork wipes. A thread that has one from before a fork, or
 * of a session that is over, may find that it is another one's by now: `self` says whose it is. */
struct trace_thread {
    const struct agent_self *self; /* set last; NULL: nobody's */
    uint64_t *ring;                /* NULL: the place is free */
    uint64_t mask, head, limit;    /* words written; where room ends as far as is known */
    uint64_t last;                 /* ticks at the latest word */
    struct trace_slot *slot;
    uint64_t lost;                       /* words since the latest one that was written */
    uint32_t depth;                      /* calls that are open, with a limit alone */
    bool impatient;                      /* the collector was waited for in vain */
    struct line_run *lines, *spare_runs; /* see python_lines.h */
    struct native_stack *native;         /* see native_calls.h */
} __attribute__((aligned(64)));

struct trace_process {
    struct offer offer;
    struct trace_header *segment;
    struct trace_layout layout;
    uint32_t ring_words;
    struct trace_thread thread[TRACE_SLOTS];
};

struct trace_settings {
    bool on;         /* there is a tracer at all */
    bool calls;      /* every call of Python, and of instrumented programs */
    bool builtins;   /* C functions that Python calls as well */
    bool lines;      /* chosen functions line by line */
    bool tsc;        /* ticks are the processor's */
    uint32_t depth;  /* calls deeper than this are left out; 0: none */
    uint32_t ring;   /* words */
    char only[1024]; /* patterns of paths, separated by colons; "": all */
    char skip[1024];
    bool rss;          /* with lines: resident memory as well, by system calls */
    char chosen[1024]; /* functions whose lines are counted */
};

extern struct trace_settings trace_settings;
extern struct trace_process *trace_process; /* NULL unless tracing */

/* ---- trace.c */
/* From the constructor, once the agent runs; or from the program's own request. */
bool trace_start(void);
/* Ends every thread's place; nothing is written until the next start. No hook may be running. */
void trace_stop(void);
/* The calling thread's place, made at its first word; NULL when there is none. */
struct trace_thread *trace_enter(void);
void trace_put_slowly(struct trace_thread *t, enum trace_word kind, uint32_t id, uint64_t now);
/* A word and the one that belongs to it. */
void trace_put_value(struct trace_thread *t, uint32_t id, int64_t value);
void trace_declare(uint32_t flag);
/* Until all that the thread wrote has been read, or a tenth of a second. */
void trace_await(struct trace_thread *t);

/* ---- trace_names.c */
struct trace_entry {
    uint64_t key; /* 0: free */
    uint32_t id;
    uint8_t hidden;    /* left out by the user's filters */
    uint8_t decorates; /* what it returns is chosen, see python_decorated.c */
    uint16_t chosen;   /* 1 + index of its lines, see python_lines.c; 0: none */
};

struct trace_text {
    enum trace_name_kind kind;
    const char *name, *path;
    size_t name_len, path_len;
    int32_t line;
    uint64_t address;
    uint32_t count;
};

#define TRACE_TABLE (1u << 17)

/* An open-addressed table of all names, read without a lock. */
struct trace_table {
    uint32_t lock;
    uint32_t used;            /* places that are not free */
    uint32_t next;            /* id */
    struct trace_entry other; /* of all that found no room */
    struct trace_entry entry[TRACE_TABLE];
};
extern struct trace_table *trace_table;

static inline uint32_t trace_place(uint64_t key)
{
    return (uint32_t)((key >> 4) * 0x9e3779b97f4a7c15ull >> 40) & (TRACE_TABLE - 1);
}

/* The entry of `key`, or NULL. */
static inline struct trace_entry *trace_find(uint64_t key)
{
    for (uint32_t at = trace_place(key);; at = (at + 1) & (TRACE_TABLE - 1)) {
        struct trace_entry *e = &trace_table->entry[at];
        uint64_t found = __atomic_load_n(&e->key, __ATOMIC_ACQUIRE);
        if (__builtin_expect(found == key, 1))
            return e;
        if (!found)
            return NULL;
    }
}
/* Makes one, with a name for the collector; never NULL. */
struct trace_entry *trace_name(uint64_t key, const struct trace_text *text);
/* Says to the collector what belongs to an id that is known: see TRACE_NAME_LINES. */
bool trace_say(uint32_t id, const struct trace_text *text);
bool trace_names_init(void);
void trace_names_forget(void);
/* Whether a name is in a list of patterns separated by colons; "*" and "?" as in file names. */
bool trace_matches(const char *patterns, const char *name, size_t len);

static inline uint64_t trace_now(void)
{
    return trace_settings.tsc ? arch_ticks() : agent_now();
}

/* The calling thread's place, if it has one already; else NULL. */
static inline struct trace_thread *trace_own(void)
{
    struct trace_thread *t = agent_self.trace;
    return __builtin_expect(t && t->self == &agent_self, 1) ? t : NULL;
}

static inline struct trace_thread *trace_self(void)
{
    struct trace_thread *t = trace_own();
    return __builtin_expect(t != NULL, 1) ? t : trace_enter();
}

static inline void trace_put(struct trace_thread *t, enum trace_word kind, uint32_t id)
{
    uint64_t now = trace_now(), delta = now - t->last;
    if (__builtin_expect(t->head >= t->limit || delta > TRACE_DELTA_MAX, 0)) {
        trace_put_slowly(t, kind, id, now);
        return;
    }
    t->ring[t->head & (t->mask)] = trace_pack(kind, id, delta);
    t->last = now;
    __atomic_store_n(&t->slot->head, ++t->head, __ATOMIC_RELEASE);
}

/* Whether a call of this entry is written; with a limit, counts how deep it is. */
static inline bool trace_enters(struct trace_thread *t, const struct trace_entry *e)
{
    if (__builtin_expect(e->hidden, 0))
        return false;
    if (__builtin_expect(trace_settings.depth, 0))
        return t->depth++ < trace_settings.depth;
    return true;
}

static inline bool trace_leaves(struct trace_thread *t, const struct trace_entry *e)
{
    if (__builtin_expect(e->hidden, 0))
        return false;
    if (__builtin_expect(trace_settings.depth, 0)) {
        t->depth -= t->depth != 0;
        return t->depth < trace_settings.depth;
    }
    return true;
}

#endif
