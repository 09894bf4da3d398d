/*
 * Tables to Redis while it records, for whoever subscribes:
 *
 *     cpu_profile, cpu_profile_json                   the functions of the last interval
 *     memory_profile_data, memory_profile_data_json   who holds memory now
 *
 * and commands from there: a process number (or JSON, see order.h and docs/LIVE.md) published to
 * memory_profile is answered on memory_profile_status.
 */
#ifndef SONDE_LIVE_PUBLISH_H
#define SONDE_LIVE_PUBLISH_H

#include "live/routes.h"

struct event_base;
struct publisher;

struct publish_counts {
    uint64_t sent, unsent; /* messages */
    bool connected;
    char error[200];
};

int publisher_new(struct event_base *base, struct live *live, const char *url, uint64_t interval,
                  unsigned limit, struct publisher **out, struct error *err);
void publisher_free(struct publisher *p); /* NULL-safe */
/* The last tables, of the interval that was cut short. */
void publisher_finish(struct publisher *p);
/* Is everything said? */
bool publisher_idle(const struct publisher *p);
void publisher_counts(const struct publisher *p, struct publish_counts *out);

#endif
