/* Counts as views; see counting.h. */
#include <math.h>
#include <stdlib.h>

#include "analyze/counting.h"

static const char *const origins[] = {[COUNTS_COUNTED] = "counted",
                                      [COUNTS_ACCOUNTED] = "accounted",
                                      [COUNTS_SIMULATED] = "simulated"};

static const struct view_column event_columns[] = {
    {"event", "event", VIEW_TEXT},
    {"value", "value", VIEW_REAL},
    {"unit", "unit", VIEW_TEXT},
    {"spread_percent", "+-", VIEW_PERCENT},
    {"running_percent", "running", VIEW_PERCENT},
    {"metric", "ratio", VIEW_REAL},
    {"metric_unit", "of what", VIEW_TEXT},
    {"group", "group", VIEW_NUMBER},
    {"origin", "origin", VIEW_TEXT},
    {"user_only", "user only", VIEW_TEXT},
    {"reason", "why not", VIEW_TEXT},
};
enum {
    E_EVENT,
    E_VALUE,
    E_UNIT,
    E_SPREAD,
    E_RUNNING,
    E_METRIC,
    E_OF,
    E_GROUP,
    E_ORIGIN,
    E_USER,
    E_REASON,
    E_COLUMNS
};

static const char *unit_of(const struct counts_event *e)
{
    return e->timed ? "ns" : e->measure;
}

static void add_events(struct view *v, const struct counts *c)
{
    struct view_section *s = view_add_table(v, "events", "Events", event_columns, E_COLUMNS);
    struct counts_value *means = counting_means(c);
    uint64_t elapsed = counting_usage(c).real;
    for (size_t i = 0; i < c->events.len; i++) {
        const struct counts_event *e = &c->events.data[i];
        struct counting_sum sum = counting_sum(c, i);
        struct counting_metric m;
        struct view_value *row = view_row(s, 0, VIEW_PLAIN);
        row[E_EVENT] = view_text(s, e->name);
        row[E_UNIT] = view_text(s, unit_of(e));
        row[E_GROUP] = view_nonzero(e->group);
        row[E_ORIGIN] = view_text(s, origins[e->origin]);
        row[E_USER] = view_text(s, e->user_only ? "yes" : "no");
        if (e->refused)
            row[E_REASON] = view_text(s, e->refused);
        if (!sum.known)
            continue;
        row[E_VALUE] = view_real(sum.mean * e->scale);
        row[E_SPREAD] = view_real(c->runs.len > 1 ? sum.spread : NAN);
        row[E_RUNNING] = view_real(sum.share * 100);
        counting_metric(c, means, elapsed, i, &m);
        row[E_METRIC] = view_real(m.known ? m.value : NAN);
        if (m.known)
            row[E_OF] = view_text(s, m.unit);
    }
    free(means);
}

static void add_run_facts(struct view *v, const struct counts *c)
{
    struct view_section *s = view_add(v, VIEW_FACTS, "run", "");
    struct counts_usage u = counting_usage(c);
    view_fact(s, "", "subject", "subject", VIEW_TEXT, view_text(s, c->subject));
    view_fact(s, "", "runs", "runs", VIEW_COUNT, view_number(c->runs.len));
    view_fact(s, "", "real", "real", VIEW_DURATION, view_number(u.real));
    view_fact(s, "", "real_error", "standard error", VIEW_DURATION,
              view_number((uint64_t)counting_real_error(c)));
    if (!c->cpus) {
        view_fact(s, "", "user", "user", VIEW_DURATION, view_number(u.user));
        view_fact(s, "", "sys", "sys", VIEW_DURATION, view_number(u.sys));
        view_fact(s, "", "max_rss", "maximum RSS", VIEW_BYTES, view_nonzero(u.max_rss));
        view_fact(s, "", "max_rss_is_bound", "or less", VIEW_TEXT,
                  view_text(s, u.rss_bound ? "yes" : "no"));
        view_fact(s, "", "minor_faults", "minor faults", VIEW_COUNT, view_number(u.minor_faults));
        view_fact(s, "", "major_faults", "major faults", VIEW_COUNT, view_number(u.major_faults));
        view_fact(s, "", "voluntary_switches", "voluntary switches", VIEW_COUNT,
                  view_number(u.voluntary));
        view_fact(s, "", "involuntary_switches", "involuntary switches", VIEW_COUNT,
                  view_number(u.involuntary));
        struct view_value none = {0};
        view_fact(s, "", "read_bytes", "read", VIEW_BYTES,
                  u.io_known ? view_number(u.read_bytes) : none);
        view_fact(s, "", "written_bytes", "written", VIEW_BYTES,
                  u.io_known ? view_number(u.written_bytes) : none);
        view_fact(s, "", "queue_delay", "waited for a CPU", VIEW_DURATION,
                  u.delay_known ? view_number(u.delayed) : none);
    }
    view_fact(s, "", "stolen", "stolen by the hypervisor", VIEW_DURATION, view_number(u.stolen));
}

