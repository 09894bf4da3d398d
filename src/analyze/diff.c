/* Two profiles as one with two sides: whether, and by what measure, they compare; see diff.h. */
#include "analyze/diff_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "profile/merge.h"

#define ABOUT_EQUAL 0.05 /* of durations and totals */
#define SAME_RATE 0.01
/* Standard errors that a change must exceed. Chance gives 4 once in 16,000 comparisons, and a
 * program has thousands of functions. */
#define NOISE_ERRORS 4.0

struct kinship {
    const struct profile *profile;
    const struct selection *chosen;
    const char *file, *mode;
    uint64_t period;
};

static struct kinship kinship_of(const struct profile *p, const struct selection *s,
                                 const char *file)
{
    struct kinship k = {.profile = p, .chosen = s, .file = file};
    k.mode = profile_meta_get(p, "mode");
    for (size_t i = 0; i < p->events.len && !k.period; i++)
        if (s->event[i])
            k.period = p->events.data[i].period;
    return k;
}

static void add_period(struct text *out, enum value_unit unit, uint64_t period)
{
    if (unit == UNIT_NANOSECONDS)
        text_add_duration(out, period);
    else if (unit == UNIT_BYTES)
        text_add_bytes(out, period);
    else
        text_add_count(out, period);
}

static uint64_t heap_interval(const struct profile *p)
{
    const char *text = profile_meta_get(p, "heap_interval");
    return text ? strtoull(text, NULL, 10) : 0;
}

/* Heaps are recorded in ways of their own: each allocation, or one every so many bytes. */
static void find_heap_reason(const struct kinship *a, const struct kinship *b, struct text *out)
{
    uint64_t ia = heap_interval(a->profile), ib = heap_interval(b->profile);
    if (!text_starts(a->chosen->label.data ? a->chosen->label.data : "", "heap:") || ia == ib ||
        !profile_meta_get(a->profile, "heap_mode") || !profile_meta_get(b->profile, "heap_mode"))
        return;
    text_format(out, "%s%s has ", out->len ? "; " : "", a->file);
    for (int i = 0; i < 2; i++) {
        uint64_t interval = i ? ib : ia;
        text_add(out, interval ? "a sample every " : "every allocation");
        if (interval)
            text_add_bytes(out, interval);
        if (!i)
            text_format(out, " and %s ", b->file);
    }
}

/* Every reason against comparing the two, as half sentences. */
static void find_reasons(const struct kinship *a, const struct kinship *b, struct text *out)
{
    const char *la = a->chosen->label.data, *lb = b->chosen->label.data;
    if (strcmp(la ? la : "", lb ? lb : ""))
        text_format(out, "%s counts %s and %s counts %s", a->file, la, b->file, lb);
    else if (a->chosen->unit != b->chosen->unit)
        text_format(out, "%s is counted in different units in the two", la);
    if (a->mode && b->mode && strcmp(a->mode, b->mode))
        text_format(out, "%s%s was recorded by `sonde %s` and %s by `sonde %s`",
                    out->len ? "; " : "", a->file, a->mode, b->file, b->mode);
    if (a->period && b->period && a->chosen->unit == b->chosen->unit &&
        fabs((double)a->period - (double)b->period) > SAME_RATE * (double)a->period) {
        text_format(out, "%s%s has a sample every ", out->len ? "; " : "", a->file);
        add_period(out, a->chosen->unit, a->period);
        text_format(out, " and %s every ", b->file);
        add_period(out, b->chosen->unit, b->period);
    }
    find_heap_reason(a, b, out);
}

static int check_kinship(struct diff *d, const struct profile *before, const struct profile *after,
                         const struct selection *chosen[2], const struct diff_options *o,
                         struct error *err)
{
    struct kinship a = kinship_of(before, chosen[0], o->file[0]);
    struct kinship b = kinship_of(after, chosen[1], o->file[1]);
    find_reasons(&a, &b, &d->warnings);
    if (!d->warnings.len || o->anyway)
        return 0;
    return error_set(err, FAULT_INPUT, "they do not compare: %s; --anyway does it all the same",
                     d->warnings.data);
}

/* A side as it stood alone. The first keeps its indices when the second is added to it. */
struct side_own {
    const struct profile *profile;
    size_t events, threads, first_thread;
};

