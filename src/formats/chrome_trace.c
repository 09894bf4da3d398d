/*
 * The trace events that Chrome's tracing page and Perfetto show: samples of a thread
 * that follow one another with the same frames become one span of each frame. Where no
 * times are known, stacks stand side by side, each as long as its value. A span's arguments say
 * when it began among all (spans at one instant have no other order), how deep it lies and which
 * samples were its own, so that our reader finds the same profile again. A recording of calls has
 * its spans themselves, with marks and counters.
 */
#include <stdlib.h>

#include "base/json.h"
#include "base/memory.h"
#include "formats/chrome_trace_read.h"
#include "formats/places.h"

#define NOWHERE UINT32_MAX      /* the place of a sample without any frame */
#define GAP_DEFAULT 10000000ull /* ns that a sample covers when its event does not say */

struct open_span {
    uint32_t place;
    uint64_t since, order;
    uint64_t samples, value; /* of which it was the innermost */
};

struct lane {
    VECTOR(struct open_span) open; /* root first */
    uint64_t end;                  /* until when they are known to have lasted */
};

struct trace_writer {
    const struct profile *p;
    struct places places;
    struct json json;
    struct lane *lanes; /* by thread */
    struct text name, span;
    uint64_t opened;      /* spans so far */
    VECTOR(char *) names; /* by place, escaped; NULL: not asked for yet */
};

/* Times in a trace are microseconds from the start, with three decimals for the rest. */
static void add_time(struct text *out, uint64_t ns)
{
    json_add_uint(out, ns / 1000);
    if (ns % 1000)
        text_add_len(out,
                     (char[]){'.', (char)('0' + ns % 1000 / 100), (char)('0' + ns % 100 / 10),
                              (char)('0' + ns % 10)},
                     4);
}

/* A place's name as the inside of a JSON string, put together once. */
static const char *name_of(struct trace_writer *w, uint32_t place)
{
    if (place == NOWHERE)
        return TRACE_NO_STACK;
    while (w->names.len <= place)
        *vector_push(&w->names) = NULL;
    if (!w->names.data[place]) {
        struct text plain = TEXT_INIT;
        places_name(&w->places, place, &plain);
        text_clear(&w->name);
        json_escape(&w->name, plain.data);
        w->names.data[place] = memory_strdup(w->name.data);
        text_release(&plain);
    }
    return w->names.data[place];
}

static void add_int(struct text *out, int32_t v)
{
    if (v < 0)
        text_add_char(out, '-');
    json_add_uint(out, v < 0 ? -(uint64_t)(int64_t)v : (uint64_t)v);
}

static void add_arguments(struct text *out, const struct open_span *s, size_t depth)
{
    text_add(out, ",\"args\":{\"order\":");
    json_add_uint(out, s->order);
    text_add(out, ",\"depth\":");
    json_add_uint(out, depth);
    if (s->samples || s->value) {
        text_add(out, ",\"samples\":");
        json_add_uint(out, s->samples);
        text_add(out, ",\"value\":");
        json_add_uint(out, s->value);
    }
    text_add(out, "}}");
}

/* The outer span first: viewers take the first of two that are equal for the caller. */
static void close_spans(struct trace_writer *w, uint32_t thread, size_t keep)
{
    struct lane *lane = &w->lanes[thread];
    const struct profile_thread *t = &w->p->threads.data[thread];
    for (size_t i = keep; i < lane->open.len; i++) {
        const struct open_span *s = &lane->open.data[i];
        const char *name = name_of(w, s->place);
        struct text *out = &w->span;
        text_clear(out);
        text_add(out, "{\"ph\":\"X\",\"name\":\"");
        text_add(out, name);
        text_add(out, "\",\"cat\":\"sample\",\"pid\":");
        add_int(out, w->p->processes.data[t->process].pid);
        text_add(out, ",\"tid\":");
        add_int(out, t->tid);
        text_add(out, ",\"ts\":");
        add_time(out, s->since);
        text_add(out, ",\"dur\":");
        add_time(out, lane->end - s->since);
        add_arguments(out, s, i);
        json_raw(&w->json, out->data, out->len);
    }
    if (keep < lane->open.len)
        lane->open.len = keep;
}

