/* Means, spreads and ratios of counts; see counting.h. */
#include "analyze/counting.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/statistics.h"
#include "base/text.h"

static double *known_values(const struct counts *c, size_t event, size_t *n)
{
    double *values = memory_array(c->runs.len ? c->runs.len : 1, sizeof *values);
    *n = 0;
    for (size_t i = 0; i < c->runs.len; i++)
        if (c->runs.data[i].values[event].known)
            values[(*n)++] = c->runs.data[i].values[event].value;
    return values;
}

struct counting_sum counting_sum(const struct counts *c, size_t event)
{
    size_t n;
    double *values = known_values(c, event, &n), share = 0;
    struct counting_sum s = {.known = n > 0 && !c->events.data[event].refused};
    for (size_t i = 0; i < c->runs.len; i++)
        share += c->runs.data[i].values[event].known ? c->runs.data[i].values[event].share : 0;
    s.mean = statistics_mean(values, n);
    s.share = n ? share / (double)n : 0;
    if (n > 1 && s.mean > 0)
        s.spread = statistics_deviation(values, n) / sqrt((double)n) / s.mean * 100;
    free(values);
    return s;
}

struct counts_value *counting_means(const struct counts *c)
{
    struct counts_value *means = memory_array(c->events.len + 1, sizeof *means);
    for (size_t i = 0; i < c->events.len; i++) {
        struct counting_sum s = counting_sum(c, i);
        means[i] = (struct counts_value){.known = s.known, .value = s.mean, .share = s.share};
    }
    return means;
}

struct counts_usage counting_usage(const struct counts *c)
{
    struct counts_usage sum = {.io_known = true, .delay_known = true};
    uint64_t n = c->runs.len ? c->runs.len : 1;
    for (size_t i = 0; i < c->runs.len; i++) {
        const struct counts_usage *u = &c->runs.data[i].usage;
        sum.real += u->real;
        sum.user += u->user;
        sum.sys += u->sys;
        sum.minor_faults += u->minor_faults;
        sum.major_faults += u->major_faults;
        sum.voluntary += u->voluntary;
        sum.involuntary += u->involuntary;
        sum.read_bytes += u->read_bytes;
        sum.written_bytes += u->written_bytes;
        sum.stolen += u->stolen;
        sum.delayed += u->delayed;
        sum.io_known &= u->io_known;
        sum.delay_known &= u->delay_known;
        sum.rss_bound = u->max_rss > sum.max_rss ? u->rss_bound : sum.rss_bound;
        sum.max_rss = u->max_rss > sum.max_rss ? u->max_rss : sum.max_rss;
    }
    uint64_t *means[] = {&sum.real,          &sum.user,      &sum.sys,         &sum.minor_faults,
                         &sum.major_faults,  &sum.voluntary, &sum.involuntary, &sum.read_bytes,
                         &sum.written_bytes, &sum.stolen,    &sum.delayed};
    for (size_t i = 0; i < sizeof means / sizeof *means; i++)
        *means[i] = (*means[i] + n / 2) / n;
    return sum;
}

double counting_real_error(const struct counts *c)
{
    double *real = memory_array(c->runs.len + 1, sizeof *real);
    for (size_t i = 0; i < c->runs.len; i++)
        real[i] = (double)c->runs.data[i].usage.real;
    double error =
        c->runs.len ? statistics_deviation(real, c->runs.len) / sqrt((double)c->runs.len) : 0;
    free(real);
    return error;
}

static double value_of(const struct counts *c, const struct counts_value *values, const char *plain)
{
    size_t i = counts_find(c, plain);
    return i != SIZE_MAX && values[i].known ? values[i].value : 0;
}

static void set_metric(struct counting_metric *m, double part, double whole, double factor,
                       int decimals, const char *unit)
{
    if (!(whole > 0))
        return;
    m->known = true;
    m->value = part / whole * factor;
    m->decimals = decimals;
    m->unit = unit;
}

/* Misses of what they are misses of. */
static bool miss_ratio(const struct counts *c, const struct counts_value *values, const char *plain,
                       double value, struct counting_metric *m)
{
    static const struct {
        const char *miss, *of, *unit;
    } pairs[] = {{"branch-misses", "branches", "% of all branches"},
                 {"cache-misses", "cache-references", "% of all cache refs"},
                 {"stalled-cycles-frontend", "cycles", "% frontend cycles idle"},
                 {"stalled-cycles-backend", "cycles", "% backend cycles idle"}};
    static const struct {
        const char *miss, *of;
    } tails[] = {{"-load-misses", "-loads"},
                 {"-store-misses", "-stores"},
                 {"-prefetch-misses", "-prefetches"},
                 {"-misses", "-loads"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (!strcmp(plain, pairs[i].miss)) {
            set_metric(m, value, value_of(c, values, pairs[i].of), 100, 2, pairs[i].unit);
            return m->known;
        }
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        if (!text_ends(plain, tails[i].miss))
            continue;
        int stem = (int)(strlen(plain) - strlen(tails[i].miss));
        char of[96];
        snprintf(of, sizeof of, "%.*s%s", stem, plain, tails[i].of);
        bool last = stem == 3 && !strncmp(plain, "LLC", 3), tlb = stem > 3 && strstr(plain, "TLB");
        snprintf(m->of, sizeof m->of, "%% of all %.*s%s accesses", last ? 8 : stem,
                 last ? "LL-cache" : plain, tlb ? " cache" : "");
        set_metric(m, value, value_of(c, values, of), 100, 2, m->of);
        return m->known;
    }
    return false;
}

static void set_rate(struct counting_metric *m, double value, double ns)
{
    static const char *const units[] = {"/sec", "K/sec", "M/sec", "G/sec"};
    if (!(ns > 0))
        return;
    double rate = value / ns * 1e9;
    size_t i = 0;
    for (; rate >= 1000 && i < 3; i++)
        rate /= 1000;
    set_metric(m, rate, 1, 1, 3, units[i]);
}

void counting_metric(const struct counts *c, const struct counts_value *values, uint64_t elapsed,
                     size_t event, struct counting_metric *out)
{
    const struct counts_event *e = &c->events.data[event];
    double value = values[event].value, cpu = value_of(c, values, "task-clock");
    *out = (struct counting_metric){.unit = ""};
    if (!values[event].known)
        return;
    if (!(cpu > 0))
        cpu = value_of(c, values, "cpu-clock");
    if (e->timed) {
        set_metric(out, value, (double)elapsed, 1, 3, "CPUs utilized");
    } else if (!strcmp(e->plain, "cycles") && cpu > 0) {
        set_metric(out, value, cpu, 1, 3, "GHz");
    } else if (!strcmp(e->plain, "instructions") && value_of(c, values, "cycles") > 0) {
        set_metric(out, value, value_of(c, values, "cycles"), 1, 2, "insn per cycle");
    } else if (!miss_ratio(c, values, e->plain, value, out) && e->origin != COUNTS_SIMULATED) {
        set_rate(out, value, cpu);
    }
}
