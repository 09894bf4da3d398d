/* The writer's state, shared by writer.c (life, blocks) and append.c (records). */
#ifndef SONDE_WRITER_INTERNAL_H
#define SONDE_WRITER_INTERNAL_H

#include "base/map.h"
#include "base/text.h"
#include "base/vector.h"
#include "recording/block.h"
#include "recording/writer.h"

/* Parts of a block, in the order in which a reader needs them. */
enum section {
    SECTION_STRINGS,
    SECTION_DEFINITIONS, /* meta, events, modules, processes, threads ... */
    SECTION_FUNCTIONS,
    SECTION_FRAMES,
    SECTION_STACKS,
    SECTION_VALUES, /* samples, points, symbols, losses */
    SECTION_COUNT
};

/* A run of definitions or samples that has been begun and not yet closed into its section. */
struct run {
    struct text body;
    uint64_t previous[3]; /* what deltas are taken against */
};

struct writer_event {
    struct run run; /* samples, body empty when none */
};

struct writer_series {
    struct run run;
};

struct writer {
    struct block_writer *blocks;
    struct text section[SECTION_COUNT];
    struct run strings, functions, frames, stacks;
    struct run spans; /* of one thread */
    uint32_t spans_thread;
    struct text payload; /* the record under construction */
    struct names names;
    struct map modules, frame_index, stack_index, function_index;
    VECTOR(struct writer_code) code;
    VECTOR(struct writer_event) events;
    VECTOR(struct writer_series) series;
    struct run details[DETAIL_KINDS];
    uint32_t module_count, process_count, thread_count, function_count, stack_count;
    size_t pending; /* bytes gathered */
    uint64_t samples, dropped;
    bool failed;
    struct error failure;
    void (*progress)(void *context, uint64_t done, uint64_t size); /* or NULL */
    void *context;
};

void writer_add_varint(struct text *t, uint64_t v);
void writer_add_signed(struct text *t, int64_t v);
/* Closes the payload under construction as a record of this type into a section. */
void writer_close(struct writer *w, enum section section, enum record_type type);
/* Closes the run of spans, so that another thread's may begin. */
void writer_close_spans(struct writer *w);
/* Adds to what is gathered and writes a block when it is full. */
void writer_gathered(struct writer *w, size_t bytes);

#endif
