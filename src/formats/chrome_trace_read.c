/*
 * Trace events (Chrome's tracing, Perfetto's JSON, many tracers): spans as "X" with a duration or
 * as "B" and "E". Spans of a thread that lie in one another are a call stack; the time in a span
 * that is in none inside it is what it spent by itself. Events may stand in any order. Spans that
 * sonde wrote say themselves which samples were theirs, and are counted by that.
 */
#include "formats/chrome_trace_read.h"

#include <stdlib.h>
#include <string.h>

#include "formats/import.h"
#include "formats/json_read.h"

#define SPANS_MAX ((size_t)1 << 27)
#define OWN_SAMPLES ((uint64_t)1 << 20)

enum phase { PHASE_OTHER, PHASE_WHOLE, PHASE_BEGIN, PHASE_END, PHASE_MARK };

struct span {
    uint64_t start, end; /* ns; a begin has no end yet, an end no start */
    uint32_t thread, name, number;
    enum phase phase;
    /* What only sonde writes. */
    uint32_t depth;
    uint64_t order; /* among all spans, from 1 on; 0: not told */
    uint64_t samples, value;
};

struct trace {
    struct import im;
    struct json_reader json;
    VECTOR(struct span) spans;
    struct text name, word, phase;
    struct text event; /* what the samples of our own traces count */
    double unit, period;
    double order, depth, samples, value; /* of the event in hand */
    size_t ordered;                      /* spans that say where they belong */
    double ts, dur;
    int32_t pid, tid;
    bool named; /* the event's arguments give a name */
    uint64_t unmatched;
};

static int read_arguments(struct trace *t, struct error *err)
{
    struct json_reader *j = &t->json;
    int rc = json_read(j, err);
    if (rc || j->token != JSON_OBJECT)
        return rc ? rc : json_read_rest(j, err);
    while (!rc && !(rc = json_read(j, err)) && j->token == JSON_KEY) {
        const char *key = j->text.data;
        double *number = !strcmp(key, "order")     ? &t->order
                         : !strcmp(key, "depth")   ? &t->depth
                         : !strcmp(key, "samples") ? &t->samples
                         : !strcmp(key, "value")   ? &t->value
                                                   : NULL;
        t->named |= !strcmp(key, "name");
        /* Other tracers' arguments have any shape under any name. */
        if (number && t->event.len)
            rc = json_read_number(j, number, err);
        else
            rc = !strcmp(key, "name") ? json_read_text(j, &t->word, err) : json_read_skip(j, err);
    }
    return rc;
}

/* The event that a trace of ours shows. */
static int read_other(struct trace *t, struct error *err)
{
    struct json_reader *j = &t->json;
    bool ours = false;
    int rc = json_read(j, err);
    if (rc || j->token != JSON_OBJECT)
        return rc ? rc : json_read_rest(j, err);
    while (!rc && !(rc = json_read(j, err)) && j->token == JSON_KEY) {
        if (!strcmp(j->text.data, "exporter")) {
            rc = json_read_text(j, &t->word, err);
            ours = !strcmp(t->word.data, "sonde");
        } else if (ours && !strcmp(j->text.data, "event")) {
            rc = json_read_text(j, &t->event, err);
        } else if (ours && !strcmp(j->text.data, "unit")) {
            rc = json_read_number(j, &t->unit, err);
        } else if (ours && !strcmp(j->text.data, "period")) {
            rc = json_read_number(j, &t->period, err);
        } else {
            rc = json_read_skip(j, err);
        }
    }
    return rc;
}

/* Process and thread ids are numbers, but some tracers write words. */
static int read_id(struct trace *t, int32_t *out, struct error *err)
{
    struct json_reader *j = &t->json;
    int rc = json_read(j, err);
    if (!rc && j->token == JSON_NUMBER)
        *out = json_to_int32(j->number);
    else if (!rc && j->token == JSON_STRING)
        *out = (int32_t)(hash_bytes(j->text.data, j->text.len) & 0x7fffffff);
    return rc ? rc : json_read_rest(j, err);
}

static int read_event(struct trace *t, struct error *err)
{
    struct json_reader *j = &t->json;
    int rc = 0;
    text_clear(&t->name);
    text_clear(&t->phase);
    text_clear(&t->word);
    t->ts = t->dur = t->order = t->depth = t->samples = t->value = 0;
    t->pid = t->tid = 0;
    t->named = false;
    while (!rc && !(rc = json_read(j, err)) && j->token == JSON_KEY) {
        const char *key = j->text.data;
        if (!strcmp(key, "name"))
            rc = json_read_text(j, &t->name, err);
        else if (!strcmp(key, "ph"))
            rc = json_read_text(j, &t->phase, err);
        else if (!strcmp(key, "ts"))
            rc = json_read_number(j, &t->ts, err);
        else if (!strcmp(key, "dur"))
            rc = json_read_number(j, &t->dur, err);
        else if (!strcmp(key, "pid"))
            rc = read_id(t, &t->pid, err);
        else if (!strcmp(key, "tid"))
            rc = read_id(t, &t->tid, err);
        else if (!strcmp(key, "args"))
            rc = read_arguments(t, err);
        else
            rc = json_read_skip(j, err);
    }
    return rc;
}

