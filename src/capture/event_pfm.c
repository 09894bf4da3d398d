/*
 * Names of libpfm4, which knows the events of most CPUs from their manuals. It is opened at run
 * time, where it is installed; the few declarations below are its stable interface (its "ABI 0").
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/event_internal.h"

#define PFM_SUCCESS 0
#define PFM_OS_PERF_EVENT_EXT 2
#define PFM_USER_AND_KERNEL 9 /* privilege levels 0 and 3 */
#define PFM_PMU_LIMIT 2048    /* beyond all that there are */

struct pfm_encode {
    struct perf_event_attr *attr;
    char **name; /* out: whole, with every attribute */
    size_t size;
    int index, cpu, flags, pad;
};

struct pfm_pmu {
    const char *name, *what;
    size_t size;
    int pmu, type, events, first, encoding, counters, fixed;
    unsigned present : 1, is_default : 1, rest : 30;
};

struct pfm_event {
    const char *name, *what, *equal_to;
    size_t size;
    uint64_t code;
    int pmu, data_type, index, attributes, reserved;
    unsigned flags;
};

static struct {
    bool tried;
    void *library;
    int (*initialize)(void);
    int (*encode)(const char *, int, int, void *);
    int (*pmu_info)(int, struct pfm_pmu *);
    int (*event_info)(int, int, struct pfm_event *);
    int (*event_next)(int);
} pfm;

static void *find(const char *name)
{
    void *function = dlsym(pfm.library, name);
    if (!function && pfm.library) {
        dlclose(pfm.library);
        pfm.library = NULL;
    }
    return function;
}

static bool load(void)
{
    if (pfm.tried)
        return pfm.library;
    pfm.tried = true;
    pfm.library = dlopen("libpfm.so.4", RTLD_NOW | RTLD_LOCAL);
    if (!pfm.library)
        return false;
    pfm.initialize = (int (*)(void))find("pfm_initialize");
    pfm.encode = (int (*)(const char *, int, int, void *))find("pfm_get_os_event_encoding");
    pfm.pmu_info = (int (*)(int, struct pfm_pmu *))find("pfm_get_pmu_info");
    pfm.event_info = (int (*)(int, int, struct pfm_event *))find("pfm_get_event_info");
    pfm.event_next = (int (*)(int))find("pfm_get_event_next");
    if (pfm.library && pfm.initialize() != PFM_SUCCESS)
        pfm.library = NULL;
    return pfm.library;
}

bool event_pfm_present(void)
{
    return load();
}

int event_pfm(const char *name, struct event *e, struct error *err)
{
    struct perf_event_attr attr = {.size = sizeof attr};
    char *whole = NULL;
    struct pfm_encode arg = {.attr = &attr, .name = &whole, .size = sizeof arg};
    if (!load())
        return error_set(err, FAULT_MISSING, "libpfm4 is not installed");
    if (pfm.encode(name, PFM_USER_AND_KERNEL, PFM_OS_PERF_EVENT_EXT, &arg) != PFM_SUCCESS) {
        free(whole);
        return error_set(err, FAULT_USAGE, "libpfm4 knows no event '%s' for this CPU", name);
    }
    e->type = attr.type;
    e->config = attr.config;
    e->config1 = attr.config1;
    e->config2 = attr.config2;
    e->by_rate = attr.type != PERF_TYPE_SOFTWARE && attr.type != PERF_TYPE_TRACEPOINT;
    e->timed = attr.type == PERF_TYPE_SOFTWARE && attr.config <= PERF_COUNT_SW_TASK_CLOCK;
    e->unit = e->timed ? UNIT_NANOSECONDS : UNIT_COUNT;
    snprintf(e->encoding, sizeof e->encoding, "%s", whole ? whole : name);
    free(whole);
    return 0;
}

void event_pfm_each(void (*each)(void *context, const char *pmu, const char *name,
                                 const char *what),
                    void *context)
{
    for (int i = 0; load() && i < PFM_PMU_LIMIT; i++) {
        struct pfm_pmu pmu = {.size = sizeof pmu};
        if (pfm.pmu_info(i, &pmu) != PFM_SUCCESS || !pmu.present ||
            !strncmp(pmu.name, "perf", 4)) /* the kernel's own names, which are listed as such */
            continue;
        for (int k = pmu.first; k != -1; k = pfm.event_next(k)) {
            struct pfm_event event = {.size = sizeof event};
            if (pfm.event_info(k, PFM_OS_PERF_EVENT_EXT, &event) == PFM_SUCCESS)
                each(context, pmu.name, event.name, event.what ? event.what : "");
        }
    }
}
