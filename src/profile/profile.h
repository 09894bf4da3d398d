/*
 * The model that every view reads: who ran (processes, threads), what code there
 * is (modules, frames, functions), and what it cost (cells: value by event, thread
 * and stack). No I/O here: recording/ and formats/ fill it, analyze/ reads it.
 *
 * Everything refers to everything by index. Strings are interned, string 0 is "".
 * Stack 0 is the empty stack; a stack is its innermost node, parents lead to the root.
 * Owned by one thread at a time.
 */
#ifndef SONDE_PROFILE_H
#define SONDE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vector.h"
#include "profile/samples.h"
#include "wire/record.h"

#define PROFILE_NONE UINT32_MAX

struct profile_module {
    uint32_t path; /* string */
    uint32_t note; /* string: why it has no symbols, or "" */
    enum code_kind kind;
    uint8_t build_id[20];
    uint8_t build_id_len;
};

struct profile_mapping {
    uint32_t process, module;
    uint64_t start, end, offset;
    uint64_t time;
};

struct profile_function {
    uint32_t name;    /* string: for people, demangled */
    uint32_t linkage; /* string: as the linker knows it, or "" */
    uint32_t file;    /* string: source path, or "" */
    uint32_t start_line;
    uint32_t module;
};

struct profile_location {
    uint32_t function;
    uint32_t line; /* 0: unknown */
};

/* A place in code. Its locations stand innermost (most inlined) first; none: no symbols yet. */
struct profile_frame {
    uint64_t address; /* in the module's own (file) addresses */
    uint32_t module;
    uint32_t first_location;
    uint32_t location_count;
};

struct profile_stack {
    uint32_t parent;
    uint32_t frame;
};

struct profile_exec {
    uint64_t time;
    uint32_t comm, exe, arguments; /* strings */
};

struct profile_process {
    uint32_t parent; /* process, or PROFILE_NONE */
    int32_t pid;
    uint64_t start, end; /* end is 0 while it runs, or if it outlived the recording */
    bool ended, status_known;
    int32_t status;                    /* as wait(2) gives it */
    uint64_t max_rss;                  /* bytes, 0 if unknown */
    VECTOR(struct profile_exec) execs; /* newest last */
};

struct profile_thread {
    uint32_t process;
    int32_t tid;
    uint32_t name; /* string */
    uint64_t start, end;
    uint64_t cpu; /* ns on CPU as the kernel counted, 0 if unknown */
    bool ended;
};

/* A kind of value. Well-known names: "cpu", "off-cpu:sleep", "off-cpu:lock", "off-cpu:io",
 * "off-cpu:queue", "off-cpu:other"; those of struct profile_heap; perf's own for other events. */
struct profile_event {
    uint32_t name; /* string */
    enum value_unit unit;
    uint64_t period;         /* value between two samples, 0 if it varies */
    uint64_t samples, value; /* sums over all cells, and samples that stand apart */
};

struct profile_cell {
    uint32_t event, thread, stack;
    uint64_t count; /* samples */
    uint64_t value;
};

/* A call that was traced, or a span that the program marked. A thread's stand in the order of their
 * beginnings; `depth` is how many others it lies in. */
struct profile_span {
    uint64_t time, end;
    uint32_t thread, frame;
    uint32_t depth;
    uint8_t mark;               /* an instant */
    uint8_t cut_begin, cut_end; /* began before `time`, or nobody saw its end */
};

struct profile_point {
    uint64_t time;
    int64_t value;
};

struct profile_series {
    uint32_t name;            /* string: "rss", "cpu" ... */
    uint32_t process, thread; /* or PROFILE_NONE */
    enum value_unit unit;
    VECTOR(struct profile_point) points;
};

struct profile_loss {
    uint32_t event, thread; /* or PROFILE_NONE */
    enum loss_reason reason;
    uint64_t count;
};

/* The heap of one program that a process ran. Its stacks are in the cells of "heap:allocated"
 * (bytes and calls), "heap:live" (at the end: leaks, if it ended in order), "heap:peak" (at this
 * process's own peak), "heap:tree-peak" (at the peak of all together; bytes alone, as in the one
 * before) and "heap:temporary" (freed before the thread's next allocation). */
struct profile_heap {
    uint32_t process;
    uint64_t time; /* when the program ended, or the recording did */
    uint64_t peak, peak_time;
    uint64_t live, live_blocks;
    uint64_t allocations, lost;
    uint64_t frees, unknown_frees; /* all; of blocks that nobody saw allocated */
};

/* What a heap's cell is made of; sums of the same key may stand in several. */
struct profile_detail {
    enum detail_kind kind;
    uint32_t thread, stack;
    uint64_t key; /* of DETAIL_RELEASED a thread of the profile */
    uint64_t count, value;
};

struct profile_note {
    enum note_level level;
    uint32_t text;
    bool damage; /* of the file that this was read from */
};

/* A moment that somebody named while it was recorded. */
struct profile_mark {
    uint64_t time;
    uint32_t text;
};

struct profile_meta {
    uint32_t key, value;
};

/* What the profiler itself used and how well it did. */
struct profile_cost {
    uint64_t collector_cpu; /* ns */
    uint64_t collector_rss; /* bytes, largest */
    uint64_t target_extra;  /* ns that sampling is estimated to have taken from the target */
    uint64_t stacks_whole, stacks_cut;
    uint64_t bytes_written;
};

/* Finds items of a vector by their contents; see index.h. */
struct profile_index {
    uint64_t *slots; /* upper half of the hash, item + 1; 0 is free */
    size_t mask;     /* slots - 1, or 0 when empty */
    size_t used;
    unsigned shift; /* from a hash to its first slot */
};

