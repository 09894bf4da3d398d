/* The budget's measuring and choosing; see budget.h. */
#include "capture/budget.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "capture/heap.h"
#include "capture/session_internal.h"

#define SECOND 1000000000ull
#define EVERY (SECOND / 4)
#define FADE 0.6                   /* of what was measured before, at each look */
#define LEAST_CPU (20 * 1000000.0) /* of the target: with less, nothing can be said */
#define RATE_MIN 5
#define PACE_MAX 16
#define LEVEL_MAX 9    /* samples of the heap 512 times as far apart: beyond, they say nothing */
#define CALM 3         /* looks well below the budget before more is taken again */
#define BY_MAX 8       /* times less, in one step */
#define DEAR 0.25      /* part of the cost that is worth lowering */
#define DEBT 0.5       /* of the budget, while more was spent than it allows so far */
#define ROOM 0.8       /* of the budget, that may be used on purpose */
#define KERNEL_NS 4e3  /* the kernel's part of a sample, about: interrupt and copy of the stack */
#define SAMPLE_NS 25e3 /* our own part, at most: what is beyond goes to looking at all */
#define STEPS_MAX 1000
#define STEPS_TOLD 6

/* Everything since the beginning. */
struct reading {
    double target, own, heap_own, agents, heap, samples;
};

enum part { PART_SAMPLES, PART_HEAP, PART_ROUNDS, PARTS };

struct step {
    uint64_t time, rate;
    uint32_t level;
};

struct budget {
    struct session *session;
    double share;
    uint64_t asked, rate;
    uint32_t level; /* see heaps_set_level */
    unsigned pace, calm;
    uint64_t start, next, since;
    struct reading first, last;
    double target, part[PARTS];      /* of late, in ns: older ones fade */
    double rate_time, interval_time; /* sums over time, for means */
    uint64_t rate_least;
    uint32_t level_most;
    uint32_t rate_curve, heap_curve;
    VECTOR(struct step) steps;
};

static bool samples_heap(const struct budget *b)
{
    return b->session->heaps && b->session->options->heap == HEAP_SAMPLED;
}

static uint64_t interval_of(const struct budget *b)
{
    uint64_t asked = b->session->options->heap_interval;
    return (asked ? asked : HEAP_INTERVAL_DEFAULT) << b->level;
}

static struct reading read_all(const struct session *s)
{
    return (struct reading){.target = (double)s->target_cpu,
                            .own = (double)clock_own_cpu(),
                            .heap_own = (double)s->heap_own,
                            .agents = (double)s->agents_cost,
                            .heap = s->heaps ? (double)heaps_cost(s->heaps) : 0,
                            .samples = (double)writer_samples(s->writer)};
}

static struct reading difference(const struct reading *a, const struct reading *b)
{
    return (struct reading){.target = a->target - b->target,
                            .own = a->own - b->own,
                            .heap_own = a->heap_own - b->heap_own,
                            .agents = a->agents - b->agents,
                            .heap = a->heap - b->heap,
                            .samples = a->samples - b->samples};
}

static void curves_add(struct budget *b, uint64_t now)
{
    struct writer *w = b->session->writer;
    writer_point(w, b->rate_curve, now, (int64_t)b->rate);
    if (samples_heap(b))
        writer_point(w, b->heap_curve, now, (int64_t)interval_of(b));
}

struct budget *budget_new(struct session *s)
{
    struct budget *b = memory_alloc(sizeof *b);
    b->session = s;
    b->share = s->options->budget / 100;
    b->asked = b->rate = b->rate_least = s->options->perf.rate;
    b->pace = 1;
    b->start = b->since = clock_now();
    b->next = b->start + EVERY / 4;
    b->first = b->last = read_all(s);
    b->rate_curve = writer_series(s->writer, "sampling rate", UNIT_COUNT, WRITER_NONE, WRITER_NONE);
    if (samples_heap(b))
        b->heap_curve =
            writer_series(s->writer, "heap interval", UNIT_BYTES, WRITER_NONE, WRITER_NONE);
    curves_add(b, b->start);
    return b;
}

void budget_free(struct budget *b)
{
    if (!b)
        return;
    vector_release(&b->steps);
    free(b);
}

