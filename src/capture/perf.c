/* Perf events in time order; see perf.h. perf_open.c asks the kernel for them. */
#include "capture/perf.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "capture/perf_internal.h"

struct perf *perf_new(const struct perf_options *options)
{
    struct perf *p = memory_alloc(sizeof *p);
    p->options = *options;
    p->ability.kernel = !options->no_kernel;
    p->ability.build_ids = true;
    p->tells_lost = true;
    perf_find_cpus(p);
    return p;
}

void perf_enable(struct perf *p)
{
    for (size_t i = 0; i < p->fds.len; i++)
        ioctl(p->fds.data[i].fd, PERF_EVENT_IOC_ENABLE, 0);
}

void perf_disable(struct perf *p)
{
    for (size_t i = 0; i < p->fds.len; i++)
        ioctl(p->fds.data[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}

void perf_sample(struct perf *p, bool on)
{
    for (size_t i = 0; i < p->fds.len; i++)
        if (p->fds.data[i].event >= 0)
            ioctl(p->fds.data[i].fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

/* A clock of each task keeps its period: an inherited one could not be changed. */
static bool is_fixed(const struct perf *p, int event)
{
    return p->options.event[event].timed && !(p->filter && event == p->clock);
}

bool perf_set_rate(struct perf *p, uint64_t rate)
{
    bool all = true;
    for (size_t i = 0; i < p->fds.len; i++) {
        int event = p->fds.data[i].event;
        if (event < 0 || event >= (int)p->options.events || !p->options.event[event].by_rate)
            continue;
        const struct event *e = &p->options.event[event];
        uint64_t period = event_period(e, rate);
        if (is_fixed(p, event)) {
            all &= rate <= p->options.rate;
            p->thin = period;
            continue;
        }
        uint64_t value = e->timed ? period : rate;
        ioctl(p->fds.data[i].fd, PERF_EVENT_IOC_PERIOD, &value);
    }
    if (p->filter) {
        uint64_t period = event_period(&p->options.event[p->clock], rate);
        *vector_push(&p->periods) = (struct perf_period){.since = clock_now(), .period = period};
    }
    return all;
}

uint64_t perf_weigh(struct perf *p, int event, const struct perf_record *r)
{
    if (event >= (int)p->options.events || !p->options.event[event].timed ||
        !p->options.event[event].by_rate)
        return r->period;
    if (!is_fixed(p, event)) {
        size_t i = p->periods.len;
        while (i > 0 && p->periods.data[i - 1].since > r->time)
            i--;
        return i ? p->periods.data[i - 1].period : r->period;
    }
    if (r->period >= p->thin)
        return r->period;
    /* One in thin / period, by chance, so that nothing can be in step with it. */
    p->random = p->random * 6364136223846793005u + 1442695040888963407u;
    return (double)(p->random >> 11) * 0x1p-53 * (double)p->thin < (double)r->period ? p->thin : 0;
}

const struct perf_ability *perf_ability(const struct perf *p)
{
    return &p->ability;
}

void perf_mute(struct perf *p, pid_t pid, bool mute)
{
    if (p->filter)
        tree_filter_mute(p->filter, pid, mute);
}

void perf_tell(struct perf *p, pid_t pid)
{
    if (p->filter)
        tree_filter_tell(p->filter, pid);
}

struct frame_copies *perf_copies(struct perf *p)
{
    return p->filter ? tree_filter_copies(p->filter) : NULL;
}

struct commands *perf_commands(struct perf *p)
{
    return p->filter ? tree_filter_commands(p->filter) : NULL;
}

size_t perf_cpus(const struct perf *p)
{
    return p->cpus.len;
}

size_t perf_poll_fds(const struct perf *p, const int **fds)
{
    *fds = p->poll.data;
    return p->poll.len;
}

void perf_refresh(struct perf *p)
{
    for (size_t i = 0; i < p->cpus.len; i++) {
        ring_refresh(&p->cpus.data[i].samples);
        ring_refresh(&p->cpus.data[i].tasks);
        ring_refresh(&p->cpus.data[i].counts);
    }
}

void perf_scan(struct perf *p, void (*each)(void *context, const struct perf_record *r),
               void *context)
{
    if (p->filter)
        tree_filter_hush(p->filter); /* before they are looked for: another one rings again */
    for (size_t i = 0; i < p->cpus.len; i++) {
        struct ring *ring = &p->cpus.data[i].samples;
        const struct perf_event_header *h;
        struct perf_record r;
        if (!ring->page)
            continue;
        ring_refresh(ring);
        while ((h = ring_scan(ring)))
            if (perf_record_decode(h, UNWIND_PERF_COUNT, &r))
                each(context, &r);
    }
}

static void consider(struct ring *r, struct ring **best, uint64_t *best_time)
{
    const struct perf_event_header *h = r->page ? ring_peek(r) : NULL;
    uint64_t t = h ? perf_record_time(h) : UINT64_MAX;
    if (t < *best_time) {
        *best = r;
        *best_time = t;
    }
}

bool perf_next(struct perf *p, uint64_t until, struct perf_record *r)
{
    if (p->taken) {
        ring_take(p->taken);
        p->taken = NULL;
    }
    for (;;) {
        struct ring *best = NULL;
        uint64_t time = UINT64_MAX;
        for (size_t i = 0; i < p->cpus.len; i++) {
            /* Of two at the same instant the task's comes first: a mapping before its sample. */
            consider(&p->cpus.data[i].tasks, &best, &time);
            consider(&p->cpus.data[i].samples, &best, &time);
            consider(&p->cpus.data[i].counts, &best, &time);
        }
        if (!best || time >= until)
            return false;
        if (perf_record_decode(ring_peek(best), UNWIND_PERF_COUNT, r)) {
            p->taken = best;
            return true;
        }
        p->malformed++;
        ring_take(best);
    }
}

uint64_t perf_malformed(const struct perf *p)
{
    return p->malformed;
}

void perf_read_totals(const struct perf *p, struct perf_totals *out)
{
    *out = (struct perf_totals){0};
    if (p->filter)
        out->unfollowed = tree_filter_missed(p->filter);
    for (size_t i = 0; i < p->fds.len; i++) {
        const struct perf_fd *f = &p->fds.data[i];
        uint64_t value[2] = {0}; /* the count; what was lost, where it was asked for */
        if (read(f->fd, value, sizeof value) < (ssize_t)sizeof *value)
            continue;
        if (f->event == PERF_OF_COUNTS)
            out->cpu += value[0];
        else if (f->event >= 0)
            out->lost[f->event] += value[1];
    }
}

int perf_event_of(const struct perf *p, uint64_t id)
{
    const uint64_t *at = map_get(&p->ids, id, 0);
    return at ? (int)*at : -1;
}

int perf_switches(const struct perf *p)
{
    if (!p->options.wall || !p->ability.kernel)
        return -1;
    for (size_t i = 0; i < p->options.events; i++) {
        const struct event *e = &p->options.event[i];
        if (e->type == PERF_TYPE_SOFTWARE && e->config == PERF_COUNT_SW_CONTEXT_SWITCHES)
            return (int)i;
    }
    return -1;
}

void perf_free(struct perf *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->cpus.len; i++) {
        ring_close(&p->cpus.data[i].samples);
        ring_close(&p->cpus.data[i].tasks);
        ring_close(&p->cpus.data[i].counts);
    }
    for (size_t i = 0; i < p->fds.len; i++)
        close(p->fds.data[i].fd);
    tree_filter_free(p->filter);
    vector_release(&p->cpus);
    vector_release(&p->fds);
    vector_release(&p->poll);
    vector_release(&p->periods);
    map_release(&p->ids);
    free(p);
}
