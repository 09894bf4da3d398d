/*
 * What `sonde stat` counts: events, and for each run, interval and thread a value of each.
 * The sibling of struct profile for figures that belong to no place in the code. Texts and rows
 * are the arena's; no I/O. Owned by one thread at a time.
 */
#ifndef SONDE_COUNTS_H
#define SONDE_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/vector.h"
#include "wire/record.h"

enum counts_origin {
    COUNTS_COUNTED,   /* by perf events */
    COUNTS_ACCOUNTED, /* from what the kernel accounts to processes anyway */
    COUNTS_SIMULATED, /* by valgrind's model of a CPU */
};

struct counts_event {
    const char *name;    /* as asked for */
    const char *plain;   /* without aliases and modifiers: "cycles"; what ratios go by */
    const char *measure; /* "Joules"; "" for plain counts */
    double scale;        /* of one count in `measure` */
    bool timed;          /* counts ns */
    bool user_only;      /* the kernel's side was refused and left out */
    unsigned group;      /* counted together with others of the same number; 0: by itself */
    enum counts_origin origin;
    const char *refused; /* why it cannot be counted here; NULL if it can */
};

struct counts_value {
    bool known;
    double value; /* scaled up to the whole time */
    double share; /* of the time, 0 to 1, that the counter really ran: less than 1 if they took
                     turns */
};

/* What the kernel accounts to a process and those it waited for. */
struct counts_usage {
    uint64_t real, user, sys; /* ns */
    uint64_t max_rss;         /* bytes; 0: unknown */
    bool rss_bound;           /* it may have been less: so much was there before its exec */
    uint64_t minor_faults, major_faults;
    uint64_t voluntary, involuntary; /* switches away */
    uint64_t read_bytes, written_bytes;
    bool io_known;    /* of the line above */
    uint64_t stolen;  /* ns of all CPUs that the hypervisor gave to others */
    uint64_t delayed; /* ns that the process itself waited for a CPU */
    bool delay_known;
};

struct counts_run {
    struct counts_usage usage;
    struct counts_value *values; /* by event */
};

struct counts_thread {
    int32_t pid, tid;
    const char *name;
    struct counts_value *values;
};

struct counts_interval {
    uint64_t end, length; /* ns; end is since the start */
    struct counts_value *values;
};

struct counts_note {
    enum note_level level;
    const char *text;
};

struct counts {
    struct arena arena;
    const char *subject; /* "'make -j4'", "process 12" ... */
    size_t cpus;         /* counted on all of them; 0: tasks were counted */
    VECTOR(struct counts_event) events;
    VECTOR(struct counts_run) runs;
    VECTOR(struct counts_thread) threads;
    VECTOR(struct counts_interval) intervals;
    VECTOR(struct counts_note) notes;
};

void counts_init(struct counts *c, const char *subject);
void counts_release(struct counts *c);

/* A new event, its texts copied; the pointer holds until the next one. */
struct counts_event *counts_add_event(struct counts *c, const char *name, const char *plain);
/* Room for a value of each event there is by now, all unknown. */
struct counts_value *counts_values(struct counts *c);
void counts_note(struct counts *c, enum note_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The event of that plain name that counts something, or SIZE_MAX. */
size_t counts_find(const struct counts *c, const char *plain);

/* A counter that ran only part of the time, scaled up; unknown if it never ran. */
struct counts_value counts_scale(uint64_t value, uint64_t enabled, uint64_t running);
/* b - a, for what a counter did between two readings. */
struct counts_value counts_minus(struct counts_value b, struct counts_value a);

#endif