static int use_name(struct trace *t, struct error *err)
{
    struct profile *p = t->im.profile;
    uint32_t process = import_process(&t->im, t->pid, "");
    uint32_t text = import_string(&t->im, t->word.data, t->word.len);
    if (process == PROFILE_NONE)
        return import_too_many(&t->im, "processes", IMPORT_THREADS_MAX, err);
    if (!strcmp(t->name.data, "process_name"))
        p->processes.data[process].execs.data[0].comm = text;
    if (strcmp(t->name.data, "thread_name"))
        return 0;
    uint32_t thread = import_thread(&t->im, process, t->tid, "");
    if (thread == PROFILE_NONE)
        return import_too_many(&t->im, "threads", IMPORT_THREADS_MAX, err);
    p->threads.data[thread].name = text;
    return 0;
}

static enum phase phase_of(const char *letter)
{
    return !strcmp(letter, "X")   ? PHASE_WHOLE
           : !strcmp(letter, "B") ? PHASE_BEGIN
           : !strcmp(letter, "E") ? PHASE_END
           : !strcmp(letter, "i") ? PHASE_MARK
           : !strcmp(letter, "I") ? PHASE_MARK
                                  : PHASE_OTHER;
}

static int use_event(struct trace *t, struct error *err)
{
    enum phase phase = phase_of(t->phase.data);
    if (!strcmp(t->phase.data, "M") && t->named)
        return use_name(t, err);
    if (phase == PHASE_OTHER)
        return 0;
    if (t->spans.len >= SPANS_MAX)
        return import_too_many(&t->im, "spans", SPANS_MAX, err);
    uint32_t process = import_process(&t->im, t->pid, "");
    uint32_t thread = import_thread(&t->im, process, t->tid, "");
    if (thread == PROFILE_NONE)
        return import_too_many(&t->im, "threads", IMPORT_THREADS_MAX, err);
    uint64_t start = json_to_unsigned(t->ts * 1000);
    *vector_push(&t->spans) =
        (struct span){.start = start,
                      .end = phase == PHASE_WHOLE ? start + json_to_unsigned(t->dur * 1000) : start,
                      .thread = thread,
                      .name = import_string(&t->im, t->name.data, t->name.len),
                      .number = (uint32_t)t->spans.len,
                      .phase = phase,
                      .order = json_to_unsigned(t->order),
                      .depth = (uint32_t)json_to_int32(t->depth),
                      .samples = json_to_unsigned(t->samples),
                      .value = json_to_unsigned(t->value)};
    t->ordered += t->order >= 1;
    return 0;
}

static int read_events(struct trace *t, struct error *err)
{
    struct json_reader *j = &t->json;
    int rc = 0;
    while (!rc && !(rc = json_read(j, err)) && j->token != JSON_END) {
        if (j->token != JSON_OBJECT)
            return json_reader_bad(j, err, "an event is no object");
        rc = read_event(t, err);
        if (!rc)
            rc = use_event(t, err);
    }
    return rc;
}

static int read_all(struct trace *t, struct error *err)
{
    struct json_reader *j = &t->json;
    int rc = json_read(j, err);
    if (rc || j->token == JSON_ARRAY)
        return rc ? rc : read_events(t, err);
    if (j->token != JSON_OBJECT)
        return json_reader_bad(j, err, "this is no list of trace events");
    bool any = false;
    while (!rc && !(rc = json_read(j, err)) && j->token == JSON_KEY) {
        bool events = !strcmp(j->text.data, "traceEvents");
        bool other = !strcmp(j->text.data, "otherData");
        rc = events ? json_read(j, err) : other ? read_other(t, err) : json_read_skip(j, err);
        if (!rc && events && j->token != JSON_ARRAY)
            return json_reader_bad(j, err, "the trace events are no list");
        if (!rc && events)
            rc = read_events(t, err);
        any |= events;
    }
    return rc || any ? rc : json_reader_bad(j, err, "there are no trace events in this file");
}

