/* See resident.h. */
#include "capture/resident.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"
#include "capture/proc.h"
#include "capture/session_internal.h"
#include "capture/usage.h"

#define SECOND 1000000000ull
#define MS 1000000ull

#define PULSE (SECOND / 4) /* between two looks at faults and switches */
#define PULSES_MAX 64      /* processes that are looked at for them at a time */

enum { RSS, FAULTS, SWITCHES, KINDS };

/* Of one process of the recording. */
struct curve {
    uint32_t series[KINDS];
    uint64_t last[KINDS];
};

struct resident {
    uint64_t period, next, pulse; /* ns */
    struct map curves;            /* process's number in the recording -> struct curve */
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
    unsigned pulses; /* that may still be taken */
};

/* A value that stays is not told again. */
static void tell(const struct look *k, const struct process *p, unsigned kind, uint64_t value)
{
    static const char *const names[KINDS] = {"rss", "page faults", "switches"};
    struct writer *w = k->session->writer;
    bool added = false;
    uint64_t *at = map_put(&k->resident->curves, p->id, 0, 0, &added);
    if (added)
        *at = (uint64_t)(uintptr_t)memory_alloc(sizeof(struct curve));
    struct curve *c = (struct curve *)(uintptr_t)*at;
    if (!value || c->last[kind] == value)
        return;
    if (!c->last[kind])
        c->series[kind] = writer_series(w, names[kind], kind == RSS ? UNIT_BYTES : UNIT_COUNT,
                                        p->id, WRITER_NONE);
    c->last[kind] = value;
    writer_point(w, c->series[kind], k->now, (int64_t)value);
}

static void look_at(void *context, struct process *p)
{
    struct look *k = context;
    uint64_t faults, switches;
    if (p->ended)
        return;
    if (!k->session->heaps)
        tell(k, p, RSS, proc_rss(p->pid));
    if (!k->pulses || !usage_pulse(p->pid, &faults, &switches))
        return;
    k->pulses--;
    tell(k, p, FAULTS, faults);
    tell(k, p, SWITCHES, switches);
}

void resident_tick(struct resident *r, struct session *s, uint64_t now)
{
    if (!r || now < r->next)
        return;
    /* In step with the clock, however late this look is. */
    r->next = now - now % r->period + r->period;
    struct look k = {.resident = r, .session = s, .now = now};
    if (now >= r->pulse) {
        r->pulse = now - now % PULSE + PULSE;
        k.pulses = PULSES_MAX;
    }
    tasks_each_process(&s->tasks, look_at, &k);
}

uint64_t resident_wait(const struct resident *r, uint64_t now, uint64_t most)
{
    if (!r)
        return most;
    uint64_t left = r->next > now ? (r->next - now) / MS + 1 : 0;
    return left < most ? left : most;
}
