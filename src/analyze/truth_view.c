/* Findings about the truth, added up and as tables; see truth.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/truth.h"
#include "base/text.h"

/* How far a claim is on its way to its bound; beyond 1 it does not hold. */
static double strain(double error, double bound)
{
    return bound > 0 ? error / bound : error > 0 ? INFINITY : 0;
}

struct truth_kind truth_sum_up(const struct truth *t, const char *kind)
{
    struct truth_kind k = {.name = kind, .worst = NAN};
    for (size_t i = 0; i < t->claims.len; i++) {
        const struct truth_claim *c = &t->claims.data[i];
        if (strcmp(c->kind, kind) != 0)
            continue;
        k.wrong += !truth_holds(c);
        if (!k.claims++ || (c->known && strain(c->error, c->bound) >= strain(k.worst, k.bound))) {
            k.worst = c->known ? c->error : NAN;
            k.bound = c->bound;
        }
    }
    return k;
}

bool truth_kind_fails(const struct truth_kind *k)
{
    return k->wrong || (k->cost_known && k->cost - k->cost_noise > k->cost_bound);
}

static const char *verdict(const struct truth_kind *k)
{
    if (k->why)
        return "not here";
    return k->wrong ? "wrong" : truth_kind_fails(k) ? "dear" : "true";
}

void truth_view_kinds(struct view *v, const struct truth_kind *kinds, size_t count)
{
    enum { ERROR, BOUND, COST, COST_BOUND, NOISE, OWN, VERDICT, CLAIMS, KIND, WHY, COLUMNS };
    static const struct view_column columns[COLUMNS] = {
        [ERROR] = {.id = "error_percent", .heading = "error", .kind = VIEW_PERCENT},
        [BOUND] = {.id = "bound_percent", .heading = "bound", .kind = VIEW_PERCENT},
        [COST] = {.id = "cost_percent", .heading = "cost", .kind = VIEW_PERCENT},
        [COST_BOUND] = {.id = "cost_bound_percent", .heading = "bound", .kind = VIEW_PERCENT},
        [NOISE] = {.id = "cost_noise_percent", .heading = "± noise", .kind = VIEW_PERCENT},
        [OWN] = {.id = "collector_cpu", .heading = "sonde", .kind = VIEW_DURATION},
        [VERDICT] = {.id = "verdict", .heading = "is", .kind = VIEW_TEXT},
        [CLAIMS] = {.id = "claims", .heading = "claims", .kind = VIEW_COUNT},
        [KIND] = {.id = "kind", .heading = "What is measured", .kind = VIEW_TEXT, .fill = true},
        [WHY] = {.id = "why", .heading = "why", .kind = VIEW_TEXT, .from_width = VIEW_MACHINES},
    };
    struct view_section *s = view_add_table(v, "kinds", "", columns, COLUMNS);
    for (size_t i = 0; i < count; i++) {
        const struct truth_kind *k = &kinds[i];
        struct view_value *row = view_row(s, 0, truth_kind_fails(k) ? VIEW_STRONG : VIEW_PLAIN);
        row[KIND] = view_text(s, k->name);
        row[VERDICT] = view_text(s, verdict(k));
        if (k->why) {
            row[WHY] = view_text(s, k->why);
            continue;
        }
        row[CLAIMS] = view_number(k->claims);
        row[ERROR] = view_real(k->worst);
        row[BOUND] = view_real(k->bound);
        if (!k->cost_known)
            continue;
        row[COST] = view_real(k->cost);
        row[NOISE] = view_real(k->cost_noise);
        row[COST_BOUND] = view_real(k->cost_bound);
        row[OWN] = view_number(k->own);
    }
}

static void add_amount(struct text *t, const struct truth_claim *c, double value)
{
    uint64_t whole = value > 0 && value < 1e19 ? (uint64_t)(value + 0.5) : 0;
    if (c->share)
        text_format(t, "%.1f%%", value);
    else if (!c->known || c->unit == UNIT_COUNT)
        text_add_count(t, whole);
    else if (c->unit == UNIT_BYTES)
        text_add_bytes(t, whole);
    else
        text_add_duration(t, whole);
}

static struct view_value amount(struct view_section *s, const struct truth_claim *c, double value)
{
    struct text t = TEXT_INIT;
    add_amount(&t, c, value);
    struct view_value v = view_text(s, t.data);
    text_release(&t);
    return v;
}

static void claim_name(const struct truth_claim *c, char *out, size_t size)
{
    static const char *const before[] = {[TRUTH_SELF] = "own part of ",
                                         [TRUTH_TOTAL] = "",
                                         [TRUTH_COUNT] = "count of ",
                                         [TRUTH_LINE] = "line ",
                                         [TRUTH_SUM] = "all of it"};
    snprintf(out, size, "%s%s", before[c->what], c->name);
}

void truth_view_claims(struct view *v, const struct truth *const *truths, size_t count,
                       bool wrong_alone)
{
    enum { KIND, TRUTH, MEASURED, ERROR, BOUND, IS, WHAT, EVENT, VALUE, FOUND, COLUMNS };
    static const struct view_column columns[COLUMNS] = {
        [KIND] = {.id = "kind", .heading = "kind", .kind = VIEW_TEXT},
        [TRUTH] = {.id = "truth", .heading = "truth", .kind = VIEW_TEXT},
        [MEASURED] = {.id = "measured", .heading = "measured", .kind = VIEW_TEXT},
        [ERROR] = {.id = "error_percent", .heading = "error", .kind = VIEW_PERCENT},
        [BOUND] = {.id = "bound_percent", .heading = "bound", .kind = VIEW_PERCENT},
        [IS] = {.id = "verdict", .heading = "is", .kind = VIEW_TEXT},
        [WHAT] = {.id = "name", .heading = "Claims", .kind = VIEW_TEXT, .fill = true},
        [EVENT] = {.id = "event",
                   .heading = "event",
                   .kind = VIEW_TEXT,
                   .from_width = VIEW_MACHINES},
        [VALUE] = {.id = "expected", .heading = "", .kind = VIEW_REAL, .from_width = VIEW_MACHINES},
        [FOUND] = {.id = "found", .heading = "", .kind = VIEW_REAL, .from_width = VIEW_MACHINES},
    };
    struct view_section *s = view_add_table(v, "claims", "", columns, COLUMNS);
    for (size_t n = 0; n < count; n++)
        for (size_t i = 0; i < truths[n]->claims.len; i++) {
            const struct truth_claim *c = &truths[n]->claims.data[i];
            char name[512];
            if (wrong_alone && truth_holds(c))
                continue;
            struct view_value *row = view_row(s, 0, truth_holds(c) ? VIEW_PLAIN : VIEW_STRONG);
            claim_name(c, name, sizeof name);
            row[KIND] = view_text(s, c->kind);
            row[TRUTH] = amount(s, c, c->value);
            row[BOUND] = view_real(c->bound);
            row[IS] = view_text(s, !c->known ? "unknown" : truth_holds(c) ? "true" : "wrong");
            row[WHAT] = view_text(s, name);
            row[EVENT] = view_text(s, c->event);
            row[VALUE] = view_real(c->value);
            if (!c->known)
                continue;
            row[MEASURED] = amount(s, c, c->measured);
            row[ERROR] = view_real(c->error);
            row[FOUND] = view_real(c->measured);
        }
}