static int by_time(const void *left, const void *right)
{
    const struct span *a = left, *b = right;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->end != b->end && a->phase == PHASE_WHOLE && b->phase == PHASE_WHOLE)
        return a->end > b->end ? -1 : 1; /* the outer one first */
    return (a->number > b->number) - (a->number < b->number);
}

/* Gives every "B" the end that its "E" tells, and takes the "E"s out. */
static void match_ends(struct trace *t)
{
    VECTOR(size_t) open = {0};
    size_t kept = 0;
    for (size_t i = 0; i < t->spans.len; i++) {
        struct span s = t->spans.data[i];
        if (i && s.thread != t->spans.data[i - 1].thread) {
            t->unmatched += open.len;
            open.len = 0;
        }
        if (s.phase == PHASE_END) {
            if (!open.len) {
                t->unmatched++;
                continue;
            }
            struct span *begin = &t->spans.data[open.data[--open.len]];
            begin->end = s.start;
            begin->phase = PHASE_WHOLE;
            continue;
        }
        t->spans.data[kept] = s;
        if (s.phase == PHASE_BEGIN)
            *vector_push(&open) = kept;
        kept++;
    }
    t->unmatched += open.len;
    t->spans.len = kept;
    vector_release(&open);
}

struct opened {
    uint64_t end;
    uint32_t stack;
};

struct sweep {
    struct trace *t;
    VECTOR(struct opened) open;
    uint64_t now;
    uint32_t event, thread;
};

/* Charges the time until `until` to the innermost open span, closing those that end before. */
static int advance(struct sweep *w, uint64_t until, struct error *err)
{
    int rc = 0;
    while (!rc && w->open.len) {
        struct opened *top = &w->open.data[w->open.len - 1];
        uint64_t to = top->end < until ? top->end : until;
        if (to > w->now)
            rc = import_sample(&w->t->im, w->event, to, w->thread, top->stack, to - w->now, err);
        w->now = to > w->now ? to : w->now;
        if (top->end > until)
            break;
        w->open.len--;
    }
    if (until != UINT64_MAX && until > w->now)
        w->now = until;
    return rc;
}

static int sweep_spans(struct trace *t, struct error *err)
{
    struct sweep w = {.t = t, .event = import_event(&t->im, "wall", UNIT_NANOSECONDS, 0)};
    uint32_t module = import_module(&t->im, "");
    int rc = 0;
    for (size_t i = 0; i < t->spans.len && !rc; i++) {
        const struct span *s = &t->spans.data[i];
        if (!i || s->thread != w.thread) {
            rc = advance(&w, UINT64_MAX, err);
            w.thread = s->thread;
            w.now = 0;
        }
        if (!rc)
            rc = advance(&w, s->start, err);
        if (rc || s->phase != PHASE_WHOLE || s->end <= s->start)
            continue;
        if (w.open.len >= IMPORT_DEPTH_MAX)
            rc = import_too_many(&t->im, "spans in one another", IMPORT_DEPTH_MAX, err);
        uint64_t bound = w.open.len ? w.open.data[w.open.len - 1].end : UINT64_MAX;
        uint32_t stack = w.open.len ? w.open.data[w.open.len - 1].stack : 0;
        const char *name = profile_text(t->im.profile, s->name);
        if (!rc)
            rc = import_push(&t->im, &stack,
                             import_frame(&t->im, module, *name ? name : "(no name)", "", 0, 0),
                             err);
        *vector_push(&w.open) = (struct opened){s->end < bound ? s->end : bound, stack};
    }
    if (!rc)
        rc = advance(&w, UINT64_MAX, err);
    vector_release(&w.open);
    return rc;
}

/* The spans themselves, for timelines; those of the range that was asked for. */
static void keep_spans(struct trace *t)
{
    struct profile *p = t->im.profile;
    uint32_t module = import_module(&t->im, "");
    for (size_t i = 0; i < t->spans.len; i++) {
        const struct span *s = &t->spans.data[i];
        bool mark = s->phase == PHASE_MARK;
        if (!mark && s->phase != PHASE_WHOLE)
            continue;
        const char *name = profile_text(p, s->name);
        uint32_t frame = import_frame(&t->im, module, *name ? name : "(no name)", "", 0, 0);
        *vector_push(&p->spans) = (struct profile_span){.time = s->start,
                                                        .end = mark ? s->start : s->end,
                                                        .thread = s->thread,
                                                        .frame = frame,
                                                        .mark = mark};
        p->span_count++;
    }
    profile_sort_spans(p);
}

