/* The head of the page's document: what ran, who took part, what is counted, what was lost. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "analyze/curves.h"
#include "base/memory.h"
#include "render/page_internal.h"

#define CURVE_POINTS 1500

static uint64_t since_start(const struct profile *p, uint64_t time)
{
    return time > p->start ? time - p->start : 0;
}

static const char *title_of(const struct page *g)
{
    const struct profile *p = g->profile;
    const char *command = profile_meta_get(p, "command");
    if (g->options.title)
        return g->options.title;
    if (command && *command)
        return command;
    return p->processes.len ? profile_process_name(p, 0) : "sonde";
}

static void put_meta(const struct page *g, struct json *j)
{
    const struct profile *p = g->profile;
    json_key(j, "meta");
    json_open_object(j);
    json_put_string(j, "title", title_of(g));
    json_put_bool(j, "live", g->options.live);
    json_put_bool(j, "complete", p->complete);
    json_put_uint(j, "duration", since_start(p, p->end));
    json_put_uint(j, "date", p->wall_start / 1000000);
    json_key(j, "facts");
    json_open_object(j);
    for (size_t i = 0; i < p->meta.len; i++)
        json_put_string(j, profile_text(p, p->meta.data[i].key),
                        profile_text(p, p->meta.data[i].value));
    json_end(j);
    json_end(j);
}

static void put_events(const struct profile *p, struct json *j)
{
    static const char *const units[UNIT_KINDS] = {"count", "ns", "bytes"};
    json_key(j, "events");
    json_open_array(j);
    for (size_t i = 0; i < p->events.len; i++) {
        const struct profile_event *e = &p->events.data[i];
        json_open_object(j);
        json_put_string(j, "name", profile_text(p, e->name));
        json_put_string(j, "unit", units[e->unit]);
        json_put_uint(j, "period", e->period);
        json_put_uint(j, "samples", e->samples);
        json_put_uint(j, "value", e->value);
        json_end(j);
    }
    json_end(j);
}

static void put_end(const struct profile *p, const struct profile_process *q, struct json *j)
{
    json_put_bool(j, "ended", q->ended);
    if (!q->ended)
        return;
    json_put_uint(j, "end", since_start(p, q->end));
    if (!q->status_known)
        return;
    const char *name = WIFSIGNALED(q->status) ? sigabbrev_np(WTERMSIG(q->status)) : NULL;
    if (WIFSIGNALED(q->status))
        json_put_string(j, "signal", name ? name : "?");
    else
        json_put_int(j, "status", WEXITSTATUS(q->status));
}

static void put_processes(const struct profile *p, struct json *j)
{
    json_key(j, "processes");
    json_open_array(j);
    for (uint32_t i = 0; i < p->processes.len; i++) {
        const struct profile_process *q = &p->processes.data[i];
        const struct profile_exec *program = profile_process_program(p, i);
        json_open_object(j);
        json_put_int(j, "pid", q->pid);
        json_put_int(j, "parent", q->parent < i ? (int64_t)q->parent : -1);
        json_put_string(j, "name", profile_process_name(p, i));
        json_put_string(j, "arguments", program ? profile_text(p, program->arguments) : "");
        json_put_string(j, "exe", program ? profile_text(p, program->exe) : "");
        json_put_uint(j, "programs", q->execs.len);
        json_put_uint(j, "start", since_start(p, q->start));
        json_put_uint(j, "max_rss", q->max_rss);
        put_end(p, q, j);
        json_end(j);
    }
    json_end(j);
}

static void put_threads(const struct profile *p, struct json *j)
{
    json_key(j, "threads");
    json_open_array(j);
    for (size_t i = 0; i < p->threads.len; i++) {
        const struct profile_thread *t = &p->threads.data[i];
        json_open_object(j);
        json_put_uint(j, "process", t->process);
        json_put_int(j, "tid", t->tid);
        json_put_string(j, "name", profile_text(p, t->name));
        json_put_uint(j, "start", since_start(p, t->start));
        if (t->ended)
            json_put_uint(j, "end", since_start(p, t->end));
        json_put_uint(j, "cpu", t->cpu);
        json_end(j);
    }
    json_end(j);
}

static void put_heaps(const struct profile *p, struct json *j)
{
    json_key(j, "heaps");
    json_open_array(j);
    for (size_t i = 0; i < p->heaps.len; i++) {
        const struct profile_heap *h = &p->heaps.data[i];
        json_open_object(j);
        json_put_uint(j, "process", h->process);
        json_put_uint(j, "time", since_start(p, h->time));
        json_put_uint(j, "peak", h->peak);
        json_put_uint(j, "peak_time", since_start(p, h->peak_time));
        json_put_uint(j, "live", h->live);
        json_put_uint(j, "live_blocks", h->live_blocks);
        json_put_uint(j, "allocations", h->allocations);
        json_put_uint(j, "frees", h->frees);
        json_put_uint(j, "lost", h->lost);
        json_end(j);
    }
    json_end(j);
}

/* By event and thread, so that a process tree needs no look at the cells. */
static void put_sums(const struct profile *p, struct json *j)
{
    size_t threads = p->threads.len;
    struct sent_cell *sums = memory_array(p->events.len * threads + 1, sizeof *sums);
    for (size_t i = 0; i < p->cells.len; i++) {
        const struct profile_cell *c = &p->cells.data[i];
        sums[c->event * threads + c->thread].count += c->count;
        sums[c->event * threads + c->thread].value += c->value;
    }
    json_key(j, "sums");
    json_open_array(j);
    for (size_t i = 0; i < p->events.len * threads; i++) {
        if (!sums[i].count && !sums[i].value)
            continue;
        json_open_array(j);
        json_uint(j, i / threads);
        json_uint(j, i % threads);
        json_uint(j, sums[i].count);
        json_uint(j, sums[i].value);
        json_end(j);
    }
    json_end(j);
    free(sums);
}

