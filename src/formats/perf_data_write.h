/* The writing half of perf.data, for the vtable in perf_data.c: perf_data_write.c makes the
 * records, perf_data_write_header.c what stands before and behind them. */
#ifndef SONDE_PERF_DATA_WRITE_H
#define SONDE_PERF_DATA_WRITE_H

#include <linux/perf_event.h>

#include "formats/format.h"

/* Which events of a profile are written, and under which number: that of a counter, from 1 on; 0
 * are left out. */
struct perf_events {
    const struct profile *p;
    uint32_t *number; /* by event */
    uint32_t count;
};

#define PERF_WRITE_SAMPLE_TYPE                                                                     \
    (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |                \
     PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN)

/* What stands before records of `size` bytes in all. */
void perf_write_front(const struct perf_events *e, uint64_t size, struct sink *out);
/* What stands behind them. */
void perf_write_features(const struct perf_events *e, uint64_t size, struct sink *out);

int perf_data_write(const struct profile *p, const struct export_options *options, struct sink *out,
                    struct error *err);

#endif