static int by_order(const void *left, const void *right)
{
    const struct span *a = left, *b = right;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

/* The span's own samples, evenly over its time. A short file must not become many samples: those
 * beyond the budget are counted without times. */
static int count_own(struct trace *t, const struct span *s, uint32_t event, uint32_t stack,
                     uint64_t *budget, struct error *err)
{
    uint64_t n = s->samples, rest = s->value, length = s->end > s->start ? s->end - s->start : 0;
    int rc = 0;
    if (!n || n > *budget) /* what was held at a peak is no sample */
        return import_count(&t->im, event, s->thread, stack, n, s->value, err);
    *budget -= n;
    for (uint64_t i = 0; i < n && !rc; i++) {
        uint64_t value = rest / (n - i);
        rc = import_sample(&t->im, event, s->start + length / n * i, s->thread, stack, value, err);
        rest -= value;
    }
    return rc;
}

/* A trace of our own: every span tells its place, so times need not. */
static int use_own_spans(struct trace *t, struct error *err)
{
    struct profile *p = t->im.profile;
    enum value_unit unit = t->unit >= 0 && t->unit < UNIT_KINDS ? (enum value_unit)t->unit : 0;
    uint32_t event = import_event(&t->im, t->event.data, unit, json_to_unsigned(t->period));
    uint32_t module = import_module(&t->im, ""), thread = PROFILE_NONE;
    uint64_t budget = OWN_SAMPLES + 64 * (uint64_t)t->spans.len;
    VECTOR(uint32_t) path = {0};
    int rc = 0;
    qsort(t->spans.data, t->spans.len, sizeof *t->spans.data, by_order);
    for (size_t i = 0; i < t->spans.len && !rc; i++) {
        const struct span *s = &t->spans.data[i];
        if (s->thread != thread)
            path.len = 0;
        thread = s->thread;
        if (s->depth > path.len || s->depth >= IMPORT_DEPTH_MAX) {
            rc = source_bad(t->im.source, source_offset(t->im.source), err,
                            "span %llu lies deeper than the one before it allows",
                            (unsigned long long)s->order);
            break;
        }
        uint32_t stack = s->depth ? path.data[s->depth - 1] : 0;
        const char *name = profile_text(p, s->name);
        if (s->depth || strcmp(name, TRACE_NO_STACK) != 0)
            rc = import_push(&t->im, &stack, import_frame(&t->im, module, name, "", 0, 0), err);
        path.len = s->depth;
        *vector_push(&path) = stack;
        if (!rc && (s->samples || s->value))
            rc = count_own(t, s, event, stack, &budget, err);
    }
    vector_release(&path);
    return rc;
}

static int use_spans(struct trace *t, struct error *err)
{
    if (t->event.len && t->spans.len && t->ordered == t->spans.len)
        return use_own_spans(t, err);
    if (t->spans.len)
        qsort(t->spans.data, t->spans.len, sizeof *t->spans.data, by_time);
    match_ends(t);
    /* A sample is told at its end: the trace begins where its first span does. */
    for (size_t i = 0; i < t->spans.len; i++)
        if (t->spans.data[i].start < t->im.first)
            t->im.first = t->spans.data[i].start;
    int rc = sweep_spans(t, err);
    if (!rc && t->im.options.keep_spans)
        keep_spans(t);
    return rc;
}

int trace_read(struct source *in, const struct import_options *options, struct profile *p,
               struct error *err)
{
    struct trace t = {.name = TEXT_INIT, .word = TEXT_INIT, .phase = TEXT_INIT, .event = TEXT_INIT};
    import_init(&t.im, p, in, options);
    json_reader_init(&t.json, in);
    t.json.may_lack_end = true; /* tracers that append cannot write one */
    int rc = read_all(&t, err);
    if (!rc)
        rc = use_spans(&t, err);
    if (!rc && t.unmatched)
        import_damage(&t.im, "%llu spans begin or end alone and are left out",
                      (unsigned long long)t.unmatched);
    if (!rc && t.json.lacked_end)
        import_damage(&t.im, "the list of events in %s has no end: what came after may be missing",
                      source_name(in));
    if (!rc)
        import_finish(&t.im, "chrome-trace");
    json_reader_release(&t.json);
    vector_release(&t.spans);
    text_release(&t.name);
    text_release(&t.word);
    text_release(&t.phase);
    text_release(&t.event);
    import_release(&t.im);
    return rc;
}

int trace_detect(const uint8_t *bytes, size_t len)
{
    size_t look = len < 8192 ? len : 8192;
    if (!len || !memchr("{[ \t\r\n", bytes[0], 6))
        return 0;
    if (import_holds(bytes, look, "\"traceEvents\""))
        return 90;
    return import_holds(bytes, look, "\"ph\"") && import_holds(bytes, look, "\"ts\"") ? 70 : 0;
}
