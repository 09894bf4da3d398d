/*
 * Lines of chosen functions of Python: how often each ran, how long with all that it called, and
 * what it allocated. Sums are kept in the segment, so no event is written.
 *
 *   python_lines.c          which functions, and what a line's run adds
 *   python_decorated.c      those that a script has decorated
 *   python_lines_eval.c     up to 3.11: the interpreter's trace hook, on while a chosen frame runs
 *   python_lines_monitor.c  from 3.12 on: sys.monitoring, on the chosen code alone
 */
#ifndef SONDE_AGENT_PYTHON_LINES_H
#define SONDE_AGENT_PYTHON_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/trace.h"

struct line_set {
    uint64_t code;
    int32_t first;
    uint32_t count;
    struct trace_line *lines;
};

/* One activation of a chosen function. */
struct line_run {
    struct line_run *outer;
    const struct line_set *set;
    const void *segment;     /* that `line` lies in: a forked child has another */
    struct trace_line *line; /* the one that runs, or NULL */
    uint64_t since;          /* ticks */
    uint64_t taken, given;   /* by the thread's allocations, when it began */
    int64_t held, seen;      /* then; the most, in what it called */
    uint64_t allocations;
    int64_t rss;
    int (*behind)(void *, void *, int, void *); /* the trace hook before it */
    /* When the activation itself began. */
    bool begun;
    uint64_t begin, begin_taken, begin_given, begin_allocations;
};

/* The set of a function that is chosen, or NULL. `entry` has been named. */
const struct line_set *line_set_of(const struct trace_entry *entry);
/* Looks whether a new function is chosen by the user's patterns. */
void line_set_consider(struct trace_entry *entry, uint64_t code, const char *path,
                       const char *name);
/* Chooses a function, whatever the patterns. NULL: there is no room. */
const struct line_set *line_set_choose(struct trace_entry *entry, uint64_t code);

bool line_set_choose_code(void *code);

/* A line begins, after the one before it; the run ends. */
void line_begin(struct line_run *run, int32_t line);
void line_end(struct line_run *run);
/* What happens in between is not the line's. */
struct trace_line *line_pause(struct line_run *run);
void line_resume(struct line_run *run, struct trace_line *line);

/* "profile" among the builtins, unless there is another. */
void python_decorator_set(void);
/* Whether a function is a decorator of another line profiler: what it returns is chosen. */
bool python_is_decorator(const char *path, const char *name);
/* The hook for chosen functions. */
void python_lines_set(void);
bool python_lines_eval_set(void);
void python_lines_eval_chosen(uint64_t code); /* in 3.11 */
bool python_lines_monitor_set(void);
/* Chooses what a Python function object runs; false if it is none. */
bool python_lines_choose(void *function);
/* From 3.12 on: code that was chosen is watched from now on. */
void python_lines_monitor_choose(uint64_t code);
/* The main script, as the interpreter names it. */
void python_lines_main(const char *path);

#endif
