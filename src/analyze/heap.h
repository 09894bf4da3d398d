/*
 * What a recording says about memory: the screen of `sonde report --heap`, leaks, peaks. The
 * events are those of struct profile_heap. As in report.h, nothing is read or printed here.
 */
#ifndef SONDE_ANALYZE_HEAP_H
#define SONDE_ANALYZE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/report.h"

bool heap_recorded(const struct profile *p);
/* Says why it is not. */
int heap_missing(const struct profile *p, const char *file, struct error *err);
/* ... and no samples of anything else. */
bool heap_alone(const struct profile *p);

/*
 * Charges what the heap's events count to whom asked the allocator: malloc's own frames,
 * operator new, containers' allocators and the like go from the inner end of their stacks. For
 * a profile that is read afterwards and no more: its index of cells is not kept.
 */
void heap_skip_allocators(struct profile *p);
/* Is it, by its name, such a function? */
bool heap_is_allocator(const char *name);

/* The event that says what stacks held at the peak of what is selected: of the one process, or
 * of the whole tree. */
const char *heap_peak_event(const struct selection *s);

#define HEAP_HELD "heap:held"
#define HEAP_RELEASED "heap:released"

/* Makes the event HEAP_HELD: what stacks allocated after `from` and had not freed by `to` (ns since
 * the start; 0: start, end), in sum: a block that was freed may be an older one. To the precision
 * of the recording's history. Before heap_skip_allocators, as the next. */
void heap_hold(struct profile *p, uint64_t from, uint64_t to);
/* The times, for heap_hold, of two marks that the program set: `marks` is "FIRST,SECOND". The
 * second is the next one of its name after the first. Needs the profile's spans. */
int heap_between(const struct profile *p, const char *marks, uint64_t *from, uint64_t *to,
                 struct error *err);
/* Makes the event HEAP_RELEASED: what was freed by another thread than had allocated it. */
void heap_released(struct profile *p);

/* The events are chosen here; of r->selection the threads and stacks count. r->tree is not read. */
void report_heap(struct view *v, const struct report *r);

/* Patterns of leaks that are none: globs, one a line, of a function anywhere on the stack or of
 * the module that asked for the memory. Empty lines and those that start with # say nothing. */
struct suppressions {
    VECTOR(char *) patterns;
};

void suppressions_init(struct suppressions *s); /* with those that every program would need */
void suppressions_add(struct suppressions *s, const char *text);
void suppressions_release(struct suppressions *s);

/* What processes that ended in order had not freed, by stack. Returns the bytes that are not
 * suppressed. */
uint64_t report_leaks(struct view *v, const struct report *r, const struct suppressions *quiet);

struct peaks_options {
    uint64_t size;  /* bytes; 0: a tenth of the highest */
    uint64_t gap;   /* ns between two; of nearer ones the higher counts */
    uint64_t delta; /* bytes that it must fall by before the next; 0: a twentieth of the highest */
};

/* heap_hold for peak `number` of report_peaks; *time is when it was, ns since the start. */
int heap_hold_peak(struct profile *p, const struct peaks_options *o, uint64_t number,
                   uint64_t *time, struct error *err);
/* For each of the first `most` peaks of report_peaks the event "heap:peak-NUMBER": what stacks held
 * then. As heap_hold, before heap_skip_allocators. */
void heap_hold_peaks(struct profile *p, const struct peaks_options *o, unsigned most);
/* What heap_hold found for the same times: functions and stacks, or the calls as a tree. */
void report_held(struct view *v, const struct report *r, uint64_t from, uint64_t to, bool calls);
/* How often which sizes were asked for, in all and by stack. */
void report_sizes(struct view *v, const struct report *r);
/* Threads that allocated by threads that freed, and the stacks whose blocks go elsewhere. */
void report_ownership(struct view *v, const struct report *r);
/* What each thread held over time, and what it did in all. */
void report_heap_threads(struct view *v, const struct report *r);
/* How old what is live at the end is, and what was freed soon. */
void report_ages(struct view *v, const struct report *r);

/* The peaks of the curve of all selected processes together. */
void report_peaks(struct view *v, const struct report *r, const struct peaks_options *o);

/* Leaks and peaks with nothing asked for. */
void report_usual_leaks(struct view *v, const struct report *r);
void report_usual_peaks(struct view *v, const struct report *r);

#endif
