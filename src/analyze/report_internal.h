/* Sections that several of the report's views show, and what they are made from. */
#ifndef SONDE_REPORT_INTERNAL_H
#define SONDE_REPORT_INTERNAL_H

#include "analyze/report.h"

struct cost {
    uint64_t self, total;
    uint64_t self_count, total_count;
};

/* Costs by key: `key` gives each symbol of the tree one, or TREE_NONE. A key counts once a path. */
void cost_by_key(const struct tree *t, const uint32_t *key, struct cost *costs, size_t keys);

struct ranked {
    uint32_t id;
    const char *name;
    struct cost cost;
};

/* Best first; equal ones by name. */
void rank(struct ranked *all, size_t count, enum report_sort sort);

/* Starts a view: its title and what it is over. */
void report_begin(struct view *v, const struct report *r, const char *id, const char *title,
                  const char *main);
/* CPU time of a thread as the kernel counted it, which is of all its life: 0 where only a part of
 * the time is told of, as where it is unknown. */
uint64_t report_counted(const struct report *r, uint32_t thread);
enum view_kind report_kind(const struct report *r);
/* The width from which a column of counts is shown: never, where nothing has one. */
unsigned report_counts(const struct report *r, unsigned from_width);
uint64_t report_shown(const struct report *r, uint64_t rows); /* of so many */

/* "exit 0", "killed by SIGSEGV" (brief: "SIGSEGV"), "still running". */
void status_text(const struct profile_process *q, bool brief, struct text *out);
/* Files of other tools know how nothing ended: that is not told of each process. */
bool report_tells_end(const struct profile *p, const struct profile_process *q);

const char *report_plural(uint64_t n, const char *one, const char *many);
/* The command line as recorded, else the first program's. */
const char *report_command(const struct profile *p);
/* A command to type next; left out if its words cannot be shown as they are. */
void report_suggest(struct view_section *s, const struct report *r, const char *command,
                    const char *option, const char *word, const char *meaning);
/* The name of the dearest function in `v` without its parameters, or NULL if it has none that can
 * be asked for. */
const char *report_top_function(const struct view_section *next, const struct view *v);

/* "1234 make -j8": the newest program, with its arguments if they are known. */
void process_text(const struct profile *p, uint32_t process, struct text *out);
uint64_t chosen_processes(const struct selection *s); /* that have a thread in it */

void section_functions(struct view *v, const struct report *r);
void section_processes(struct view *v, const struct report *r);
void section_path(struct view *v, const struct report *r, size_t limit);
void section_waits(struct view *v, const struct report *r);
void section_run(struct view *v, const struct report *r);
void section_totals(struct view *v, const struct report *r);
void section_profiler(struct view *v, const struct report *r, bool brief);
/* Generated, recorded and lost by event; hidden on the first screen. */
void section_accounting(struct view *v, const struct report *r, bool hidden);
void section_notes(struct view *v, const struct report *r, size_t limit);
void section_next(struct view *v, const struct report *r);

/* Sets match[symbol] where a symbol is what the user calls `name`: that name, its linkage name, the
 * name without its parameters, or, if none is, any name that contains it. Returns how many. */
size_t symbols_match(const struct tree *t, const char *name, bool *match);

/* "main › load › read": the heaviest way down, the last `steps` of it before the kernel. */
void hottest_leaf(const struct tree *t, unsigned steps, struct text *out);

#endif
