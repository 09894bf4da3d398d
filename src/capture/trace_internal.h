/* The state of a trace, shared by trace.c (session, words), trace_names.c and trace_sums.c. */
#ifndef SONDE_CAPTURE_TRACE_INTERNAL_H
#define SONDE_CAPTURE_TRACE_INTERNAL_H

#include "capture/session_internal.h"
#include "capture/trace_clock.h"
#include "capture/trace_keep.h"
#include "capture/trace_tree.h"
#include "wire/trace.h"

/* What an id of a process stands for. */
struct trace_function {
    bool known;
    enum trace_name_kind kind;
    uint32_t frame;            /* in the recording, or WRITER_NONE until it is asked for */
    uint32_t function, module; /* of Python: for its lines */
    uint32_t series;           /* of a counter */
    uint64_t address;
};

/* Lines of one function. */
struct trace_lines {
    uint32_t id, first, count; /* function; index in the segment's lines; how many */
    int32_t line;              /* of the first one */
};

struct trace_thread {
    uint32_t id; /* in the recording */
    struct trace_tree tree;
    struct trace_pen pen;
    uint64_t time;  /* ns of its latest word */
    uint64_t ticks; /* the same in ticks */
    uint64_t tail;
    uint32_t generation;
    uint64_t lost, words;
};

struct trace_image {
    struct traces *all;
    struct python_process *python;
    pid_t pid;
    struct agents_process *agent;
    uint32_t process, main; /* in the recording */
    struct space *space;
    const uint8_t *base; /* the segment, or NULL until it came */
    uint32_t slots, ring_words, names_size, lines, clock;
    struct trace_layout layout;
    uint32_t names_read;
    VECTOR(struct trace_function) functions; /* by id */
    VECTOR(struct trace_lines) line_sets;
    VECTOR(struct trace_thread *) slot; /* open ones, by slot; else NULL */
    VECTOR(uint64_t) seen;              /* how far a tick may read, by slot */
    struct trace_keep keep;
    uint64_t shortest; /* ns: shorter calls are not kept; 0: all are */
    bool damaged;
};

struct traces {
    struct session *session;
    struct trace_clock clock;
    uint32_t calls_event, line_event[6];
    bool has_calls, has_lines;
    VECTOR(struct trace_image *) images;
    uint64_t lost, dropped, folded, calls;
    uint32_t flags, refused;
    bool damaged;
};

/* trace_names.c: reads what names have come. */
void trace_names_read(struct trace_image *m);
const struct trace_function *trace_function_of(const struct trace_image *m, uint32_t id);
uint32_t trace_frame_of(void *image, uint32_t id);

/* trace_sums.c: the tree of a thread, and the lines of a process, as cells. */
void trace_write_tree(struct trace_image *m, struct trace_thread *t);
void trace_write_lines(struct trace_image *m);

#endif
