/* The kinds of names that event.c puts together. Each returns 0 if the name is of its kind and was
 * found, FAULT_MISSING if of its kind but not here, FAULT_USAGE if it is not of its kind. */
#ifndef SONDE_EVENT_INTERNAL_H
#define SONDE_EVENT_INTERNAL_H

#include "capture/event.h"

#define EVENT_PMU_ROOT "/sys/bus/event_source/devices"

struct event_known {
    const char *name, *alias;
    uint32_t type;
    uint64_t config;
};
/* Hardware and software events that every kernel knows by number. */
extern const struct event_known event_known[];
extern const size_t event_known_count;

int event_cache(const char *name, struct event *e); /* "L1-dcache-load-misses" and its kin */
int event_tracepoint(const char *name, struct event *e, struct error *err);
/* "pmu/terms/"; a bare name is looked for among the events of all PMUs. */
int event_pmu(const char *name, struct event *e, struct error *err);
int event_pmu_named(const char *name, struct event *e);
/* By libpfm4, where it is installed. */
int event_pfm(const char *name, struct event *e, struct error *err);

/* Letters, digits, '_', '-' and single dots: safe as a part of a path. */
bool event_is_word(const char *s, size_t len);
bool event_read_number(const char *path, int base, uint64_t *v);
/* Where tracefs is mounted, or NULL. */
const char *event_tracing_root(void);

bool event_pfm_present(void);
/* Calls for every event of libpfm4 for the PMUs of this machine. */
void event_pfm_each(void (*each)(void *context, const char *pmu, const char *name,
                                 const char *what),
                    void *context);

#endif
