/* Perf events in time order; see perf.h. perf_open.c asks the kernel for them. */
#include "capture/perf.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

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

void perf_hold(struct perf *p, size_t event, bool held)
{
    for (size_t i = 0; i < p->fds.len; i++)
        if (p->fds.data[i].event == (int)event)
            ioctl(p->fds.data[i].fd, held ? PERF_EVENT_IOC_DISABLE : PERF_EVENT_IOC_ENABLE, 0);
}

const struct perf_ability *perf_ability(const struct perf *p)
{
    return &p->ability;
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
    vector_release(&p->cpus);
    vector_release(&p->fds);
    vector_release(&p->poll);
    map_release(&p->ids);
    free(p);
}
