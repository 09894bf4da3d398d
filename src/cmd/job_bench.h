/* Benchmark results of a job as tables: what each session of runs measured, and run by run. */
#ifndef SONDE_JOB_BENCH_H
#define SONDE_JOB_BENCH_H

#include <jansson.h>

#include "analyze/view.h"

/* `runs` as the server lists them. Machines get each run, people the sessions, and each run after.
 */
void job_bench_view(struct view *v, const json_t *runs, bool machines);
/* A heading from outside, safe for a terminal and as long as the view lives. */
const char *job_heading(struct view *v, const char *text);

#endif
