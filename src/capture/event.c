/* Event names; see event.h. */
#include "capture/event.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/text.h"

/* Faults and switches come in bursts: rare ones are all taken, of many every so many-th. */
#define RATE_OF_COUNTS 4000

struct known {
    const char *name, *alias;
    uint32_t type;
    uint64_t config;
};

static const struct known known[] = {
    {"cpu", "cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
    {"task-clock", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
    {"page-faults", "faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {"minor-faults", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
    {"major-faults", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
    {"context-switches", "cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    {"cpu-migrations", "migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
    {"alignment-faults", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS},
    {"emulation-faults", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS},
    {"cycles", "cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"instructions", NULL, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cache-references", NULL, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
    {"cache-misses", NULL, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"branches", "branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branch-misses", NULL, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
    {"bus-cycles", NULL, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES},
    {"stalled-cycles-frontend", "idle-cycles-frontend", PERF_TYPE_HARDWARE,
     PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
    {"stalled-cycles-backend", "idle-cycles-backend", PERF_TYPE_HARDWARE,
     PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
    {"ref-cycles", NULL, PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES},
};

static bool find_known(const char *name, struct event *e)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(name, known[i].name) && (!known[i].alias || strcmp(name, known[i].alias)))
            continue;
        e->type = known[i].type;
        e->config = known[i].config;
        snprintf(e->name, sizeof e->name, "%s", known[i].name);
        e->timed = e->type == PERF_TYPE_SOFTWARE && e->config <= PERF_COUNT_SW_TASK_CLOCK;
        e->unit = e->timed ? UNIT_NANOSECONDS : UNIT_COUNT;
        e->by_rate = true;
        return true;
    }
    return false;
}

/* "L1-dcache-load-misses": cache, operation and result, as perf spells them. */
static bool find_cache(const char *name, struct event *e)
{
    static const char *const cache[] = {"L1-dcache", "L1-icache", "LLC", "dTLB",
                                        "iTLB",      "branch",    "node"};
    static const struct {
        const char *text;
        uint64_t op, result;
    } tail[] = {{"-loads", 0, 0},        {"-load-misses", 0, 1}, {"-stores", 1, 0},
                {"-store-misses", 1, 1}, {"-prefetches", 2, 0},  {"-prefetch-misses", 2, 1}};
    for (size_t c = 0; c < sizeof cache / sizeof *cache; c++) {
        if (!text_starts(name, cache[c]))
            continue;
        for (size_t t = 0; t < sizeof tail / sizeof *tail; t++) {
            if (strcmp(name + strlen(cache[c]), tail[t].text))
                continue;
            e->type = PERF_TYPE_HW_CACHE;
            e->config = c | tail[t].op << 8 | tail[t].result << 16;
            e->by_rate = true;
            return true;
        }
    }
    return false;
}

static bool read_number(const char *path, int base, uint64_t *v)
{
    char *text;
    if (io_slurp(path, 4096, &text, NULL, NULL))
        return false;
    char *end;
    errno = 0;
    *v = strtoull(text, &end, base);
    bool ok = !errno && end != text;
    free(text);
    return ok;
}

static bool is_plain_word(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.", s[i]) ||
            (s[i] == '.' && (i == 0 || s[i - 1] == '.')))
            return false;
    return len > 0;
}

/* "sched:sched_switch", looked up where the kernel's tracing files are mounted. */
static int find_tracepoint(const char *name, struct event *e, struct error *err)
{
    static const char *const roots[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
    const char *colon = strchr(name, ':');
    if (!is_plain_word(name, (size_t)(colon - name)) ||
        !is_plain_word(colon + 1, strlen(colon + 1)))
        return error_set(err, FAULT_USAGE, "'%s' is not the name of a tracepoint", name);
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        struct text path = TEXT_INIT;
        text_format(&path, "%s/events/%.*s/%s/id", roots[i], (int)(colon - name), name, colon + 1);
        bool found = read_number(path.data, 10, &e->config);
        text_release(&path);
        if (found) {
            e->type = PERF_TYPE_TRACEPOINT;
            return 0;
        }
    }
    if (access("/sys/kernel/tracing/events", X_OK) == 0)
        return error_set(err, FAULT_USAGE, "the kernel has no tracepoint '%s'", name);
    if (geteuid())
        return error_set(err, FAULT_USAGE,
                         "this user may not see the tracepoints of the kernel: run as root");
    return error_set(err, FAULT_USAGE,
                     "the kernel's tracepoints are not to be seen: 'mount -t tracefs tracefs "
                     "/sys/kernel/tracing' shows them");
}

static bool find_raw(const char *name, struct event *e)
{
    char *end;
    if (name[0] != 'r' || !name[1] || strlen(name) > 17)
        return false;
    e->config = strtoull(name + 1, &end, 16);
    e->type = PERF_TYPE_RAW;
    e->by_rate = true;
    return !*end;
}

static int find_event(const char *name, struct event *e, struct error *err)
{
    snprintf(e->name, sizeof e->name, "%s", name);
    e->unit = UNIT_COUNT;
    if (find_known(name, e) || find_cache(name, e))
        return 0;
    if (strchr(name, ':'))
        return find_tracepoint(name, e, err);
    if (find_raw(name, e))
        return 0;
    return error_set(
        err, FAULT_USAGE,
        "'%s' is not an event this machine knows: 'perf list' shows names, for example "
        "cpu, cycles, cache-misses, page-faults, sched:sched_switch",
        name);
}

int event_parse(const char *text, struct event *out, struct error *err)
{
    char name[sizeof out->name];
    *out = (struct event){0};
    if (strlen(text) >= sizeof name)
        return error_set(err, FAULT_USAGE, "the event name '%.40s...' is too long", text);
    snprintf(name, sizeof name, "%s", text);
    char *at = strchr(name, '@');
    if (at) {
        char *end;
        errno = 0;
        out->period = strtoull(at + 1, &end, 10);
        if (*end || errno || !out->period || end == at + 1)
            return error_set(err, FAULT_USAGE, "'%s': after @ stands how many events make a sample",
                             text);
        *at = 0;
    }
    size_t len = strlen(name);
    if (len > 2 && name[len - 2] == ':' && (name[len - 1] == 'u' || name[len - 1] == 'k')) {
        out->user_only = name[len - 1] == 'u';
        out->kernel_only = name[len - 1] == 'k';
        name[len - 2] = 0;
    }
    int rc = find_event(name, out, err);
    if (!rc && out->period)
        out->by_rate = false;
    return rc;
}

void event_attr(const struct event *e, uint64_t rate, struct perf_event_attr *attr)
{
    *attr = (struct perf_event_attr){.size = sizeof *attr, .type = e->type, .config = e->config};
    attr->config1 = e->config1;
    attr->config2 = e->config2;
    if (e->timed && e->by_rate) {
        attr->sample_period = 1000000000u / rate;
    } else if (e->by_rate) {
        attr->freq = 1;
        attr->sample_freq =
            e->type == PERF_TYPE_SOFTWARE && rate < RATE_OF_COUNTS ? RATE_OF_COUNTS : rate;
    } else {
        attr->sample_period = e->period ? e->period : 1;
    }
    attr->exclude_kernel = e->user_only;
    attr->exclude_user = e->kernel_only;
    attr->exclude_hv = 1;
}
