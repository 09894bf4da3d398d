/*
 * Appends to a recording, one call a record. Identifiers are handed out here;
 * equal strings, modules, frames, functions and stacks get the same one. Records gather in memory
 * and leave as one block when it is full or writer_flush is called, so call that about
 * once a second. The first failed write stops the writer for good: later calls are counted
 * as dropped and writer_failed tells why; the caller need not look after every call.
 * Not thread safe. Memory stays flat: the stack table forgets and starts over when it is large.
 */
#ifndef SONDE_WRITER_H
#define SONDE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/record.h"

#define WRITER_NONE UINT32_MAX

struct writer;

struct writer_location {
    uint32_t function;
    uint32_t line;
};

struct writer_cost {
    uint64_t collector_cpu, collector_rss, target_extra;
    uint64_t stacks_whole, stacks_cut;
};

struct writer_heap {
    uint64_t time;                 /* of these words */
    uint64_t peak, peak_time;      /* bytes; 0 if unknown */
    uint64_t live, live_blocks;    /* when it ended, or the recording did */
    uint64_t allocations, lost;    /* recorded; made but not recorded */
    uint64_t frees, unknown_frees; /* all; of blocks from before it was watched, or of a parent's */
};

/* Part of what a thread did on a stack; see enum detail_kind. */
struct writer_detail {
    enum detail_kind kind;
    uint32_t thread, stack;
    uint64_t key, count, value;
};

/* Makes `path` (mode 0600, must not exist unless `replace`; never through a symbolic link). */
int writer_new(const char *path, bool replace, struct writer **out, struct error *err);
/* On a descriptor that is ours from now on: a socket, a test's file. */
int writer_new_fd(int fd, struct writer **out, struct error *err);
/* Called with the bytes written whenever there are more; `size` is always 0. */
void writer_watch(struct writer *w, void (*progress)(void *context, uint64_t done, uint64_t size),
                  void *context);
int writer_flush(struct writer *w, struct error *err);
/* Flushes, closes, frees. `complete` writes the end record with the end time. */
int writer_free(struct writer *w, bool complete, uint64_t end, struct error *err);

bool writer_failed(const struct writer *w, struct error *err);
uint64_t writer_dropped(const struct writer *w); /* samples not written since it failed */
uint64_t writer_samples(const struct writer *w); /* samples written */
uint64_t writer_bytes(const struct writer *w);

void writer_meta(struct writer *w, const char *key, const char *value);
uint32_t writer_event(struct writer *w, const char *name, enum value_unit unit, uint64_t period);

uint32_t writer_process(struct writer *w, int32_t pid, uint32_t parent, uint64_t start);
void writer_exec(struct writer *w, uint32_t process, uint64_t time, const char *comm,
                 const char *exe, const char *arguments);
/* `status` as wait(2) gives it, or -1 when nobody knows. */
void writer_process_end(struct writer *w, uint32_t process, uint64_t time, int status,
                        uint64_t max_rss);
uint32_t writer_thread(struct writer *w, uint32_t process, int32_t tid, uint64_t start);
void writer_thread_name(struct writer *w, uint32_t thread, const char *name);
void writer_thread_end(struct writer *w, uint32_t thread, uint64_t time, uint64_t cpu);

uint32_t writer_module(struct writer *w, enum code_kind kind, const char *path,
                       const uint8_t *build_id, size_t build_id_len);
void writer_module_note(struct writer *w, uint32_t module, const char *note);
void writer_mapping(struct writer *w, uint32_t process, uint32_t module, uint64_t start,
                    uint64_t end, uint64_t offset, uint64_t time);
uint32_t writer_frame(struct writer *w, uint32_t module, uint64_t address);
uint32_t writer_frame_named(struct writer *w, uint32_t module, uint32_t function, uint32_t line);
uint32_t writer_stack(struct writer *w, uint32_t parent, uint32_t frame); /* parent 0 is the root */
/* The same for who has each stack once, and need not have it looked for. */
uint32_t writer_stack_new(struct writer *w, uint32_t parent, uint32_t frame);
void writer_sample(struct writer *w, uint32_t event, uint64_t time, uint32_t thread, uint32_t stack,
                   uint64_t value);

/* A thread's spans, in the order of their times; the innermost open one ends first. A cut forgets
 * what is open: `lost` steps before it were not recorded. */
void writer_span_begin(struct writer *w, uint32_t thread, uint64_t time, uint32_t frame);
void writer_span_end(struct writer *w, uint32_t thread, uint64_t time);
/* ... another than the innermost, which is number 0. */
void writer_span_end_at(struct writer *w, uint32_t thread, uint64_t time, uint64_t number);
void writer_span_mark(struct writer *w, uint32_t thread, uint64_t time, uint32_t frame);
void writer_span_cut(struct writer *w, uint32_t thread, uint64_t time, uint64_t lost);

/* A sum over samples whose times nobody knows: what other tools' files hold. */
void writer_cell(struct writer *w, uint32_t event, uint32_t thread, uint32_t stack, uint64_t count,
                 uint64_t value);

/* The same for what no sample stands for, such as bytes: not in writer_samples. */
void writer_sum(struct writer *w, uint32_t event, uint32_t thread, uint32_t stack, uint64_t count,
                uint64_t value);
void writer_detail(struct writer *w, const struct writer_detail *d);
/* What is known of the heap of one program that `process` ran, at the end of that. */
void writer_heap(struct writer *w, uint32_t process, const struct writer_heap *heap);

uint32_t writer_function(struct writer *w, const char *name, const char *linkage, const char *file,
                         uint32_t start_line, uint32_t module);
/* Locations innermost first. */
void writer_symbol(struct writer *w, uint32_t frame, const struct writer_location *at, size_t n);

uint32_t writer_series(struct writer *w, const char *name, enum value_unit unit, uint32_t process,
                       uint32_t thread);
void writer_point(struct writer *w, uint32_t series, uint64_t time, int64_t value);

void writer_loss(struct writer *w, enum loss_reason reason, uint32_t event, uint32_t thread,
                 uint64_t count);
void writer_note(struct writer *w, enum note_level level, const char *text);
/* A moment of the whole recording that has a name. */
void writer_mark(struct writer *w, uint64_t time, const char *text);
void writer_set_cost(struct writer *w, const struct writer_cost *cost);

/* Every frame given out so far, for the symboliser: frame i is (module, address), or has names. */
struct writer_code {
    uint32_t module;
    bool named;
    uint64_t address;
};
const struct writer_code *writer_frames(const struct writer *w, size_t *count);

#endif
