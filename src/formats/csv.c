/* A row a stack: for spreadsheets and databases. RFC 4180, with a heading. */
#include <stdlib.h>

#include "formats/places.h"
#include "formats/thread_sums.h"

static const char *const units[] = {"count", "ns", "bytes"};

struct piece {
    size_t at, len;
};

struct csv_writer {
    const struct profile *p;
    struct places places;
    struct thread_sums sums;
    struct sink *out;
    struct text names;                 /* of the places, ready to be written */
    VECTOR(struct piece) name_of;      /* by place, where its name stands there */
    struct text *events, who, scratch; /* by event, and of the thread in hand */
};

static void add_quoted(struct text *out, const char *text)
{
    for (const char *s = text; *s; s++) {
        if (*s == '"')
            text_add_char(out, '"');
        text_add_char(out, *s);
    }
}

static void add_field(struct csv_writer *w, struct text *out, const char *text)
{
    text_clear(&w->scratch);
    text_add_printable(&w->scratch, text);
    text_add_char(out, '"');
    add_quoted(out, w->scratch.data);
    text_add(out, "\",");
}

/* Names of places are met in millions of rows: each is made once. */
static struct piece name_of(struct csv_writer *w, uint32_t place)
{
    while (w->name_of.len <= place) {
        uint32_t next = (uint32_t)w->name_of.len;
        size_t before = w->names.len;
        text_clear(&w->scratch);
        places_name(&w->places, next, &w->scratch);
        for (char *c = w->scratch.data; *c; c++)
            if (*c == ';')
                *c = ':';
        add_quoted(&w->names, w->scratch.data);
        *vector_push(&w->name_of) = (struct piece){before, w->names.len - before};
    }
    return w->name_of.data[place];
}

static void write_stack(struct csv_writer *w, uint32_t stack)
{
    places_path(&w->places, stack);
    sink_add(w->out, "\"", 1);
    for (size_t i = 0; i < w->places.path.len; i++) {
        struct piece name = name_of(w, w->places.path.data[i]);
        if (i)
            sink_add(w->out, ";", 1);
        sink_add(w->out, w->names.data + name.at, name.len);
    }
    sink_text(w->out, w->places.path.len ? "\"\r\n" : "[unknown]\"\r\n");
}

static void write_thread(struct csv_writer *w, uint32_t thread)
{
    const struct profile *p = w->p;
    const struct profile_thread *t = &p->threads.data[thread];
    text_clear(&w->who);
    text_format(&w->who, "%d,", p->processes.data[t->process].pid);
    add_field(w, &w->who, profile_process_name(p, t->process));
    text_format(&w->who, "%d,", t->tid);
    add_field(w, &w->who, profile_text(p, t->name));
    thread_sums_take(&w->sums, thread);
    for (size_t i = 0; i < w->sums.items.len && !sink_failed(w->out); i++) {
        const struct profile_cell *c = &w->sums.items.data[i];
        sink_add(w->out, w->events[c->event].data, w->events[c->event].len);
        sink_add(w->out, w->who.data, w->who.len);
        sink_format(w->out, "%llu,%llu,", (unsigned long long)c->count,
                    (unsigned long long)c->value);
        write_stack(w, c->stack);
    }
}

static int csv_write(const struct profile *p, const struct export_options *options,
                     struct sink *out, struct error *err)
{
    struct csv_writer w = {.p = p, .out = out};
    text_init(&w.names);
    text_init(&w.who);
    text_init(&w.scratch);
    places_init(&w.places, p);
    thread_sums_init(&w.sums, p, options->event);
    w.events = memory_array(p->events.len + 1, sizeof *w.events);
    for (size_t i = 0; i < p->events.len; i++) {
        text_init(&w.events[i]);
        add_field(&w, &w.events[i], profile_text(p, p->events.data[i].name));
        text_format(&w.events[i], "%s,", units[p->events.data[i].unit]);
    }
    sink_text(out, "event,unit,pid,process,tid,thread,samples,value,stack\r\n");
    for (uint32_t i = 0; i < p->threads.len && !sink_failed(out); i++)
        write_thread(&w, i);
    for (size_t i = 0; i < p->events.len; i++)
        text_release(&w.events[i]);
    free(w.events);
    text_release(&w.names);
    text_release(&w.who);
    text_release(&w.scratch);
    vector_release(&w.name_of);
    places_release(&w.places);
    return thread_sums_release(&w.sums, err);
}

static const char *const extensions[] = {".csv", NULL};

const struct format format_csv = {
    .name = "csv",
    .description = "a row a stack, for spreadsheets",
    .extensions = extensions,
    .write = csv_write,
};