static void put_accounting(const struct profile *p, struct json *j)
{
    static const char *const reasons[LOSS_REASONS] = {"ring full", "throttled", "unreadable",
                                                      "not written", "stopped"};
    json_key(j, "losses");
    json_open_array(j);
    for (size_t i = 0; i < p->losses.len; i++) {
        const struct profile_loss *l = &p->losses.data[i];
        json_open_object(j);
        json_put_int(j, "event", l->event < p->events.len ? (int64_t)l->event : -1);
        json_put_int(j, "thread", l->thread < p->threads.len ? (int64_t)l->thread : -1);
        json_put_string(j, "reason", l->reason < LOSS_REASONS ? reasons[l->reason] : "unknown");
        json_put_uint(j, "count", l->count);
        json_end(j);
    }
    json_end(j);
    json_put_uint(j, "lost", profile_lost(p));
    json_key(j, "cost");
    json_open_object(j);
    json_put_uint(j, "collector_cpu", p->cost.collector_cpu);
    json_put_uint(j, "collector_rss", p->cost.collector_rss);
    json_put_uint(j, "target_extra", p->cost.target_extra);
    json_put_uint(j, "stacks_whole", p->cost.stacks_whole);
    json_put_uint(j, "stacks_cut", p->cost.stacks_cut);
    json_put_uint(j, "bytes_written", p->cost.bytes_written);
    json_end(j);
}

/* Moments that somebody named. */
static void put_marks(const struct profile *p, struct json *j)
{
    json_key(j, "marks");
    json_open_array(j);
    for (size_t i = 0; i < p->marks.len; i++) {
        json_open_object(j);
        json_put_uint(j, "time", since_start(p, p->marks.data[i].time));
        json_put_string(j, "text", profile_text(p, p->marks.data[i].text));
        json_end(j);
    }
    json_end(j);
}

void page_facts(struct page *g, struct json *j)
{
    const struct profile *p = g->profile;
    put_meta(g, j);
    put_events(p, j);
    put_processes(p, j);
    put_threads(p, j);
    put_heaps(p, j);
    put_sums(p, j);
    put_accounting(p, j);
    json_key(j, "notes");
    json_open_array(j);
    for (size_t i = 0; i < p->notes.len; i++) {
        json_open_object(j);
        json_put_bool(j, "warning", p->notes.data[i].level == NOTE_WARNING);
        json_put_string(j, "text", profile_text(p, p->notes.data[i].text));
        json_end(j);
    }
    json_end(j);
    put_marks(p, j);
}