unsigned budget_pace(const struct budget *b)
{
    return b->pace;
}

/* Closes the stretch of time with the present rates. */
static void add_time(struct budget *b, uint64_t now)
{
    double seconds = (double)(now - b->since) / SECOND;
    b->rate_time += seconds * (double)b->rate;
    b->interval_time += seconds * (double)interval_of(b);
    b->since = now;
}

static void change(struct budget *b, uint64_t rate, uint32_t level, uint64_t now)
{
    struct session *s = b->session;
    add_time(b, now);
    if (rate != b->rate) {
        if (s->perf)
            perf_set_rate(s->perf, rate);
        if (s->agents)
            agents_set_interval(s->agents, SECOND / rate);
        s->rate = rate;
    }
    if (level != b->level)
        heaps_set_level(s->heaps, level);
    b->rate = rate;
    b->level = level;
    b->rate_least = rate < b->rate_least ? rate : b->rate_least;
    b->level_most = level > b->level_most ? level : b->level_most;
    if (b->steps.len < STEPS_MAX)
        *vector_push(&b->steps) = (struct step){.time = now, .rate = rate, .level = level};
    curves_add(b, now);
}

/* Samples of the CPU, or of the heap, by as much as it takes; false if they are at their end. */
static bool lower(struct budget *b, enum part part, double ratio, uint64_t now)
{
    double by = ratio * 1.15 < BY_MAX ? ratio * 1.15 : BY_MAX;
    uint64_t rate = (uint64_t)((double)b->rate / by);
    uint32_t level = b->level;
    if (part == PART_ROUNDS) {
        bool slower = b->pace < PACE_MAX;
        b->pace *= slower ? 2 : 1;
        return slower;
    }
    if (part == PART_SAMPLES && b->rate > RATE_MIN) {
        change(b, rate < RATE_MIN ? RATE_MIN : rate, level, now);
        return true;
    }
    if (part != PART_HEAP || !samples_heap(b) || level >= LEVEL_MAX)
        return false;
    for (; by > 1 && level < LEVEL_MAX; by /= 2)
        level++;
    change(b, b->rate, level, now);
    return true;
}

/* The dearest, and what else is dear; if that is at its end, whatever is not. */
static void lower_dearest(struct budget *b, double cost, double ratio, uint64_t now)
{
    bool done = false;
    for (enum part i = 0; i < PARTS; i++)
        if (b->part[i] > DEAR * cost)
            done |= lower(b, i, ratio, now);
    for (enum part i = 0; i < PARTS && !done; i++)
        done = lower(b, i, ratio, now);
    /* What went before was at another rate: it is no reason for the next step. */
    b->target = 0;
    for (size_t i = 0; i < PARTS; i++)
        b->part[i] = 0;
}

/* What was given up last comes back first, if the budget has room for it. */
static void raise_again(struct budget *b, double cost, double allowed, uint64_t now)
{
    double room = ROOM * allowed - cost, cut = (double)b->asked / (double)b->rate;
    if (b->level && (double)(1u << b->level) >= cut && b->part[PART_HEAP] <= room) {
        change(b, b->rate, b->level - 1, now);
    } else if (b->rate < b->asked && 0.4 * b->part[PART_SAMPLES] <= room) {
        uint64_t rate = (uint64_t)((double)b->rate * 1.4) + 1;
        change(b, rate < b->asked ? rate : b->asked, b->level, now);
    } else if (b->pace > 1 && b->part[PART_ROUNDS] <= room) {
        b->pace /= 2;
    }
}

