/*
 * The text that `perf script` would print; see perf_script.c for the format. A recording has many
 * samples of few frames, so what stands in a line is put together once for each frame, thread and
 * event and copied from then on.
 */
#include "formats/perf_script_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"

struct piece {
    size_t at;
    uint32_t len; /* 0: not put together yet */
};

/* Texts by number, one after the other. */
struct pieces {
    struct text all;
    struct piece *by_number;
};

struct script_writer {
    const struct profile *p;
    struct sink *out;
    struct pieces frames, threads, events;
    struct text figures; /* time and value of the sample in hand */
};

static void pieces_init(struct pieces *s, size_t count)
{
    text_init(&s->all);
    s->by_number = memory_array(count + 1, sizeof *s->by_number);
}

static void pieces_release(struct pieces *s)
{
    text_release(&s->all);
    free(s->by_number);
}

static void write_piece(struct script_writer *w, struct pieces *s, uint32_t number,
                        void (*put)(const struct profile *p, uint32_t number, struct text *out))
{
    struct piece *piece = &s->by_number[number];
    if (!piece->len) {
        piece->at = s->all.len;
        put(w->p, number, &s->all);
        piece->len = (uint32_t)(s->all.len - piece->at);
    }
    sink_add(w->out, s->all.data + piece->at, piece->len);
}

static void put_clean(struct text *out, const char *text)
{
    text_add_printable(out, text[0] ? text : "[unknown]");
}

static void put_place(const struct profile *p, uint32_t frame, uint32_t k, struct text *out)
{
    const struct profile_frame *f = &p->frames.data[frame];
    const char *function = "", *module = "";
    if (f->location_count) {
        uint32_t id = p->locations.data[f->first_location + k].function;
        function = profile_text(p, p->functions.data[id].name);
    }
    if (k + 1 < f->location_count)
        module = "inlined";
    else if (f->module < p->modules.len)
        module = profile_text(p, p->modules.data[f->module].path);
    text_format(out, "\t%16llx ", (unsigned long long)f->address);
    put_clean(out, function);
    text_add(out, " (");
    put_clean(out, module);
    text_add(out, ")\n");
}

static void put_frame(const struct profile *p, uint32_t frame, struct text *out)
{
    uint32_t k = 0;
    do
        put_place(p, frame, k, out);
    while (++k < p->frames.data[frame].location_count);
}

static void put_thread(const struct profile *p, uint32_t thread, struct text *out)
{
    const struct profile_thread *t = &p->threads.data[thread];
    const char *name = profile_text(p, t->name);
    put_clean(out, name[0] ? name : profile_process_name(p, t->process));
    text_format(out, " %d/%d ", p->processes.data[t->process].pid, t->tid);
}

/* perf calls the time on a CPU cpu-clock. */
static void put_event(const struct profile *p, uint32_t event, struct text *out)
{
    const char *name = profile_text(p, p->events.data[event].name);
    text_add_char(out, ' ');
    put_clean(out, strcmp(name, "cpu") ? name : "cpu-clock");
    text_add(out, ": \n");
}

/* A number in at least `width` places, with `pad` before it. */
static void put_wide(struct text *out, uint64_t value, size_t width, char pad)
{
    size_t digits = 1;
    for (uint64_t rest = value / 10; rest; rest /= 10)
        digits++;
    if (digits < width)
        text_add_repeat(out, pad, width - digits);
    json_add_uint(out, value);
}

static void write_figures(struct script_writer *w, uint64_t time, uint64_t value)
{
    struct text *out = &w->figures;
    text_clear(out);
    if (time) {
        json_add_uint(out, time / 1000000000);
        text_add_char(out, '.');
        put_wide(out, time % 1000000000, 9, '0');
        text_add(out, ": ");
    }
    put_wide(out, value, 10, ' ');
    sink_add(w->out, out->data, out->len);
}

static void write_sample(struct script_writer *w, const struct profile_sample *s)
{
    write_piece(w, &w->threads, s->thread, put_thread);
    write_figures(w, s->time, s->value);
    write_piece(w, &w->events, s->event, put_event);
    for (uint32_t at = s->stack; at; at = w->p->stacks.data[at].parent)
        write_piece(w, &w->frames, w->p->stacks.data[at].frame, put_frame);
    sink_add(w->out, "\n", 1);
}

static int write_all(struct script_writer *w, const bool *timed, uint32_t event, struct error *err)
{
    const struct profile *p = w->p;
    struct samples_cursor cursor;
    struct profile_sample s;
    samples_begin(&cursor, &p->samples, event, SAMPLES_ALL);
    while (!sink_failed(w->out) && samples_next(&cursor, &s))
        if (timed[s.event])
            write_sample(w, &s);
    int rc = samples_end(&cursor, err);
    for (size_t i = 0; i < p->cells.len && !sink_failed(w->out); i++) {
        const struct profile_cell *c = &p->cells.data[i];
        if (!timed[c->event] && (event == PROFILE_NONE || c->event == event))
            write_sample(w, &(struct profile_sample){0, c->value, c->event, c->thread, c->stack});
    }
    return rc;
}

int perf_script_write(const struct profile *p, const struct export_options *options,
                      struct sink *out, struct error *err)
{
    struct script_writer w = {.p = p, .out = out};
    bool *timed = memory_array(p->events.len + 1, sizeof *timed);
    for (uint32_t i = 0; i < p->events.len; i++)
        timed[i] = profile_is_timed(p, i);
    text_init(&w.figures);
    pieces_init(&w.frames, p->frames.len);
    pieces_init(&w.threads, p->threads.len);
    pieces_init(&w.events, p->events.len);
    int rc = write_all(&w, timed, options->event, err);
    pieces_release(&w.frames);
    pieces_release(&w.threads);
    pieces_release(&w.events);
    text_release(&w.figures);
    free(timed);
    return rc;
}
