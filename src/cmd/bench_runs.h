/* The runs of `sonde bench`: each variant in turn, timed by itself and then profiled by itself. */
#ifndef SONDE_BENCH_RUNS_H
#define SONDE_BENCH_RUNS_H

#include "analyze/benchmark.h"
#include "base/error.h"
#include "cmd/option.h"

struct bench_variant {
    char **argv; /* ended by NULL; owned */
};

struct bench_runs {
    const struct option_list *events;
    uint64_t runs, warmup, rate;
    const char *prepare; /* for a shell, before every run; or NULL */
    bool functions, show_output, ignore_failure;
    bool progress;
    VECTOR(struct bench_variant) variants; /* as benchmark.variants */
    /* After each round, warm-up apart, with what was measured so far; a fault ends it all. */
    int (*round)(void *context, const struct benchmark *b, size_t run, struct error *err);
    void *context;
    int status; /* the first failure of a command that was not to be ignored */
};

/* A command line into words: quotes are understood; anything more is left to a shell. */
char **bench_words(const char *line);
int bench_run(struct bench_runs *r, struct benchmark *b, struct error *err);
void bench_runs_release(struct bench_runs *r);

#endif