struct profile {
    struct names strings;
    VECTOR(struct profile_meta) meta;
    VECTOR(struct profile_module) modules;
    VECTOR(struct profile_mapping) mappings;
    VECTOR(struct profile_function) functions;
    VECTOR(struct profile_location) locations;
    VECTOR(struct profile_frame) frames;
    VECTOR(struct profile_stack) stacks;
    VECTOR(struct profile_process) processes;
    VECTOR(struct profile_thread) threads;
    VECTOR(struct profile_event) events;
    VECTOR(struct profile_cell) cells;
    struct samples samples;            /* with their times; empty unless asked for */
    bool samples_apart;                /* the cells do not hold what `samples` does */
    VECTOR(struct profile_span) spans; /* empty unless asked for */
    uint64_t span_count;               /* kept or not */
    VECTOR(struct profile_series) series;
    VECTOR(struct profile_loss) losses;
    VECTOR(struct profile_heap) heaps;
    VECTOR(struct profile_detail) details;
    VECTOR(struct profile_note) notes;
    VECTOR(struct profile_mark) marks;
    struct profile_cost cost;
    uint64_t start, end; /* monotonic ns of the recording */
    uint64_t wall_start; /* since 1970, ns */
    bool complete;       /* the recorder finished in order */
    bool symbolized;

    struct profile_index cell_index;  /* (event, thread, stack) -> cell */
    struct profile_index stack_index; /* (parent, frame) -> stack */
    struct map frame_index;           /* (module, address) -> frame, for profile_frame_add */
    struct map function_index;
};

void profile_init(struct profile *p);
void profile_release(struct profile *p);

uint32_t profile_string(struct profile *p, const char *text);
const char *profile_text(const struct profile *p, uint32_t string);     /* never NULL */
const char *profile_meta_get(const struct profile *p, const char *key); /* NULL if absent */
void profile_meta_set(struct profile *p, const char *key, const char *value);

/* Find or make; the index is stable. */
uint32_t profile_module_add(struct profile *p, enum code_kind kind, const char *path,
                            const uint8_t *build_id, size_t build_id_len);
uint32_t profile_function_add(struct profile *p, const char *name, const char *linkage,
                              const char *file, uint32_t start_line, uint32_t module);
uint32_t profile_frame_add(struct profile *p, uint32_t module, uint64_t address);
uint32_t profile_stack_add(struct profile *p, uint32_t parent, uint32_t frame);
uint32_t profile_event_add(struct profile *p, const char *name, enum value_unit unit,
                           uint64_t period);
uint32_t profile_event_find(const struct profile *p, const char *name); /* or PROFILE_NONE */

/* A frame known by names alone (imports, Python): each distinct (module, function, line) once. */
uint32_t profile_frame_named(struct profile *p, uint32_t module, uint32_t function, uint32_t line);
/* Was it made by profile_frame_named? */
bool profile_frame_is_named(const struct profile *p, uint32_t frame);
/* Sets what a frame stands for; locations innermost first. */
void profile_frame_locate(struct profile *p, uint32_t frame, const struct profile_location *at,
                          uint32_t count);

uint32_t profile_process_add(struct profile *p, int32_t pid, uint32_t parent, uint64_t start);
uint32_t profile_thread_add(struct profile *p, uint32_t process, int32_t tid, const char *name,
                            uint64_t start);
/* Adds to the cell of (event, thread, stack). */
void profile_count(struct profile *p, uint32_t event, uint32_t thread, uint32_t stack,
                   uint64_t count, uint64_t value);
/* The same for many samples at once, which hides the memory's latency. */
void profile_count_samples(struct profile *p, const struct profile_sample *samples, size_t count);
/* The cell, or PROFILE_NONE. */
uint32_t profile_cell_find(const struct profile *p, uint32_t event, uint32_t thread,
                           uint32_t stack);
/* One with its time: kept in `samples`, and in the cells as well unless `samples_apart`. */
void profile_sample_add(struct profile *p, const struct profile_sample *s);
/* Are all samples of the event in `samples`? (Sums without times may have been merged in.) */
bool profile_is_timed(const struct profile *p, uint32_t event);
/* Adds the event "wall", running and every wait together, if anything waits: a wait is under a
 * frame that is called as its event. Of a profile whose samples stand apart. */
int profile_join_wall(struct profile *p, struct error *err);
/* For who only reads from here on: puts into the cells the samples that stood apart of each event
 * that is not timed throughout, and gives back what finds stacks to add to. */
int profile_settle(struct profile *p, struct error *err);

/* Makes an order of threads, then beginnings, then longest first; sets depths. For imports. */
void profile_sort_spans(struct profile *p);

/* What a process ran last; of one that only forked, what its parent ran then. NULL: unknown. */
const struct profile_exec *profile_process_program(const struct profile *p, uint32_t process);

/* Display names: "comm" of the program or "?"; "function", "[module+0x12]" or "[unknown]".
 */
const char *profile_process_name(const struct profile *p, uint32_t process);
/* Samples that were lost: of what kind of event need not be known, but for records that the kernel
 * dropped, those without one are not samples but word of processes, threads and mappings. */
uint64_t profile_lost(const struct profile *p);
/* Last part of the module's path ("libc.so.6"), "[kernel]", "[vdso]" ... */
const char *profile_module_name(const struct profile *p, uint32_t module);
/* "[libfoo.so+0x1234]": a function of which only its place is known, in one build of the module. */
bool profile_name_is_place(const char *name);

#endif