static struct view_value cell(const struct counts_event *e, struct counts_value value)
{
    struct view_value none = {0};
    if (!value.known || e->refused)
        return none;
    if (*e->measure)
        return view_real(value.value * e->scale);
    return view_number((uint64_t)llround(value.value));
}

/* A column an event; those that cannot be counted are left out. */
static struct view_section *add_matrix(struct view *v, const struct counts *c, const char *id,
                                       const char *title, const struct view_column *lead,
                                       size_t leads, const size_t **events)
{
    struct view_column *columns = memory_array(leads + c->events.len, sizeof *columns);
    size_t *which = arena_alloc(&v->arena, (c->events.len + 1) * sizeof *which), n = leads;
    for (size_t i = 0; i < leads; i++)
        columns[i] = lead[i];
    for (size_t i = 0; i < c->events.len; i++) {
        const struct counts_event *e = &c->events.data[i];
        if (e->refused)
            continue;
        which[n - leads] = i;
        columns[n++] = (struct view_column){.id = e->name,
                                            .heading = e->name,
                                            .kind = e->timed      ? VIEW_DURATION
                                                    : *e->measure ? VIEW_REAL
                                                                  : VIEW_COUNT};
    }
    struct view_section *s = view_add_table(v, id, title, columns, n);
    free(columns);
    *events = which;
    return s;
}

/* By process, the busiest thread first. */
static int compare_threads(const void *a, const void *b, void *context)
{
    const struct counts *c = context;
    const struct counts_thread *x = *(struct counts_thread *const *)a,
                               *y = *(struct counts_thread *const *)b;
    double vx = c->events.len ? x->values[0].value : 0;
    double vy = c->events.len ? y->values[0].value : 0;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return vx > vy ? -1 : vx < vy ? 1 : x->tid < y->tid ? -1 : 1;
}

static void add_threads(struct view *v, const struct counts *c)
{
    static const struct view_column lead[] = {
        {"pid", "pid", VIEW_NUMBER}, {"tid", "tid", VIEW_NUMBER}, {"name", "name", VIEW_TEXT}};
    const size_t *events;
    struct view_section *s = add_matrix(v, c, "threads", "Threads", lead, 3, &events);
    const struct counts_thread **order = memory_array(c->threads.len + 1, sizeof *order);
    for (size_t i = 0; i < c->threads.len; i++)
        order[i] = &c->threads.data[i];
    qsort_r(order, c->threads.len, sizeof *order, compare_threads, (void *)c);
    for (size_t i = 0; i < c->threads.len; i++) {
        struct view_value *row = view_row(s, 0, VIEW_PLAIN);
        row[0] = view_number((uint64_t)order[i]->pid);
        row[1] = view_number((uint64_t)order[i]->tid);
        row[2] = view_text(s, order[i]->name);
        for (size_t k = 3; k < s->column_count; k++)
            row[k] = cell(&c->events.data[events[k - 3]], order[i]->values[events[k - 3]]);
    }
    free(order);
}

static void add_intervals(struct view *v, const struct counts *c)
{
    static const struct view_column lead[] = {{"time", "time", VIEW_DURATION},
                                              {"length", "length", VIEW_DURATION}};
    const size_t *events;
    struct view_section *s = add_matrix(v, c, "intervals", "", lead, 2, &events);
    for (size_t i = 0; i < c->intervals.len; i++) {
        const struct counts_interval *at = &c->intervals.data[i];
        struct view_value *row = view_row(s, 0, VIEW_PLAIN);
        row[0] = view_number(at->end);
        row[1] = view_number(at->length);
        for (size_t k = 2; k < s->column_count; k++)
            row[k] = cell(&c->events.data[events[k - 2]], at->values[events[k - 2]]);
    }
}

static void add_notes(struct view *v, const struct counts *c)
{
    struct view_section *s = view_add(v, VIEW_NOTES, "notes", "");
    for (size_t i = 0; i < c->notes.len; i++)
        view_note(s, c->notes.data[i].level, c->notes.data[i].text);
}

void counting_view(struct view *v, const struct counts *c)
{
    const char *main = c->intervals.len ? "intervals" : c->threads.len ? "threads" : "events";
    view_init(v, "stat", c->subject, main);
    add_run_facts(v, c);
    add_events(v, c);
    if (c->threads.len)
        add_threads(v, c);
    if (c->intervals.len)
        add_intervals(v, c);
    add_notes(v, c);
}

void counting_threads(struct view *v, const struct counts *c)
{
    view_init(v, "threads", "", "threads");
    add_threads(v, c);
}