void budget_tick(struct budget *b, uint64_t now)
{
    if (now < b->next)
        return;
    b->next = now + EVERY;
    struct reading all = read_all(b->session), d = difference(&all, &b->last);
    double looking = d.own - d.heap_own, sampling = d.samples * SAMPLE_NS, cost = 0;
    b->last = all;
    sampling = looking < sampling ? looking : sampling;
    const double part[PARTS] = {[PART_SAMPLES] = sampling + d.agents + d.samples * KERNEL_NS,
                                [PART_HEAP] = d.heap,
                                [PART_ROUNDS] = looking - sampling + d.heap_own};
    b->target = FADE * b->target + d.target;
    for (size_t i = 0; i < PARTS; i++) {
        b->part[i] = FADE * b->part[i] + part[i];
        cost += b->part[i];
    }
    /* Who has spent too much altogether makes up for it. */
    double spent = all.own - b->first.own + all.agents - b->first.agents + all.heap -
                   b->first.heap + (all.samples - b->first.samples) * KERNEL_NS;
    bool behind = spent > b->share * (all.target - b->first.target);
    double allowed = b->share * b->target * (behind ? DEBT : 1);
    if (b->target < LEAST_CPU)
        return;
    b->calm = cost < 0.6 * allowed ? b->calm + 1 : 0;
    if (cost > allowed)
        lower_dearest(b, cost, cost / allowed, now);
    else if (b->calm >= CALM)
        raise_again(b, cost, allowed, now);
}

void budget_stop(struct budget *b, uint64_t now)
{
    b->last = read_all(b->session);
    add_time(b, now);
    curves_add(b, now);
}

static double percent(const struct budget *b, double ns)
{
    double target = b->last.target - b->first.target;
    return target > 0 ? 100 * ns / target : 0;
}

static void tell_steps(const struct budget *b, struct text *t)
{
    for (size_t i = 0; i < b->steps.len; i++) {
        if (b->steps.len > STEPS_TOLD && i == STEPS_TOLD - 1) {
            text_format(t, "; … %zu more", b->steps.len - STEPS_TOLD);
            i = b->steps.len - 1;
        }
        const struct step *p = &b->steps.data[i];
        text_format(t, "%s at %.1f s %llu a second", i ? ";" : ": ",
                    (double)(p->time - b->start) / SECOND, (unsigned long long)p->rate);
        if (!samples_heap(b))
            continue;
        text_add(t, " and ");
        text_add_bytes(t, (interval_of(b) >> b->level) << p->level);
    }
}

static void tell_given_up(struct budget *b)
{
    struct text t = TEXT_INIT;
    double seconds = (double)(b->since - b->start) / SECOND;
    if (!b->steps.len || seconds <= 0) {
        writer_note(b->session->writer, NOTE_INFO, "nothing was given up for the budget");
        return;
    }
    text_format(&t,
                "given up for the budget: of %llu samples a second that were asked for, "
                "%.0f were taken on average, %llu at the least",
                (unsigned long long)b->asked, b->rate_time / seconds,
                (unsigned long long)b->rate_least);
    if (b->level_most) {
        text_add(&t, "; samples of the heap were to be ");
        text_add_bytes(&t, interval_of(b) >> b->level);
        text_add(&t, " apart and were ");
        text_add_bytes(&t, (uint64_t)(b->interval_time / seconds));
        text_add(&t, " on average");
    }
    tell_steps(b, &t);
    writer_note(b->session->writer, NOTE_INFO, t.data);
    text_release(&t);
}

void budget_tell(struct budget *b)
{
    struct session *s = b->session;
    struct reading d = difference(&b->last, &b->first);
    double kernel = d.samples * KERNEL_NS, inside = d.agents + d.heap;
    double whole = percent(b, d.own + inside + kernel);
    char note[400], number[32];
    snprintf(note, sizeof note,
             "budget: %.3g %% of the target's CPU time; measured: %.2f %% while it ran (%.2f %% "
             "sonde beside it, %.2f %% inside it, about %.2f %% the kernel for samples)%s",
             100 * b->share, whole, percent(b, d.own), percent(b, inside), percent(b, kernel),
             d.target < LEAST_CPU      ? ": it ran too shortly to adapt"
             : whole <= 100 * b->share ? ""
             : b->steps.len            ? ": more than that, in spite of what was given up"
                                       : ": more than that; it ended before anything was given up");
    writer_note(s->writer, whole > 100 * b->share ? NOTE_WARNING : NOTE_INFO, note);
    tell_given_up(b);
    snprintf(number, sizeof number, "%.4g", 100 * b->share);
    writer_meta(s->writer, "budget", number);
    snprintf(number, sizeof number, "%.4g", whole);
    writer_meta(s->writer, "budget_cost", number);
}
