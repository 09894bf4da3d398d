/*
 * A perf record, decoded: bounds checked once here, so that nobody else looks at raw
 * bytes. Pointers lead into the record itself and hold as long as it does.
 */
#ifndef SONDE_PERF_RECORD_H
#define SONDE_PERF_RECORD_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The sample_type of every event we open; the dummy's records carry the same trailer. */
#define PERF_SAMPLE_FIELDS                                                                         \
    (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |                \
     PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER |        \
     PERF_SAMPLE_STACK_USER)

enum perf_kind {
    PERF_OTHER,
    PERF_SAMPLE,
    PERF_MMAP,
    PERF_COMM,
    PERF_FORK,
    PERF_EXIT,
    PERF_LOST,
    PERF_THROTTLE,
    PERF_SWITCH,
    PERF_READ,
};

struct perf_record {
    enum perf_kind kind;
    uint64_t id; /* of the event */
    int32_t pid, tid;
    uint64_t time;

    /* PERF_SAMPLE */
    uint64_t ip, period;
    const uint64_t *chain; /* kernel part of the call chain */
    size_t chain_len;
    const uint64_t *regs; /* user registers, NULL if there were none (a kernel thread) */
    size_t regs_len;
    const uint8_t *stack; /* copied from the user's stack pointer up */
    size_t stack_len;
    bool in_kernel;

    /* PERF_MMAP */
    uint64_t start, length, offset;
    const char *path;
    const uint8_t *build_id;
    size_t build_id_len;
    /* PERF_COMM */
    const char *comm;
    bool exec;
    /* PERF_FORK, PERF_EXIT */
    int32_t parent_pid, parent_tid;
    /* PERF_LOST, PERF_READ */
    uint64_t count;
    /* PERF_SWITCH */
    bool out, preempted;
};

/* False if the record is malformed. */
bool perf_record_decode(const struct perf_event_header *h, unsigned user_regs,
                        struct perf_record *r);

/* Only the time, for merging rings. */
uint64_t perf_record_time(const struct perf_event_header *h);

#endif
