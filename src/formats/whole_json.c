/* The whole profile as JSON, table by table, as profile.h has it; indices refer to the tables. */
#include <string.h>

#include "base/json.h"
#include "formats/thread_sums.h"

static const char *const kinds[] = {"elf", "kernel", "vdso", "jit", "python", "unknown", "span"};
static const char *const units[] = {"count", "ns", "bytes"};
static const char *const reasons[] = {"ring-full", "throttled", "unreadable", "disk", "stopped"};
_Static_assert(sizeof kinds / sizeof *kinds == CODE_KINDS, "a kind of code has no name");
_Static_assert(sizeof units / sizeof *units == UNIT_KINDS, "a unit has no name");
_Static_assert(sizeof reasons / sizeof *reasons == LOSS_REASONS, "a loss has no name");

#define ROW_MAX 256

struct dump {
    const struct profile *p;
    struct json json;
};

static void begin(struct dump *d, const char *key)
{
    json_key(&d->json, key);
    json_open_array(&d->json);
}

static void put_text(struct dump *d, const char *key, uint32_t string)
{
    json_put_string(&d->json, key, profile_text(d->p, string));
}

/* An index, or null. */
static void put_index(struct dump *d, const char *key, uint32_t index)
{
    json_key(&d->json, key);
    if (index == PROFILE_NONE)
        json_nothing(&d->json);
    else
        json_uint(&d->json, index);
}

static void write_modules(struct dump *d)
{
    begin(d, "modules");
    for (size_t i = 0; i < d->p->modules.len; i++) {
        const struct profile_module *m = &d->p->modules.data[i];
        char id[2 * sizeof m->build_id + 1] = "";
        for (size_t k = 0; k < m->build_id_len; k++)
            snprintf(id + 2 * k, 3, "%02x", m->build_id[k]);
        json_open_object(&d->json);
        json_put_string(&d->json, "kind", kinds[m->kind]);
        put_text(d, "path", m->path);
        json_put_string(&d->json, "build_id", id);
        if (m->note)
            put_text(d, "note", m->note);
        json_end(&d->json);
    }
    json_end(&d->json);
}

static void write_code(struct dump *d)
{
    const struct profile *p = d->p;
    begin(d, "functions");
    for (size_t i = 0; i < p->functions.len; i++) {
        const struct profile_function *f = &p->functions.data[i];
        json_open_object(&d->json);
        put_text(d, "name", f->name);
        put_text(d, "linkage", f->linkage);
        put_text(d, "file", f->file);
        json_put_uint(&d->json, "line", f->start_line);
        put_index(d, "module", f->module < p->modules.len ? f->module : PROFILE_NONE);
        json_end(&d->json);
    }
    json_end(&d->json);
    char address[24];
    begin(d, "frames");
    for (size_t i = 0; i < p->frames.len; i++) {
        const struct profile_frame *f = &p->frames.data[i];
        json_open_object(&d->json);
        put_index(d, "module", f->module < p->modules.len ? f->module : PROFILE_NONE);
        /* As text: the numbers of JavaScript end at 2^53. */
        snprintf(address, sizeof address, "0x%llx", (unsigned long long)f->address);
        json_put_string(&d->json, "address", address);
        begin(d, "locations");
        for (uint32_t k = 0; k < f->location_count; k++) {
            const struct profile_location *at = &p->locations.data[f->first_location + k];
            json_open_object(&d->json);
            json_put_uint(&d->json, "function", at->function);
            json_put_uint(&d->json, "line", at->line);
            json_end(&d->json);
        }
        json_end(&d->json);
        json_end(&d->json);
    }
    json_end(&d->json);
    begin(d, "stacks");
    for (size_t i = 0; i < p->stacks.len; i++) {
        json_open_object(&d->json);
        put_index(d, "parent", i ? p->stacks.data[i].parent : PROFILE_NONE);
        put_index(d, "frame", p->stacks.data[i].frame);
        json_end(&d->json);
    }
    json_end(&d->json);
}

