/*
 * What counts say: means over runs, spreads, and the ratios that perf's users know (instructions a
 * cycle, misses of all branches ...). Pure.
 */
#ifndef SONDE_COUNTING_H
#define SONDE_COUNTING_H

#include "analyze/view.h"
#include "profile/counts.h"

struct counting_metric {
    bool known;
    double value;
    const char *unit; /* "CPUs utilized", "% of all branches" */
    char of[64];      /* holds `unit` where it is put together */
    int decimals;
};

struct counting_sum {
    bool known;
    double mean;   /* in counts, or ns */
    double spread; /* standard error of the mean, in percent of it; 0 of one run */
    double share;  /* 0 to 1, that the counter ran */
};

/* Over all runs. */
struct counting_sum counting_sum(const struct counts *c, size_t event);
struct counts_usage counting_usage(const struct counts *c); /* means; the largest RSS */
/* Standard error of the mean elapsed time, in ns. */
double counting_real_error(const struct counts *c);

/* What is said beside the value of an event; `values` are those of all events, `elapsed` the ns
 * they were counted over. */
void counting_metric(const struct counts *c, const struct counts_value *values, uint64_t elapsed,
                     size_t event, struct counting_metric *out);
/* Values of each event that stand for all runs; the caller frees them. */
struct counts_value *counting_means(const struct counts *c);

/* Everything, for machines: events, threads, intervals, facts of the run, notes. */
void counting_view(struct view *v, const struct counts *c);
/* The threads alone, for people. */
void counting_threads(struct view *v, const struct counts *c);

#endif