/* The part of the common profile that is a side: what was chosen of it when it stood alone. */
static void side_select(struct selection *s, const struct profile *p, const struct side_own *own,
                        const struct selection *chosen, const bool *stacks)
{
    *s = (struct selection){.profile = p,
                            .no_inline = chosen->no_inline,
                            .waits = chosen->waits,
                            .unit = chosen->unit,
                            .label = TEXT_INIT};
    text_add(&s->label, chosen->label.data ? chosen->label.data : "");
    s->event = memory_array(p->events.len + 1, sizeof *s->event);
    s->thread = memory_array(p->threads.len + 1, sizeof *s->thread);
    for (size_t i = 0; i < own->events; i++) {
        const char *name = profile_text(own->profile, own->profile->events.data[i].name);
        uint32_t event = profile_event_find(p, name);
        if (chosen->event[i] && event != PROFILE_NONE)
            s->event[event] = true;
    }
    for (size_t i = 0; i < own->threads; i++)
        s->thread[own->first_thread + i] = chosen->thread[i];
    if (stacks)
        s->stack = memory_dup(stacks, p->stacks.len * sizeof *stacks);
}

static void side_sum(struct selection *s)
{
    size_t cursor = 0;
    for (const struct profile_cell *c; (c = selection_next(s, &cursor));) {
        s->value += c->value;
        s->count += c->count;
    }
}

static bool has_module(const struct profile *p, const char *name)
{
    for (uint32_t i = 0; i < p->modules.len; i++)
        if (p->modules.data[i].kind == CODE_ELF && !strcmp(profile_module_name(p, i), name))
            return true;
    return false;
}

/* Only if neither side ran the other's program too: then it is not its successor. */
static void match_programs(struct diff *d, const struct profile *before,
                           const struct profile *after)
{
    if (!before->processes.len || !after->processes.len)
        return;
    const char *a = profile_process_name(before, 0), *b = profile_process_name(after, 0);
    if (strcmp(a, b) && has_module(before, a) && has_module(after, b) && !has_module(before, b) &&
        !has_module(after, a)) {
        d->program[0] = memory_strdup(a);
        d->program[1] = memory_strdup(b);
    }
}

/* "libfoo.so.1.2" and "libfoo.so.1.3" are the same library, and the programs that were run the same
 * program. */
static uint32_t module_name(const struct diff *d, struct names *names, uint32_t module)
{
    if (module == PROFILE_NONE)
        return names_add(names, "");
    const char *name = profile_module_name(d->profile, module), *so = strstr(name, ".so.");
    if (d->program[1] && !strcmp(name, d->program[1]))
        return names_add(names, d->program[0]);
    return names_add_len(names, name, so ? (size_t)(so - name) + 3 : strlen(name));
}

static void match_symbols(struct diff *d)
{
    const struct tree *t = &d->side[0].tree;
    struct names names = {0};
    struct map known = {0};
    d->key = memory_array(t->symbols.len + 1, sizeof *d->key);
    for (uint32_t i = 0; i < t->symbols.len; i++) {
        const struct tree_symbol *s = &t->symbols.data[i];
        uint32_t name = names_add(&names, s->name);
        uint32_t module = module_name(d, &names, s->module);
        d->key[i] = (uint32_t)*map_put(&known, name, (uint64_t)s->level << 32 | module, i, NULL);
    }
    names_release(&names);
    map_release(&known);
}

static bool about_equal(double a, double b)
{
    return fabs(a - b) <= ABOUT_EQUAL * (a > b ? a : b);
}

static int settle_measure(struct diff *d, enum diff_per wanted, struct error *err)
{
    struct diff_side *a = &d->side[0], *b = &d->side[1];
    const struct selection *x = &a->selection, *y = &b->selection;
    d->per = wanted;
    if (wanted == DIFF_PER_AUTOMATIC) {
        bool equal = about_equal((double)x->value, (double)y->value) &&
                     about_equal((double)a->duration, (double)b->duration);
        d->per = equal ? DIFF_PER_RUN : DIFF_PER_SHARE;
        d->chosen = !equal;
    }
    if (x->unit != y->unit)
        d->per = DIFF_PER_SHARE;
    if (d->per == DIFF_PER_SECOND && (!a->duration || !b->duration))
        return error_set(err, FAULT_INPUT,
                         "%s does not say how long it was recorded, so there is no value per "
                         "second: use --per run or --per share",
                         a->duration ? b->file : a->file);
    a->scale = b->scale = 1;
    if (d->per == DIFF_PER_SHARE && y->value)
        b->scale = (double)x->value / (double)y->value;
    else if (d->per == DIFF_PER_SECOND)
        b->scale = (double)a->duration / (double)b->duration;
    return 0;
}

