/* The kernel's accounts; see usage.h. */
#include "capture/usage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/text.h"
#include "capture/proc.h"

#define FILE_MAX 65536

static char *slurp(const char *format, pid_t pid)
{
    char path[64], *text;
    snprintf(path, sizeof path, format, pid);
    return io_slurp(path, FILE_MAX, &text, NULL, NULL) ? NULL : text;
}

static uint64_t number_after(const char *text, const char *key)
{
    const char *at = text ? strstr(text, key) : NULL;
    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

void usage_add_io(pid_t pid, struct counts_usage *u)
{
    char *text = slurp("/proc/%d/io", pid);
    u->io_known = text && strstr(text, "\nread_bytes:");
    u->read_bytes = number_after(text, "\nread_bytes:");
    u->written_bytes = number_after(text, "\nwrite_bytes:");
    free(text);
}

void usage_add_delay(pid_t pid, struct counts_usage *u)
{
    /* ns on a CPU, ns waited for one, turns */
    char *text = slurp("/proc/%d/schedstat", pid), *space = text ? strchr(text, ' ') : NULL;
    u->delay_known = space != NULL;
    u->delayed = space ? strtoull(space, NULL, 10) : 0;
    free(text);
}

/* Fields of /proc/PID/stat after the name, which may hold anything; from 3 on. */
static bool stat_fields(pid_t pid, unsigned long long field[52])
{
    char *text = slurp("/proc/%d/stat", pid), *s = text ? strrchr(text, ')') : NULL;
    memset(field, 0, 52 * sizeof *field);
    if (!s) {
        free(text);
        return false;
    }
    s += 3; /* ") " and the state's letter */
    for (int i = 4; i < 52 && *s; i++)
        field[i] = strtoull(s, &s, 10);
    free(text);
    return true;
}

static void add_switches(pid_t pid, struct counts_usage *u)
{
    struct pids threads = {0};
    char path[96], *text;
    proc_threads(pid, &threads);
    for (size_t i = 0; i < threads.len; i++) {
        snprintf(path, sizeof path, "/proc/%d/task/%d/status", pid, threads.data[i]);
        if (io_slurp(path, FILE_MAX, &text, NULL, NULL))
            continue;
        u->voluntary += number_after(text, "\nvoluntary_ctxt_switches:");
        u->involuntary += number_after(text, "\nnonvoluntary_ctxt_switches:");
        free(text);
    }
    vector_release(&threads);
}

void usage_of_process(pid_t pid, struct counts_usage *u)
{
    unsigned long long f[52];
    uint64_t tick = 1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK);
    *u = (struct counts_usage){0};
    if (!stat_fields(pid, f))
        return;
    u->minor_faults = f[10] + f[11];
    u->major_faults = f[12] + f[13];
    u->user = (f[14] + f[16]) * tick;
    u->sys = (f[15] + f[17]) * tick;
    u->max_rss = proc_peak_rss(pid);
    add_switches(pid, u);
    usage_add_io(pid, u);
    usage_add_delay(pid, u);
}

bool usage_pulse(pid_t pid, uint64_t *faults, uint64_t *switches)
{
    unsigned long long f[52];
    struct counts_usage u = {0};
    if (!stat_fields(pid, f))
        return false;
    add_switches(pid, &u);
    *faults = f[10] + f[12];
    *switches = u.voluntary + u.involuntary;
    return true;
}

void usage_of_child(const struct rusage *r, struct counts_usage *u)
{
    u->user = (uint64_t)r->ru_utime.tv_sec * 1000000000 + (uint64_t)r->ru_utime.tv_usec * 1000;
    u->sys = (uint64_t)r->ru_stime.tv_sec * 1000000000 + (uint64_t)r->ru_stime.tv_usec * 1000;
    u->max_rss = (uint64_t)r->ru_maxrss * 1024;
    u->minor_faults = (uint64_t)r->ru_minflt;
    u->major_faults = (uint64_t)r->ru_majflt;
    u->voluntary = (uint64_t)r->ru_nvcsw;
    u->involuntary = (uint64_t)r->ru_nivcsw;
}

void usage_between(const struct counts_usage *before, const struct counts_usage *after,
                   struct counts_usage *out)
{
    *out = *after;
#define LESS(field) out->field = after->field > before->field ? after->field - before->field : 0
    LESS(user);
    LESS(sys);
    LESS(minor_faults);
    LESS(major_faults);
    LESS(voluntary);
    LESS(involuntary);
    LESS(read_bytes);
    LESS(written_bytes);
    LESS(delayed);
#undef LESS
}

uint64_t usage_stolen(void)
{
    char *text;
    uint64_t ticks = 0;
    if (io_slurp("/proc/stat", (size_t)16 << 20, &text, NULL, NULL))
        return 0;
    /* "cpu  user nice system idle iowait irq softirq steal ..." */
    char *at = text_starts(text, "cpu ") ? text + 4 : NULL;
    for (int i = 0; at && i < 8; i++)
        ticks = strtoull(at, &at, 10);
    free(text);
    return ticks * (1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK));
}

void usage_fill(struct counts *c, const struct counts_usage *u, struct counts_value *values)
{
    const struct {
        const char *plain;
        uint64_t value;
    } known[] = {{"task-clock", u->user + u->sys},
                 {"cpu-clock", u->user + u->sys},
                 {"page-faults", u->minor_faults + u->major_faults},
                 {"minor-faults", u->minor_faults},
                 {"major-faults", u->major_faults},
                 {"context-switches", u->voluntary + u->involuntary}};
    for (size_t i = 0; i < c->events.len; i++) {
        struct counts_event *e = &c->events.data[i];
        for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
            if ((!e->refused && e->origin != COUNTS_ACCOUNTED) || strcmp(e->plain, known[k].plain))
                continue;
            values[i] =
                (struct counts_value){.known = true, .value = (double)known[k].value, .share = 1};
            e->origin = COUNTS_ACCOUNTED;
            e->refused = NULL;
        }
    }
}
