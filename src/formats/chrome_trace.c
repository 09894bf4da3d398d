/*
 * The trace events that Chrome's tracing page and Perfetto show: samples of a thread
 * that follow one another with the same frames become one span of each frame. Where no
 * times are known, stacks stand side by side, each as long as its value.
 */
#include <stdlib.h>

#include "base/json.h"
#include "formats/chrome_trace_read.h"
#include "formats/places.h"

#define GAP_DEFAULT 10000000ull /* ns that a sample covers when its event does not say */

struct lane {
    VECTOR(uint32_t) path; /* places of the open spans, root first */
    VECTOR(uint64_t) since;
    uint64_t end; /* until when they are known to have lasted */
};

struct trace_writer {
    const struct profile *p;
    struct places places;
    struct json json;
    struct lane *lanes; /* by thread */
    struct text name;
};

/* Times in a trace are microseconds from the start, with three decimals for the rest. */
static void put_time(struct trace_writer *w, const char *key, uint64_t ns)
{
    json_put_double(&w->json, key, (double)ns / 1000.0);
}

/* The outer span first: viewers take the first of two that are equal for the caller. */
static void close_spans(struct trace_writer *w, uint32_t thread, size_t keep)
{
    struct lane *lane = &w->lanes[thread];
    const struct profile_thread *t = &w->p->threads.data[thread];
    for (size_t i = keep; i < lane->path.len; i++) {
        uint64_t since = lane->since.data[i];
        text_clear(&w->name);
        places_name(&w->places, lane->path.data[i], &w->name);
        json_open_object(&w->json);
        json_put_string(&w->json, "ph", "X");
        json_put_string(&w->json, "name", w->name.data);
        json_put_string(&w->json, "cat", "sample");
        json_put_int(&w->json, "pid", w->p->processes.data[t->process].pid);
        json_put_int(&w->json, "tid", t->tid);
        put_time(w, "ts", since);
        put_time(w, "dur", lane->end - since);
        json_end(&w->json);
    }
    if (keep < lane->path.len)
        lane->path.len = lane->since.len = keep;
}

static void add_sample(struct trace_writer *w, uint32_t thread, uint32_t stack, uint64_t start,
                       uint64_t length, uint64_t gap)
{
    struct lane *lane = &w->lanes[thread];
    size_t same = 0;
    places_path(&w->places, stack);
    if (start <= lane->end + gap)
        while (same < lane->path.len && same < w->places.path.len &&
               lane->path.data[same] == w->places.path.data[same])
            same++;
    if (start <= lane->end + gap && start > lane->end)
        lane->end = start;
    close_spans(w, thread, same);
    if (lane->end < start)
        lane->end = start;
    for (size_t i = same; i < w->places.path.len; i++) {
        *vector_push(&lane->path) = w->places.path.data[i];
        *vector_push(&lane->since) = start > lane->end ? start : lane->end;
    }
    if (start + length > lane->end)
        lane->end = start + length;
}

static void write_names(struct trace_writer *w)
{
    const struct profile *p = w->p;
    for (uint32_t i = 0; i < p->processes.len + p->threads.len; i++) {
        bool process = i < p->processes.len;
        uint32_t thread = process ? 0 : i - (uint32_t)p->processes.len;
        uint32_t owner = process ? i : p->threads.data[thread].process;
        json_open_object(&w->json);
        json_put_string(&w->json, "ph", "M");
        json_put_string(&w->json, "name", process ? "process_name" : "thread_name");
        json_put_int(&w->json, "pid", p->processes.data[owner].pid);
        json_put_int(&w->json, "tid", process ? 0 : p->threads.data[thread].tid);
        json_key(&w->json, "args");
        json_open_object(&w->json);
        json_put_string(&w->json, "name",
                        process ? profile_process_name(p, owner)
                                : profile_text(p, p->threads.data[thread].name));
        json_end(&w->json);
        json_end(&w->json);
    }
}

static void write_samples(struct trace_writer *w, uint32_t event)
{
    const struct profile *p = w->p;
    const struct profile_event *e = &p->events.data[event];
    bool lasting = e->unit == UNIT_NANOSECONDS;
    bool timed = format_is_timed(p, event);
    uint64_t gap = lasting && e->period ? e->period : GAP_DEFAULT;
    for (size_t i = 0; timed && i < p->samples.len; i++) {
        const struct profile_sample *s = &p->samples.data[i];
        if (s->event == event)
            add_sample(w, s->thread, s->stack, s->time > p->start ? s->time - p->start : 0,
                       lasting ? s->value : 0, gap);
    }
    for (size_t i = 0; !timed && i < p->cells.len; i++) {
        const struct profile_cell *c = &p->cells.data[i];
        if (c->event == event)
            add_sample(w, c->thread, c->stack, w->lanes[c->thread].end, c->value, 0);
    }
    for (uint32_t i = 0; i < p->threads.len; i++)
        close_spans(w, i, 0);
}

static int trace_write(const struct profile *p, const struct export_options *options,
                       struct sink *out, struct error *err)
{
    struct trace_writer w = {.p = p};
    uint32_t event = options->event == PROFILE_NONE ? format_main_event(p) : options->event;
    if (event == PROFILE_NONE)
        return error_set(err, FAULT_MISSING, "there are no samples to write");
    json_init(&w.json, sink_json, out);
    text_init(&w.name);
    places_init(&w.places, p);
    w.lanes = memory_array(p->threads.len + 1, sizeof *w.lanes);
    json_open_object(&w.json);
    json_put_string(&w.json, "displayTimeUnit", "ms");
    json_key(&w.json, "traceEvents");
    json_open_array(&w.json);
    write_names(&w);
    write_samples(&w, event);
    json_end(&w.json);
    json_end(&w.json);
    json_finish(&w.json);
    json_release(&w.json);
    for (size_t i = 0; i < p->threads.len; i++) {
        vector_release(&w.lanes[i].path);
        vector_release(&w.lanes[i].since);
    }
    free(w.lanes);
    text_release(&w.name);
    places_release(&w.places);
    return 0;
}

static const char *const extensions[] = {".trace.json", NULL};

const struct format format_chrome_trace = {
    .name = "chrome-trace",
    .description = "trace events, for Perfetto and Chrome's tracing page",
    .extensions = extensions,
    .timed = true,
    .detect = trace_detect,
    .read = trace_read,
    .write = trace_write,
};