static int check_samples(const struct diff *d, struct error *err)
{
    for (int i = 0; i < 2; i++)
        if (!d->side[i].selection.value)
            return error_set(err, FAULT_MISSING, "%s has no samples of %s in what was selected",
                             d->side[i].file, d->side[i].selection.label.data);
    return 0;
}

int diff_init(struct diff *d, struct profile *before, const struct profile *after,
              const struct selection *chosen[2], const struct diff_options *o, struct error *err)
{
    *d = (struct diff){.profile = before, .warnings = TEXT_INIT};
    int rc = check_kinship(d, before, after, chosen, o, err);
    if (rc)
        return rc;
    struct side_own own[2] = {
        {before, before->events.len, before->threads.len, 0},
        {after, after->events.len, after->threads.len, before->threads.len},
    };
    for (int i = 0; i < 2; i++) {
        const struct profile *p = own[i].profile;
        d->side[i].file = o->file[i];
        d->side[i].duration = p->end > p->start ? p->end - p->start : 0;
    }
    match_programs(d, before, after);
    rc = profile_merge(before, after, err);
    if (rc)
        return rc;
    struct selection stacks;
    rc =
        selection_init(&stacks, before,
                       &(struct selection_options){
                           .function = o->function, .module = o->module, .no_inline = o->no_inline},
                       err);
    for (int i = 0; i < 2 && !rc; i++) {
        side_select(&d->side[i].selection, before, &own[i], chosen[i], stacks.stack);
        side_sum(&d->side[i].selection);
        tree_init(&d->side[i].tree, &d->side[i].selection,
                  &(struct tree_options){.by_module = true, .by_name = true});
    }
    selection_release(&stacks);
    if (!rc)
        rc = check_samples(d, err);
    if (!rc)
        rc = settle_measure(d, o->per, err);
    if (!rc)
        match_symbols(d);
    return rc;
}

void diff_release(struct diff *d)
{
    for (int i = 0; i < 2; i++) {
        tree_release(&d->side[i].tree);
        selection_release(&d->side[i].selection);
    }
    text_release(&d->warnings);
    free(d->key);
    free(d->program[0]);
    free(d->program[1]);
}

/* Agresti and Caffo's interval: one success and one failure more on each side keep it honest for
 * functions that hardly ever, or always, were seen. */
double diff_noise(uint64_t a, uint64_t n, uint64_t b, uint64_t m)
{
    double x = ((double)a + 1) / ((double)n + 2), y = ((double)b + 1) / ((double)m + 2);
    double variance = x * (1 - x) / ((double)n + 2) + y * (1 - y) / ((double)m + 2);
    return variance > 0 ? 100 * NOISE_ERRORS * sqrt(variance) : 0;
}

static double points_of(const struct diff *d, uint64_t before, uint64_t after)
{
    return 100 * ((double)after / (double)d->side[1].selection.value -
                  (double)before / (double)d->side[0].selection.value);
}

size_t diff_grown(const struct diff *d, double points, struct text *worst)
{
    uint64_t n = d->side[0].selection.count, m = d->side[1].selection.count;
    struct changes c = {0};
    double most = 0;
    size_t grown = 0;
    changes_of_functions(d, &c);
    for (size_t i = 0; i < c.all.len; i++) {
        const struct cost *a = &c.all.data[i].cost[0], *b = &c.all.data[i].cost[1];
        double self = points_of(d, a->self, b->self), total = points_of(d, a->total, b->total);
        double self_noise = diff_noise(a->self_count, n, b->self_count, m);
        double total_noise = diff_noise(a->total_count, n, b->total_count, m);
        bool by_self = self - self_noise > points;
        double by = by_self ? self : total, noise = by_self ? self_noise : total_noise;
        if (by - noise <= points)
            continue;
        grown++;
        if (by <= most)
            continue;
        most = by;
        text_clear(worst);
        text_format(worst, "%s grew by %.1f points of the total%s (chance explains %.1f)",
                    c.all.data[i].name, by, by_self ? " by itself" : " with what it calls", noise);
    }
    vector_release(&c.all);
    return grown;
}
