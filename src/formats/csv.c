/* A row a stack: for spreadsheets and databases. RFC 4180, with a heading. */
#include "formats/places.h"

static void add_field(struct sink *out, const char *text, bool last)
{
    sink_text(out, "\"");
    for (const char *s = text; *s; s++)
        sink_add(out, *s == '"' ? "\"\"" : s, *s == '"' ? 2 : 1);
    sink_text(out, last ? "\"\r\n" : "\",");
}

static void add_printable(struct sink *out, const char *text)
{
    struct text clean = TEXT_INIT;
    text_add_printable(&clean, text);
    add_field(out, clean.data, false);
    text_release(&clean);
}

static void add_stack(struct places *places, uint32_t stack, struct sink *out)
{
    struct text line = TEXT_INIT, name = TEXT_INIT;
    places_path(places, stack);
    for (size_t i = 0; i < places->path.len; i++) {
        text_clear(&name);
        places_name(places, places->path.data[i], &name);
        for (char *c = name.data; *c; c++)
            if (*c == ';')
                *c = ':';
        text_format(&line, "%s%s", i ? ";" : "", name.data);
    }
    add_field(out, line.len ? line.data : "[unknown]", true);
    text_release(&line);
    text_release(&name);
}

static int csv_write(const struct profile *p, const struct export_options *options,
                     struct sink *out, struct error *err)
{
    static const char *const units[] = {"count", "ns", "bytes"};
    struct places places;
    (void)err;
    places_init(&places, p);
    sink_text(out, "event,unit,pid,process,tid,thread,samples,value,stack\r\n");
    for (size_t i = 0; i < p->cells.len; i++) {
        const struct profile_cell *c = &p->cells.data[i];
        const struct profile_event *e = &p->events.data[c->event];
        const struct profile_thread *t = &p->threads.data[c->thread];
        if (options->event != PROFILE_NONE && c->event != options->event)
            continue;
        add_printable(out, profile_text(p, e->name));
        sink_format(out, "%s,%d,", units[e->unit], p->processes.data[t->process].pid);
        add_printable(out, profile_process_name(p, t->process));
        sink_format(out, "%d,", t->tid);
        add_printable(out, profile_text(p, t->name));
        sink_format(out, "%llu,%llu,", (unsigned long long)c->count, (unsigned long long)c->value);
        add_stack(&places, c->stack, out);
    }
    places_release(&places);
    return 0;
}

static const char *const extensions[] = {".csv", NULL};

const struct format format_csv = {
    .name = "csv",
    .description = "a row a stack, for spreadsheets",
    .extensions = extensions,
    .write = csv_write,
};