static void write_process(struct dump *d, const struct profile_process *q)
{
    json_open_object(&d->json);
    json_put_int(&d->json, "pid", q->pid);
    put_index(d, "parent", q->parent);
    json_put_uint(&d->json, "start", q->start);
    if (q->ended)
        json_put_uint(&d->json, "end", q->end);
    if (q->status_known)
        json_put_int(&d->json, "status", q->status);
    json_put_uint(&d->json, "max_rss", q->max_rss);
    begin(d, "execs");
    for (size_t k = 0; k < q->execs.len; k++) {
        json_open_object(&d->json);
        json_put_uint(&d->json, "time", q->execs.data[k].time);
        put_text(d, "comm", q->execs.data[k].comm);
        put_text(d, "exe", q->execs.data[k].exe);
        put_text(d, "arguments", q->execs.data[k].arguments);
        json_end(&d->json);
    }
    json_end(&d->json);
    json_end(&d->json);
}

static void write_who(struct dump *d)
{
    const struct profile *p = d->p;
    begin(d, "processes");
    for (size_t i = 0; i < p->processes.len; i++)
        write_process(d, &p->processes.data[i]);
    json_end(&d->json);
    begin(d, "threads");
    for (size_t i = 0; i < p->threads.len; i++) {
        const struct profile_thread *t = &p->threads.data[i];
        json_open_object(&d->json);
        json_put_uint(&d->json, "process", t->process);
        json_put_int(&d->json, "tid", t->tid);
        put_text(d, "name", t->name);
        json_put_uint(&d->json, "start", t->start);
        if (t->ended)
            json_put_uint(&d->json, "end", t->end);
        json_put_uint(&d->json, "cpu", t->cpu);
        json_end(&d->json);
    }
    json_end(&d->json);
}

static void write_events(struct dump *d)
{
    const struct profile *p = d->p;
    begin(d, "events");
    for (size_t i = 0; i < p->events.len; i++) {
        const struct profile_event *e = &p->events.data[i];
        json_open_object(&d->json);
        put_text(d, "name", e->name);
        json_put_string(&d->json, "unit", units[e->unit]);
        json_put_uint(&d->json, "period", e->period);
        json_put_uint(&d->json, "samples", e->samples);
        json_put_uint(&d->json, "value", e->value);
        json_end(&d->json);
    }
    json_end(&d->json);
}

/* There may be millions of the rows of the next two tables, so each is put together as text. */
static char *put(char *at, const char *text, size_t len, uint64_t number)
{
    memcpy(at, text, len);
    return json_put_digits(at + len, number);
}

#define PUT(at, text, number) put(at, text, sizeof(text) - 1, number)

static void write_cell(struct dump *d, const struct profile_cell *c)
{
    char row[ROW_MAX], *at = row;
    at = PUT(at, "{\"event\":", c->event);
    at = PUT(at, ",\"thread\":", c->thread);
    at = PUT(at, ",\"stack\":", c->stack);
    at = PUT(at, ",\"samples\":", c->count);
    at = PUT(at, ",\"value\":", c->value);
    *at++ = '}';
    json_raw(&d->json, row, (size_t)(at - row));
}

static void write_sample(struct dump *d, const struct profile_sample *s)
{
    char row[ROW_MAX], *at = row;
    at = PUT(at, "{\"time\":", s->time);
    at = PUT(at, ",\"event\":", s->event);
    at = PUT(at, ",\"thread\":", s->thread);
    at = PUT(at, ",\"stack\":", s->stack);
    at = PUT(at, ",\"value\":", s->value);
    *at++ = '}';
    json_raw(&d->json, row, (size_t)(at - row));
}

static int write_cells(struct dump *d, uint32_t only, struct error *err)
{
    struct thread_sums sums;
    begin(d, "cells");
    thread_sums_init(&sums, d->p, only);
    for (uint32_t t = 0; t < d->p->threads.len && !d->json.failed; t++) {
        thread_sums_take(&sums, t);
        for (size_t i = 0; i < sums.items.len; i++)
            write_cell(d, &sums.items.data[i]);
    }
    json_end(&d->json);
    return thread_sums_release(&sums, err);
}

static int write_samples(struct dump *d, uint32_t only, struct error *err)
{
    struct samples_cursor c;
    struct profile_sample s;
    begin(d, "samples");
    samples_begin(&c, &d->p->samples, only, SAMPLES_ALL);
    while (!d->json.failed && samples_next(&c, &s))
        write_sample(d, &s);
    json_end(&d->json);
    return samples_end(&c, err);
}

