/*
 * The history of a benchmark in a job of a server: each round of runs is one batch, sent as soon as
 * it is over, by way of the spool (see remote.h), so that nothing is lost with a server that is
 * away or a benchmark that is broken off.
 */
#ifndef SONDE_BENCH_JOB_H
#define SONDE_BENCH_JOB_H

#include "analyze/benchmark.h"
#include "base/error.h"

struct bench_job;

/* FAULT_MISSING if the server has no such job; one that is away is no fault, and is told of unless
 * `quiet`. */
int bench_job_open(const char *url, uint32_t job, bool quiet, struct bench_job **out,
                   struct error *err);
/* What the round number `run` (from 0) has measured of every variant. */
int bench_job_add(struct bench_job *j, const struct benchmark *b, size_t run, struct error *err);
/* Says what became of it, unless quiet; NULL is fine. */
void bench_job_free(struct bench_job *j);

#endif
