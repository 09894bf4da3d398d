/* Benchmarks as views; see benchmark.h. */
#include <math.h>
#include <stdlib.h>

#include "analyze/benchmark.h"
#include "analyze/statistics.h"

#define FUNCTIONS_SHOWN 0.01 /* part of all, below which a function is not listed */

/* For people: rows of one table are of different kinds, so the texts are made here; the numbers
 * themselves stand beside them for machines. */
static struct view_value amount(struct view_section *s, enum view_kind kind, double value)
{
    struct text t = TEXT_INIT;
    uint64_t whole = value > 0 ? (uint64_t)llround(value) : 0;
    if (kind == VIEW_DURATION)
        text_add_duration(&t, whole);
    else if (kind == VIEW_BYTES)
        text_add_bytes(&t, whole);
    else
        text_add_count(&t, whole);
    struct view_value v = view_text(s, t.data);
    text_release(&t);
    return v;
}

static struct view_value percent_text(struct view_section *s, double part)
{
    struct text t = TEXT_INIT;
    if (!isfinite(part))
        return (struct view_value){0};
    text_format(&t, "%+.1f%%", part * 100);
    struct view_value v = view_text(s, t.data);
    text_release(&t);
    return v;
}

/* clang-format off */
/* A figure stands in a table twice: as a text, and as a number. */
#define WHAT {"name", "measured", VIEW_TEXT, .fill = true}
#define TEXT(id, title) {id "_text", title, VIEW_TEXT}
#define NUMBER(id, title, kind) {id, title, kind, VIEW_MACHINES}
#define OF_WHICH NUMBER("variant", "variant", VIEW_TEXT), NUMBER("module", "module", VIEW_TEXT)
#define REAL(id, title) NUMBER(id, title, VIEW_REAL)
#define PERCENT(id, title) NUMBER(id "_percent", title, VIEW_PERCENT)

static const struct view_column summary_columns[] = {
    WHAT, TEXT("mean", "mean"), TEXT("deviation", "+-"), TEXT("median", "median"), TEXT("min", "min"),
    TEXT("max", "max"), {"outliers", "outliers", VIEW_COUNT}, OF_WHICH,
    NUMBER("runs", "runs", VIEW_COUNT), REAL("mean", "mean"), REAL("deviation", "deviation"),
    REAL("median", "median"), REAL("min", "min"), REAL("max", "max"), REAL("mean_low", "95 % from"),
    REAL("mean_high", "to")};

static const struct view_column change_columns[] = {
    WHAT, TEXT("before", "before"), TEXT("after", "after"), TEXT("change", "change"),
    TEXT("low", "from"), TEXT("high", "to"), {"verdict", "verdict", VIEW_TEXT}, OF_WHICH,
    REAL("before", "before"), REAL("after", "after"), PERCENT("change", "change"),
    PERCENT("low", "from"), PERCENT("high", "to"), REAL("p", "p")};
/* clang-format on */

static void add_summary_row(struct view_section *s, const struct benchmark *b,
                            const struct benchmark_series *of, size_t variant)
{
    const double *v = of->values[variant].data;
    size_t n = of->values[variant].len, i = 0;
    if (!n)
        return;
    double mean = statistics_mean(v, n), deviation = statistics_deviation(v, n),
           median = statistics_median(v, n), low = statistics_quantile(v, n, 0),
           high = statistics_quantile(v, n, 1);
    struct statistics_range range = statistics_mean_range(v, n, 0.95);
    struct view_value *row = view_row(s, 0, VIEW_PLAIN);
    row[i++] = view_text(s, of->name);
    row[i++] = amount(s, of->kind, mean);
    row[i++] = amount(s, of->kind, deviation);
    row[i++] = amount(s, of->kind, median);
    row[i++] = amount(s, of->kind, low);
    row[i++] = amount(s, of->kind, high);
    row[i++] = view_nonzero(statistics_outliers(v, n, NULL));
    row[i++] = view_text(s, b->variants.data[variant].name);
    row[i++] = view_text(s, of->module ? of->module : "");
    row[i++] = view_number(n);
    const double numbers[] = {mean, deviation, median, low, high, range.low, range.high};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        row[i++] = view_real(numbers[k]);
}

static const char *const verdicts[] = {
    [BENCHMARK_SAME] = "no change", [BENCHMARK_LESS] = "less", [BENCHMARK_MORE] = "more"};

static void add_change_row(struct view_section *s, const struct benchmark *b,
                           const struct benchmark_series *of, size_t variant,
                           const struct benchmark_change *c)
{
    double before = statistics_median(of->values[0].data, of->values[0].len);
    double after = statistics_median(of->values[variant].data, of->values[variant].len);
    size_t i = 0;
    struct view_value *row =
        view_row(s, 0, c->verdict == BENCHMARK_SAME ? VIEW_PLAIN : VIEW_STRONG);
    row[i++] = view_text(s, of->name);
    row[i++] = amount(s, of->kind, before);
    row[i++] = amount(s, of->kind, after);
    row[i++] = percent_text(s, c->change);
    row[i++] = percent_text(s, c->low);
    row[i++] = percent_text(s, c->high);
    row[i++] = view_text(s, verdicts[c->verdict]);
    row[i++] = view_text(s, b->variants.data[variant].name);
    row[i++] = view_text(s, of->module ? of->module : "");
    row[i++] = view_real(before);
    row[i++] = view_real(after);
    row[i++] = view_real(c->change * 100);
    row[i++] = view_real(c->low * 100);
    row[i++] = view_real(c->high * 100);
    row[i++] = view_real(c->p);
}

/* Functions that are compared, the largest changes that are no chance first. */
struct ranked {
    size_t index;
    double rank;
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->rank > y->rank ? -1 : x->rank < y->rank;
}