/* What a thread did on a stack: `samples` of `value` together, for `length` ns from `start` on. */
struct stay {
    uint32_t thread, stack;
    uint64_t start, length, samples, value;
};

static void add_stay(struct trace_writer *w, const struct stay *s, uint64_t gap)
{
    struct lane *lane = &w->lanes[s->thread];
    uint64_t start = s->start;
    size_t same = 0;
    places_path(&w->places, s->stack);
    if (!w->places.path.len)
        *vector_push(&w->places.path) = NOWHERE;
    if (start <= lane->end + gap)
        while (same < lane->open.len && same < w->places.path.len &&
               lane->open.data[same].place == w->places.path.data[same])
            same++;
    if (start <= lane->end + gap && start > lane->end)
        lane->end = start;
    close_spans(w, s->thread, same);
    if (lane->end < start)
        lane->end = start;
    for (size_t i = same; i < w->places.path.len; i++) {
        struct open_span span = {.place = w->places.path.data[i],
                                 .since = start > lane->end ? start : lane->end,
                                 .order = ++w->opened};
        *vector_push(&lane->open) = span;
    }
    lane->open.data[lane->open.len - 1].samples += s->samples;
    lane->open.data[lane->open.len - 1].value += s->value;
    if (start + s->length > lane->end)
        lane->end = start + s->length;
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

/* What the samples count, for our reader. */
static void write_event(struct trace_writer *w, uint32_t event)
{
    const struct profile_event *e = &w->p->events.data[event];
    json_key(&w->json, "otherData");
    json_open_object(&w->json);
    json_put_string(&w->json, "exporter", "sonde");
    json_put_string(&w->json, "event", profile_text(w->p, e->name));
    json_put_uint(&w->json, "unit", e->unit);
    json_put_uint(&w->json, "period", e->period);
    json_end(&w->json);
}

static int write_samples(struct trace_writer *w, uint32_t event, struct error *err)
{
    const struct profile *p = w->p;
    const struct profile_event *e = &p->events.data[event];
    bool lasting = e->unit == UNIT_NANOSECONDS;
    bool timed = profile_is_timed(p, event);
    uint64_t gap = lasting && e->period ? e->period : GAP_DEFAULT;
    struct samples_cursor cursor = {0};
    struct profile_sample s;
    if (timed)
        samples_begin(&cursor, &p->samples, event, SAMPLES_ALL);
    while (!w->json.failed && samples_next(&cursor, &s))
        add_stay(w,
                 &(struct stay){.thread = s.thread,
                                .stack = s.stack,
                                .start = s.time > p->start ? s.time - p->start : 0,
                                .length = lasting ? s.value : 0,
                                .samples = 1,
                                .value = s.value},
                 gap);
    for (size_t i = 0; !timed && i < p->cells.len; i++) {
        const struct profile_cell *c = &p->cells.data[i];
        if (c->event == event)
            add_stay(w,
                     &(struct stay){.thread = c->thread,
                                    .stack = c->stack,
                                    .start = w->lanes[c->thread].end,
                                    .length = c->value,
                                    .samples = c->count,
                                    .value = c->value},
                     0);
    }
    for (uint32_t i = 0; i < p->threads.len; i++)
        close_spans(w, i, 0);
    return samples_end(&cursor, err);
}

static void begin_event(struct trace_writer *w, const char *phase, uint32_t frame, uint32_t thread,
                        uint64_t time)
{
    const struct profile *p = w->p;
    const struct profile_thread *t = &p->threads.data[thread];
    const struct profile_frame *f = &p->frames.data[frame];
    bool own = f->module < p->modules.len && p->modules.data[f->module].kind == CODE_SPAN;
    struct text *out = &w->span;
    const char *name =
        name_of(w, places_find(&w->places, frame, f->location_count ? f->location_count - 1 : 0));
    text_clear(out);
    text_format(out, "{\"ph\":\"%s\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":", phase, name,
                own ? "span" : "call");
    add_int(out, p->processes.data[t->process].pid);
    text_add(out, ",\"tid\":");
    add_int(out, t->tid);
    text_add(out, ",\"ts\":");
    add_time(out, time > p->start ? time - p->start : 0);
}

static void write_spans(struct trace_writer *w)
{
    for (size_t i = 0; i < w->p->spans.len; i++) {
        const struct profile_span *s = &w->p->spans.data[i];
        begin_event(w, s->mark ? "i" : "X", s->frame, s->thread, s->time);
        if (s->mark) {
            text_add(&w->span, ",\"s\":\"t\"");
        } else {
            text_add(&w->span, ",\"dur\":");
            add_time(&w->span, s->end - s->time);
        }
        text_add_char(&w->span, '}');
        json_raw(&w->json, w->span.data, w->span.len);
    }
}

/* Curves of a process: counters of the program, what is resident. */
static void write_counters(struct trace_writer *w)
{
    const struct profile *p = w->p;
    for (size_t i = 0; i < p->series.len; i++) {
        const struct profile_series *s = &p->series.data[i];
        if (s->process >= p->processes.len)
            continue;
        for (size_t k = 0; k < s->points.len; k++) {
            json_open_object(&w->json);
            json_put_string(&w->json, "ph", "C");
            json_put_string(&w->json, "name", profile_text(p, s->name));
            json_put_int(&w->json, "pid", p->processes.data[s->process].pid);
            json_key(&w->json, "ts");
            text_clear(&w->span);
            add_time(&w->span,
                     s->points.data[k].time > p->start ? s->points.data[k].time - p->start : 0);
            json_raw(&w->json, w->span.data, w->span.len);
            json_key(&w->json, "args");
            json_open_object(&w->json);
            json_put_int(&w->json, "value", s->points.data[k].value);
            json_end(&w->json);
            json_end(&w->json);
        }
    }
}

static int trace_write(const struct profile *p, const struct export_options *options,
                       struct sink *out, struct error *err)
{
    struct trace_writer w = {.p = p};
    uint32_t event = options->event == PROFILE_NONE ? format_main_event(p) : options->event;
    bool spans = p->spans.len && options->event == PROFILE_NONE;
    if (event == PROFILE_NONE && !spans)
        return error_set(err, FAULT_MISSING, "there are no samples to write");
    json_init(&w.json, sink_json, out);
    text_init(&w.name);
    text_init(&w.span);
    places_init(&w.places, p);
    w.lanes = memory_array(p->threads.len + 1, sizeof *w.lanes);
    json_open_object(&w.json);
    json_put_string(&w.json, "displayTimeUnit", "ms");
    if (!spans)
        write_event(&w, event);
    json_key(&w.json, "traceEvents");
    json_open_array(&w.json);
    write_names(&w);
    int rc = 0;
    if (spans) {
        write_spans(&w);
        write_counters(&w);
    } else {
        rc = write_samples(&w, event, err);
    }
    json_end(&w.json);
    json_end(&w.json);
    json_finish(&w.json);
    json_release(&w.json);
    for (size_t i = 0; i < p->threads.len; i++)
        vector_release(&w.lanes[i].open);
    free(w.lanes);
    text_release(&w.name);
    text_release(&w.span);
    for (size_t i = 0; i < w.names.len; i++)
        free(w.names.data[i]);
    vector_release(&w.names);
    places_release(&w.places);
    return rc;
}

static const char *const extensions[] = {".trace.json", NULL};

const struct format format_chrome_trace = {
    .name = "chrome-trace",
    .alias = "chrome",
    .description = "trace events, for Perfetto and Chrome's tracing page",
    .extensions = extensions,
    .timed = true,
    .detect = trace_detect,
    .read = trace_read,
    .write = trace_write,
};