static void write_series(struct dump *d)
{
    const struct profile *p = d->p;
    begin(d, "series");
    for (size_t i = 0; i < p->series.len; i++) {
        const struct profile_series *s = &p->series.data[i];
        json_open_object(&d->json);
        put_text(d, "name", s->name);
        json_put_string(&d->json, "unit", units[s->unit]);
        put_index(d, "process", s->process);
        put_index(d, "thread", s->thread);
        begin(d, "points");
        for (size_t k = 0; k < s->points.len; k++) {
            json_open_array(&d->json);
            json_uint(&d->json, s->points.data[k].time);
            json_int(&d->json, s->points.data[k].value);
            json_end(&d->json);
        }
        json_end(&d->json);
        json_end(&d->json);
    }
    json_end(&d->json);
}

static void write_spans(struct dump *d)
{
    const struct profile *p = d->p;
    begin(d, "spans");
    for (size_t i = 0; i < p->spans.len; i++) {
        const struct profile_span *s = &p->spans.data[i];
        json_open_object(&d->json);
        json_put_uint(&d->json, "time", s->time);
        json_put_uint(&d->json, "end", s->end);
        put_index(d, "thread", s->thread);
        put_index(d, "frame", s->frame);
        json_put_uint(&d->json, "depth", s->depth);
        json_put_bool(&d->json, "mark", s->mark);
        json_end(&d->json);
    }
    json_end(&d->json);
}

static void write_heaps(struct dump *d)
{
    const struct profile *p = d->p;
    begin(d, "heaps");
    for (size_t i = 0; i < p->heaps.len; i++) {
        const struct profile_heap *h = &p->heaps.data[i];
        json_open_object(&d->json);
        put_index(d, "process", h->process);
        json_put_uint(&d->json, "time", h->time);
        json_put_uint(&d->json, "peak", h->peak);
        json_put_uint(&d->json, "peak_time", h->peak_time);
        json_put_uint(&d->json, "live", h->live);
        json_put_uint(&d->json, "live_blocks", h->live_blocks);
        json_put_uint(&d->json, "allocations", h->allocations);
        json_put_uint(&d->json, "frees", h->frees);
        json_put_uint(&d->json, "lost", h->lost);
        json_end(&d->json);
    }
    json_end(&d->json);
}

static void write_account(struct dump *d)
{
    const struct profile *p = d->p;
    begin(d, "losses");
    for (size_t i = 0; i < p->losses.len; i++) {
        const struct profile_loss *l = &p->losses.data[i];
        json_open_object(&d->json);
        json_put_string(&d->json, "reason", reasons[l->reason]);
        put_index(d, "event", l->event);
        put_index(d, "thread", l->thread);
        json_put_uint(&d->json, "count", l->count);
        json_end(&d->json);
    }
    json_end(&d->json);
    begin(d, "notes");
    for (size_t i = 0; i < p->notes.len; i++) {
        json_open_object(&d->json);
        json_put_string(&d->json, "level",
                        p->notes.data[i].level == NOTE_WARNING ? "warning" : "info");
        put_text(d, "text", p->notes.data[i].text);
        json_end(&d->json);
    }
    json_end(&d->json);
}

static void write_head(struct dump *d)
{
    const struct profile *p = d->p;
    json_put_uint(&d->json, "start", p->start);
    json_put_uint(&d->json, "end", p->end);
    json_put_uint(&d->json, "wall_start", p->wall_start);
    json_put_bool(&d->json, "complete", p->complete);
    json_put_bool(&d->json, "symbolized", p->symbolized);
    json_key(&d->json, "meta");
    json_open_object(&d->json);
    for (size_t i = 0; i < p->meta.len; i++)
        put_text(d, profile_text(p, p->meta.data[i].key), p->meta.data[i].value);
    json_end(&d->json);
}

static int json_write(const struct profile *p, const struct export_options *options,
                      struct sink *out, struct error *err)
{
    struct dump d = {.p = p};
    json_init(&d.json, sink_json, out);
    json_open_object(&d.json);
    write_head(&d);
    write_modules(&d);
    write_code(&d);
    write_who(&d);
    write_events(&d);
    int rc = write_cells(&d, options->event, err);
    if (!rc)
        rc = write_samples(&d, options->event, err);
    write_spans(&d);
    write_series(&d);
    write_heaps(&d);
    write_account(&d);
    json_end(&d.json);
    json_finish(&d.json);
    json_release(&d.json);
    return rc;
}

static const char *const extensions[] = {".json", NULL};

const struct format format_json = {
    .name = "json",
    .description = "the whole profile, table by table",
    .extensions = extensions,
    .timed = true,
    .write = json_write,
};