static void add_changes(struct view *v, const struct benchmark *b, bool functions, size_t variant)
{
    size_t n = functions ? b->functions.len : b->metrics.len;
    struct text id = TEXT_INIT, title = TEXT_INIT;
    text_format(&id, "%s%s", functions ? "functions" : "metrics", variant > 1 ? "_" : "");
    if (variant > 1)
        text_format(&id, "%zu", variant);
    text_format(&title, "%s: %s → %s", functions ? "Functions" : "Measured",
                b->variants.data[0].name, b->variants.data[variant].name);
    struct view_section *s = view_add_table(v, id.data, title.data, change_columns,
                                            sizeof change_columns / sizeof *change_columns);
    struct benchmark_change *c = memory_array(n + 1, sizeof *c);
    struct ranked *order = memory_array(n + 1, sizeof *order);
    benchmark_compare(b, functions, variant, c);
    for (size_t i = 0; i < n; i++) {
        const struct benchmark_series *of = functions ? &b->functions.data[i] : &b->metrics.data[i];
        double mean = statistics_mean(of->values[variant].data, of->values[variant].len);
        order[i] = (struct ranked){
            .index = i,
            .rank = !functions ? -(double)i : mean * (c[i].verdict != BENCHMARK_SAME ? 1e6 : 1)};
    }
    qsort(order, n, sizeof *order, compare_ranked);
    for (size_t i = 0; i < n; i++) {
        size_t at = order[i].index;
        if (c[at].p >= 0)
            add_change_row(s, b, functions ? &b->functions.data[at] : &b->metrics.data[at], variant,
                           &c[at]);
    }
    free(order);
    free(c);
    text_release(&id);
    text_release(&title);
}

static int compare_series(const void *a, const void *b)
{
    const struct benchmark_series *x = *(struct benchmark_series *const *)a,
                                  *y = *(struct benchmark_series *const *)b;
    double mx = statistics_mean(x->values[0].data, x->values[0].len),
           my = statistics_mean(y->values[0].data, y->values[0].len);
    return mx > my ? -1 : mx < my;
}

static void add_functions_of_one(struct view *v, const struct benchmark *b)
{
    struct view_section *s = view_add_table(v, "functions", "Functions", summary_columns,
                                            sizeof summary_columns / sizeof *summary_columns);
    size_t n = b->functions.len;
    const struct benchmark_series **order = memory_array(n + 1, sizeof *order);
    double whole = 0;
    for (size_t i = 0; i < n; i++) {
        order[i] = &b->functions.data[i];
        whole += statistics_mean(order[i]->values[0].data, order[i]->values[0].len);
    }
    qsort(order, n, sizeof *order, compare_series);
    for (size_t i = 0; i < n; i++)
        if (statistics_mean(order[i]->values[0].data, order[i]->values[0].len) >
                whole * FUNCTIONS_SHOWN &&
            statistics_median(order[i]->values[0].data, order[i]->values[0].len) > 0)
            add_summary_row(s, b, order[i], 0);
    free(order);
}

static void add_notes(struct view *v, const struct benchmark *b)
{
    struct view_section *s = view_add(v, VIEW_NOTES, "notes", "");
    struct text t = TEXT_INIT;
    for (size_t i = 0; i < b->variants.len; i++) {
        const struct benchmark_variant *one = &b->variants.data[i];
        if (!one->disturbed)
            continue;
        text_clear(&t);
        text_format(&t, "%s: in %zu of %zu runs the machine was busy with others: ", one->name,
                    one->disturbed, one->runs);
        text_add_duration(&t, (uint64_t)one->delayed);
        text_add(&t, " waited for a CPU, ");
        text_add_duration(&t, (uint64_t)one->stolen);
        text_add(&t, " stolen by the hypervisor, over all runs");
        view_note(s, NOTE_INFO, t.data);
    }
    if (benchmark_too_few(b))
        view_note(s, NOTE_WARNING,
                  "these are too few runs to call any difference a change: take 10 or more (-n)");
    if (b->variants.len > 1)
        view_note(s, NOTE_INFO,
                  "a change is called one if chance makes such in less than 1 of 100 comparisons "
                  "(Mann-Whitney, Holm); from .. to holds it with 95 % (bootstrap)");
    for (size_t i = 0; i < b->notes.len; i++)
        view_note(s, NOTE_WARNING, b->notes.data[i]);
    text_release(&t);
}

void benchmark_view(struct view *v, const struct benchmark *b)
{
    struct text title = TEXT_INIT;
    for (size_t i = 0; i < b->variants.len; i++)
        text_format(&title, "%s%s%s%s", i ? " · " : "",
                    b->variants.len > 1 ? b->variants.data[i].name : "",
                    b->variants.len > 1 ? ": " : "", b->variants.data[i].command);
    if (b->variants.len)
        text_format(&title, " (%zu runs)", b->variants.data[0].runs);
    view_init(v, "bench", title.data, b->variants.len > 1 ? "metrics" : "summary");
    text_release(&title);
    for (size_t i = 1; i < b->variants.len; i++) {
        add_changes(v, b, false, i);
        if (b->functions.len)
            add_changes(v, b, true, i);
    }
    struct view_section *s = view_add_table(v, "summary", "Measured", summary_columns,
                                            sizeof summary_columns / sizeof *summary_columns);
    s->hidden = b->variants.len > 1;
    for (size_t i = 0; i < b->variants.len; i++)
        for (size_t k = 0; k < b->metrics.len; k++)
            add_summary_row(s, b, &b->metrics.data[k], i);
    if (b->variants.len == 1 && b->functions.len)
        add_functions_of_one(v, b);
    add_notes(v, b);
}