struct curve_columns {
    struct column *time, *value;
};

static void put_point(const struct curve_columns *to, const struct profile_point *point,
                      uint64_t start)
{
    column_put(to->time, point->time > start ? point->time - start : 0);
    column_put(to->value, (uint64_t)point->value);
}

/* Of each run of points the highest, so that no peak is lost, and the last of all. */
static uint64_t put_points(const struct curve_columns *to, const struct profile_point *points,
                           size_t len, uint64_t start)
{
    size_t run = len / CURVE_POINTS + 1;
    const struct profile_point *best = NULL;
    uint64_t rows = 0;
    for (size_t i = 0; i < len; i += run) {
        best = &points[i];
        for (size_t k = i + 1; k < len && k < i + run; k++)
            if (points[k].value > best->value)
                best = &points[k];
        put_point(to, best, start);
        rows++;
    }
    if (best && best != &points[len - 1]) {
        put_point(to, &points[len - 1], start);
        rows++;
    }
    return rows;
}

struct curve_head {
    const char *name;
    enum value_unit unit;
    uint32_t process, thread;
    size_t number; /* stays from document to document */
};

static void put_curve(const struct profile *p, struct json *j, const struct curve_head *h,
                      uint64_t rows)
{
    static const char *const units[UNIT_KINDS] = {"count", "ns", "bytes"};
    json_open_object(j);
    json_put_uint(j, "number", h->number);
    json_put_string(j, "name", h->name);
    json_put_string(j, "unit", units[h->unit]);
    json_put_int(j, "process", h->process < p->processes.len ? (int64_t)h->process : -1);
    json_put_int(j, "thread", h->thread < p->threads.len ? (int64_t)h->thread : -1);
    json_put_uint(j, "points", rows);
    json_end(j);
}

static bool is_memory(const struct profile *p, const struct profile_series *s)
{
    const char *name = profile_text(p, s->name);
    return !strcmp(name, "heap") || !strcmp(name, "rss");
}

/* The series as they are; of those that `finished` curves stand for, none. */
static void put_series(struct page *g, struct json *j, const struct curve_columns *to,
                       bool finished)
{
    const struct profile *p = g->profile;
    for (size_t i = 0; i < p->series.len; i++) {
        const struct profile_series *s = &p->series.data[i];
        size_t from = !g->whole && i < g->mark.series.len ? g->mark.series.data[i] : 0;
        if (from >= s->points.len || (finished && is_memory(p, s)))
            continue;
        struct curve_head h = {profile_text(p, s->name), s->unit, s->process, s->thread, i};
        put_curve(p, j, &h, put_points(to, s->points.data + from, s->points.len - from, p->start));
    }
}

static void put_memory(struct page *g, struct json *j, const struct curve_columns *to)
{
    const struct profile *p = g->profile;
    struct selection s;
    struct curves curves;
    if (selection_init(&s, p, NULL, NULL))
        return;
    curves_init(&curves, &s);
    for (size_t i = 0; i < curves.all.len; i++) {
        const struct curve *c = &curves.all.data[i];
        struct curve_head h = {c->rss ? "rss" : "heap", UNIT_BYTES, c->process, c->thread,
                               p->series.len + i};
        put_curve(p, j, &h, put_points(to, c->points.data, c->points.len, 0));
    }
    struct curve total;
    struct curve_head all = {"heap", UNIT_BYTES, PROFILE_NONE, PROFILE_NONE,
                             p->series.len + curves.all.len};
    curve_total(&total, &s);
    if (total.points.len)
        put_curve(p, j, &all, put_points(to, total.points.data, total.points.len, 0));
    curve_release(&total);
    curves_release(&curves);
    selection_release(&s);
}

void page_curves(struct page *g, struct json *j, struct columns *c)
{
    struct curve_columns to = {column_add(c, "curve.time", COLUMN_DELTA),
                               column_add(c, "curve.value", COLUMN_DELTA)};
    bool finished = g->whole && !g->options.live;
    json_key(j, "curves");
    json_open_array(j);
    if (finished)
        put_memory(g, j, &to);
    put_series(g, j, &to, finished);
    json_end(j);
}
