/* Event names; see event.h. */
#include "capture/event.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/text.h"
#include "capture/event_internal.h"

/* Faults and switches come in bursts: rare ones are all taken, of many every so many-th. */
#define RATE_OF_COUNTS 4000

const struct event_known event_known[] = {
    {"cpu", "cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
    {"task-clock", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
    {"page-faults", "faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {"minor-faults", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
    {"major-faults", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
    {"context-switches", "cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    {"cpu-migrations", "migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
    {"cgroup-switches", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CGROUP_SWITCHES},
    {"alignment-faults", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS},
    {"emulation-faults", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS},
    {"bpf-output", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT},
    {"dummy", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY},
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
const size_t event_known_count = sizeof event_known / sizeof *event_known;

static bool find_known(const char *name, struct event *e)
{
    for (size_t i = 0; i < event_known_count; i++) {
        const struct event_known *k = &event_known[i];
        if (strcmp(name, k->name) && (!k->alias || strcmp(name, k->alias)))
            continue;
        e->type = k->type;
        e->config = k->config;
        snprintf(e->name, sizeof e->name, "%s", k->name);
        e->timed = e->type == PERF_TYPE_SOFTWARE && e->config <= PERF_COUNT_SW_TASK_CLOCK;
        e->unit = e->timed ? UNIT_NANOSECONDS : UNIT_COUNT;
        e->by_rate = true;
        return true;
    }
    return false;
}

/* The word of `words` (ended by "") that `s` starts with, up to its end or a '-'; its length. */
static size_t leading_word(const char *s, const char *const *words)
{
    size_t best = 0;
    for (; **words; words++) {
        size_t len = strlen(*words);
        if (!strncasecmp(s, *words, len) && (!s[len] || s[len] == '-') && len > best)
            best = len;
    }
    return best;
}

int event_cache(const char *name, struct event *e)
{
    static const char *const caches[][6] = {{"L1-dcache", "l1-d", "l1d", "L1-data", ""},
                                            {"L1-icache", "l1-i", "l1i", "L1-instruction", ""},
                                            {"LLC", "L2", ""},
                                            {"dTLB", "d-tlb", "Data-TLB", ""},
                                            {"iTLB", "i-tlb", "Instruction-TLB", ""},
                                            {"branch", "branches", "bpu", "btb", "bpc", ""},
                                            {"node", ""}};
    static const char *const ops[][5] = {{"load", "loads", "read", ""},
                                         {"store", "stores", "write", ""},
                                         {"prefetch", "prefetches", "speculative-read", ""}};
    static const char *const results[][5] = {{"refs", "reference", "ops", "access", ""},
                                             {"misses", "miss", ""}};
    uint64_t cache = 0, op = 0, result = 0;
    size_t len = 0;
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++)
        if (leading_word(name, caches[i]) > len) {
            len = leading_word(name, caches[i]);
            cache = i;
        }
    if (!len || !name[len])
        return FAULT_USAGE;
    for (name += len; *name; name += len) {
        len = 0;
        name++;
        for (size_t i = 0; i < 3 && !len; i++)
            if ((len = leading_word(name, ops[i])))
                op = i;
        for (size_t i = 0; i < 2 && !len; i++)
            if ((len = leading_word(name, results[i])))
                result = i;
        if (!len)
            return FAULT_USAGE;
    }
    e->type = PERF_TYPE_HW_CACHE;
    e->config = cache | op << 8 | result << 16;
    e->by_rate = true;
    return 0;
}

bool event_read_number(const char *path, int base, uint64_t *v)
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

bool event_is_word(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.", s[i]) ||
            (s[i] == '.' && (i == 0 || s[i - 1] == '.')))
            return false;
    return len > 0;
}

const char *event_tracing_root(void)
{
    static const char *const roots[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
    char path[64];
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        snprintf(path, sizeof path, "%s/events", roots[i]);
        if (access(path, X_OK) == 0)
            return roots[i];
    }
    return NULL;
}

/* "sched:sched_switch", looked up where the kernel's tracing files are mounted. */
int event_tracepoint(const char *name, struct event *e, struct error *err)
{
    const char *colon = strchr(name, ':'), *root = event_tracing_root();
    if (!colon || !event_is_word(name, (size_t)(colon - name)) ||
        !event_is_word(colon + 1, strlen(colon + 1)))
        return error_set(err, FAULT_USAGE, "'%s' is not the name of a tracepoint", name);
    if (!root && geteuid())
        return error_set(err, FAULT_MISSING,
                         "this user may not see the tracepoints of the kernel: run as root");
    if (!root)
        return error_set(err, FAULT_MISSING,
                         "the kernel's tracepoints are not to be seen: 'mount -t tracefs tracefs "
                         "/sys/kernel/tracing' shows them");
    struct text path = TEXT_INIT;
    text_format(&path, "%s/events/%.*s/%s/id", root, (int)(colon - name), name, colon + 1);
    bool found = event_read_number(path.data, 10, &e->config);
    text_release(&path);
    if (!found)
        return error_set(err, FAULT_MISSING, "the kernel has no tracepoint '%s'", name);
    e->type = PERF_TYPE_TRACEPOINT;
    return 0;
}

static bool find_raw(const char *name, struct event *e)
{
    char *end;
    if (name[0] != 'r' || !name[1] || strlen(name) > 17 ||
        !strchr("0123456789abcdefABCDEF", name[1]))
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
    if (find_known(name, e) || !event_cache(name, e))
        return 0;
    if (strchr(name, '/'))
        return event_pmu(name, e, err);
    if (find_raw(name, e) || !event_pmu_named(name, e))
        return 0;
    struct error why = {0};
    int rc = strchr(name, ':') ? event_tracepoint(name, e, &why) : FAULT_USAGE;
    if (!rc || !event_pfm(name, e, NULL))
        return 0;
    if (rc == FAULT_MISSING) {
        *err = why;
        return rc;
    }
    return error_set(err, FAULT_USAGE,
                     "'%s' is not an event: 'sonde list' shows them, for example cpu, cycles, "
                     "cache-misses, page-faults, sched:sched_switch",
                     name);
}

/* What stands after the last ':' or '/': which sides are counted, and how exactly. */
static bool take_modifiers(const char *text, struct event *e)
{
    bool user = strchr(text, 'u'), kernel = strchr(text, 'k'), hv = strchr(text, 'h');
    if (text[strspn(text, "ukhGHpPDI")])
        return false;
    if (user || kernel || hv) {
        e->no_user = !user;
        e->no_kernel = !kernel;
        e->no_hv = !hv;
    }
    e->no_host = strchr(text, 'G') && !strchr(text, 'H');
    e->no_guest = strchr(text, 'H') && !strchr(text, 'G');
    e->pinned = strchr(text, 'D');
    for (const char *c = text; *c; c++)
        e->precise += (*c == 'p' || *c == 'P') && e->precise < 3;
    return true;
}

/* Cuts the modifiers off the name, if it has some. */
static void split_modifiers(char *name, struct event *e)
{
    char *slash = strrchr(name, '/'), *colon = strrchr(slash ? slash : name, ':');
    if (slash && slash > name && (slash[1] && slash[1] != ':') && take_modifiers(slash + 1, e)) {
        slash[1] = 0;
        return;
    }
    if (colon && colon[1] && take_modifiers(colon + 1, e))
        *colon = 0;
}

int event_parse(const char *text, struct event *out, struct error *err)
{
    char name[sizeof out->name];
    *out = (struct event){.scale = 1, .no_hv = true};
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
    split_modifiers(name, out);
    int rc = find_event(name, out, err);
    if (!rc && out->period)
        out->by_rate = false;
    return rc;
}

static void set_what(const struct event *e, struct perf_event_attr *attr)
{
    *attr = (struct perf_event_attr){.size = sizeof *attr, .type = e->type, .config = e->config};
    attr->config1 = e->config1;
    attr->config2 = e->config2;
    attr->exclude_kernel = e->no_kernel;
    attr->exclude_user = e->no_user;
    attr->exclude_hv = e->no_hv;
    attr->exclude_guest = e->no_guest;
    attr->exclude_host = e->no_host;
    attr->precise_ip = e->precise;
    if (e->per_cpu) /* such PMUs refuse every exclusion */
        attr->exclude_kernel = attr->exclude_user = attr->exclude_hv = 0;
}

/*
 * A little longer than asked for. Round rates run in step with the kernel's tick, at which tasks
 * are changed: each slice of 4 ms then has 9 samples in place of 8, or 7. Of loops that a program
 * runs each millisecond it would always meet the same place.
 */
uint64_t event_period(const struct event *e, uint64_t rate)
{
    if (!e->by_rate)
        return e->period ? e->period : 1;
    uint64_t asked = e->timed ? 1000000000u / rate : 0;
    return asked + asked * 236 / 10000;
}

void event_attr(const struct event *e, uint64_t rate, struct perf_event_attr *attr)
{
    set_what(e, attr);
    if (e->timed || !e->by_rate) {
        attr->sample_period = event_period(e, rate);
    } else {
        attr->freq = 1;
        attr->sample_freq =
            e->type == PERF_TYPE_SOFTWARE && rate < RATE_OF_COUNTS ? RATE_OF_COUNTS : rate;
    }
}

void event_count_attr(const struct event *e, struct perf_event_attr *attr)
{
    set_what(e, attr);
    attr->disabled = 1;
    attr->pinned = e->pinned;
    attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
}

int event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group)
{
    return (int)syscall(SYS_perf_event_open, attr, pid, cpu, group, PERF_FLAG_FD_CLOEXEC);
}

const char *event_refusal(const struct event *e, int code)
{
    bool core =
        e->type == PERF_TYPE_HARDWARE || e->type == PERF_TYPE_HW_CACHE || e->type == PERF_TYPE_RAW;
    switch (code) {
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
    case ENXIO:
        if (core && access(EVENT_PMU_ROOT "/cpu", F_OK) && access(EVENT_PMU_ROOT "/cpu_core", F_OK))
            return "this machine shows no PMU (a virtual machine, mostly)";
        return "the CPU has no such counter";
    case EACCES:
    case EPERM:
        return "not permitted to this user: see kernel.perf_event_paranoid, or CAP_PERFMON";
    case ENOSYS:
        return "perf events are switched off here (seccomp, or a kernel without them)";
    case EINVAL:
        return e->per_cpu ? "counts whole CPUs only: use -a" : "the CPU refuses this combination";
    case EBUSY:
        return "the counters are taken (NMI watchdog, or another profiler)";
    case EMFILE:
    case ENFILE:
        return "too many open files: raise 'ulimit -n'";
    default:
        return strerror(code);
    }
}

static int split_one(const char *start, size_t len, unsigned group,
                     int (*each)(void *, const char *, unsigned, struct error *), void *context,
                     struct error *err)
{
    while (len && (*start == ' ' || *start == '\t')) {
        start++;
        len--;
    }
    while (len && (start[len - 1] == ' ' || start[len - 1] == '\t'))
        len--;
    if (!len)
        return 0;
    char *name = memory_strndup(start, len);
    int rc = each(context, name, group, err);
    free(name);
    return rc;
}

int event_split(const char *list,
                int (*each)(void *context, const char *name, unsigned group, struct error *err),
                void *context, unsigned *groups, struct error *err)
{
    const char *start = list;
    bool slashed = false, braced = false;
    int rc = 0;
    for (const char *s = list; !rc; s++) {
        slashed ^= *s == '/';
        if (*s && (slashed || !strchr(",{}", *s)))
            continue;
        if ((*s == '{' && (braced || s != start)) || (*s == '}' && !braced))
            return error_set(err, FAULT_USAGE, "the braces in '%s' do not match", list);
        rc = split_one(start, (size_t)(s - start), braced ? *groups : 0, each, context, err);
        start = s + 1;
        if (*s == '{')
            ++*groups;
        braced = (braced && *s != '}') || *s == '{';
        if (!*s)
            break;
    }
    if (!rc && (braced || slashed))
        return error_set(err, FAULT_USAGE, "'%s' ends within %s", list,
                         slashed ? "a PMU's event: a '/' is missing" : "a group: '}' is missing");
    return rc;
}
