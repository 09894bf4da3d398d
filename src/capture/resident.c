/* See resident.h. */
#include "capture/resident.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"
#include "capture/proc.h"
#include "capture/session_internal.h"

#define SECOND 1000000000ull
#define MS 1000000ull

/* Of one process of the recording. */
struct curve {
    uint32_t series;
    uint64_t last; /* bytes */
};

struct resident {
    uint64_t period, next; /* ns */
    struct map curves;     /* process's number in the recording -> struct curve */
};

struct resident *resident_new(uint64_t rate)
{
    struct resident *r = memory_alloc(sizeof *r);
    r->period = SECOND / rate;
    return r;
}

void resident_free(struct resident *r)
{
    if (!r)
        return;
    for (size_t i = 0; r->curves.len && i <= r->curves.mask; i++)
        if (r->curves.slots[i].used)
            free((void *)(uintptr_t)r->curves.slots[i].value);
    map_release(&r->curves);
    free(r);
}

struct look {
    struct resident *resident;
    struct session *session;
    uint64_t now;
};

/* A value that stays is not told again. */
static void look_at(void *context, struct process *p)
{
    struct look *k = context;
    struct writer *w = k->session->writer;
    uint64_t bytes = p->ended ? 0 : proc_rss(p->pid);
    bool added = false;
    if (!bytes)
        return;
    uint64_t *at = map_put(&k->resident->curves, p->id, 0, 0, &added);
    if (added)
        *at = (uint64_t)(uintptr_t)memory_alloc(sizeof(struct curve));
    struct curve *c = (struct curve *)(uintptr_t)*at;
    if (added)
        c->series = writer_series(w, "rss", UNIT_BYTES, p->id, WRITER_NONE);
    if (c->last == bytes)
        return;
    c->last = bytes;
    writer_point(w, c->series, k->now, (int64_t)bytes);
}

void resident_tick(struct resident *r, struct session *s, uint64_t now)
{
    if (!r || now < r->next || s->heaps)
        return;
    /* In step with the clock, however late this look is. */
    r->next = now - now % r->period + r->period;
    struct look k = {.resident = r, .session = s, .now = now};
    tasks_each_process(&s->tasks, look_at, &k);
}

uint64_t resident_wait(const struct resident *r, uint64_t now, uint64_t most)
{
    if (!r)
        return most;
    uint64_t left = r->next > now ? (r->next - now) / MS + 1 : 0;
    return left < most ? left : most;
}
