/* See resident.h. */
#include "capture/resident.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/memory.h"
#include "capture/proc.h"
#include "capture/session_internal.h"
#include "capture/usage.h"

#define SECOND 1000000000ull
#define MS 1000000ull

#define GAP_MIN (SECOND / 25) /* unasked: between the first looks, */
#define GAP_MAX (SECOND / 2)  /* and between those of a long run */
#define GAP_PART 8            /* of the time so far */
#define PULSE (SECOND / 4)    /* asked: between two looks at faults and switches */
#define SLICE (2 * MS)        /* of one look: the rings wait meanwhile */
#define REST 200              /* times as long as a look took, before the next */

enum { RSS, FAULTS, SWITCHES, KINDS };

/* Of one process of the recording. */
struct curve {
    uint32_t series[KINDS];
    uint64_t last[KINDS];
    uint64_t round; /* it was last looked at in, as a whole */
};

struct resident {
    uint64_t period;             /* ns; 0: unasked */
    uint64_t start, next, pulse; /* pulse: the next look at faults and switches */
    uint64_t round;              /* goes on when all were looked at, which may take several looks */
    struct map curves;           /* process's number in the recording -> struct curve */
};

struct resident *resident_new(uint64_t rate)
{
    struct resident *r = memory_alloc(sizeof *r);
    r->period = rate == RESIDENT_UNASKED ? 0 : SECOND / rate;
    r->round = 1;
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
    bool pulse, full;
};

static struct curve *curve_of(struct resident *r, uint32_t process)
{
    bool added = false;
    uint64_t *at = map_put(&r->curves, process, 0, 0, &added);
    if (added)
        *at = (uint64_t)(uintptr_t)memory_alloc(sizeof(struct curve));
    return (struct curve *)(uintptr_t)*at;
}

/* A value that stays is not told again. */
static void tell(const struct look *k, const struct process *p, unsigned kind, uint64_t value)
{
    static const char *const names[KINDS] = {"rss", "page faults", "switches"};
    struct writer *w = k->session->writer;
    struct curve *c = curve_of(k->resident, p->id);
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
    struct resident *r = k->resident;
    struct curve *c = curve_of(r, p->id);
    uint64_t faults, switches;
    bool due = k->pulse && c->round != r->round;
    if (due && clock_now() - k->now >= SLICE) {
        k->full = true;
        due = false;
    }
    if (!k->session->heaps && (due || r->period))
        tell(k, p, RSS, proc_rss(p->pid));
    if (!due)
        return;
    c->round = r->round;
    if (!usage_pulse(p->pid, &faults, &switches))
        return;
    tell(k, p, FAULTS, faults);
    tell(k, p, SWITCHES, switches);
}

static uint64_t gap_of(const struct resident *r, uint64_t now)
{
    uint64_t gap = (now - r->start) / GAP_PART;
    return gap < GAP_MIN ? GAP_MIN : gap > GAP_MAX ? GAP_MAX : gap;
}

void resident_tick(struct resident *r, struct session *s, uint64_t now)
{
    if (!r || now < r->next)
        return;
    if (!r->start)
        r->start = now;
    struct look k = {.resident = r, .session = s, .now = clock_now(), .pulse = now >= r->pulse};
    uint64_t before = clock_own_cpu();
    tasks_each_process(&s->tasks, look_at, &k);
    if (k.pulse) {
        uint64_t gap = r->period ? PULSE : gap_of(r, now);
        uint64_t rest = (clock_own_cpu() - before) * REST;
        r->pulse = now + (gap > rest ? gap : rest);
        r->round += !k.full;
    }
    /* In step with the clock, however late this look is. */
    r->next = r->period ? now - now % r->period + r->period : r->pulse;
}

uint64_t resident_wait(const struct resident *r, uint64_t now, uint64_t most)
{
    if (!r)
        return most;
    uint64_t left = r->next > now ? (r->next - now) / MS + 1 : 0;
    return left < most ? left : most;
}
