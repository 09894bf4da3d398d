/* The text that `perf script` would print; see perf_script.c for the format. */
#include "formats/perf_script_internal.h"

#include <stdlib.h>
#include <string.h>

struct script_writer {
    const struct profile *p;
    struct sink *out;
    struct text name;
};

static const char *clean(struct script_writer *w, const char *text)
{
    text_clear(&w->name);
    text_add_printable(&w->name, text[0] ? text : "[unknown]");
    return w->name.data;
}

static void write_place(struct script_writer *w, uint32_t frame, uint32_t k)
{
    const struct profile *p = w->p;
    const struct profile_frame *f = &p->frames.data[frame];
    const char *function = "[unknown]", *module = "[unknown]";
    if (f->location_count) {
        uint32_t id = p->locations.data[f->first_location + k].function;
        function = profile_text(p, p->functions.data[id].name);
    }
    if (k + 1 < f->location_count)
        module = "inlined";
    else if (f->module < p->modules.len && p->modules.data[f->module].path)
        module = profile_text(p, p->modules.data[f->module].path);
    sink_format(w->out, "\t%16llx %s", (unsigned long long)f->address, clean(w, function));
    sink_format(w->out, " (%s)\n", clean(w, module));
}

static void write_stack(struct script_writer *w, uint32_t stack)
{
    for (; stack; stack = w->p->stacks.data[stack].parent) {
        uint32_t frame = w->p->stacks.data[stack].frame, k = 0;
        do
            write_place(w, frame, k);
        while (++k < w->p->frames.data[frame].location_count);
    }
    sink_text(w->out, "\n");
}

/* perf calls the time on a CPU cpu-clock. */
static void write_heading(struct script_writer *w, uint32_t thread, uint32_t event, uint64_t time,
                          uint64_t value)
{
    const struct profile *p = w->p;
    const struct profile_thread *t = &p->threads.data[thread];
    const char *name = profile_text(p, t->name),
               *what = profile_text(p, p->events.data[event].name);
    if (!name[0])
        name = profile_process_name(p, t->process);
    sink_format(w->out, "%s %d/%d ", clean(w, name), p->processes.data[t->process].pid, t->tid);
    if (time)
        sink_format(w->out, "%llu.%09llu: ", (unsigned long long)(time / 1000000000),
                    (unsigned long long)(time % 1000000000));
    sink_format(w->out, "%10llu %s: \n", (unsigned long long)value,
                clean(w, strcmp(what, "cpu") ? what : "cpu-clock"));
}

int perf_script_write(const struct profile *p, const struct export_options *options,
                      struct sink *out, struct error *err)
{
    struct script_writer w = {.p = p, .out = out};
    struct samples_cursor cursor;
    struct profile_sample s;
    text_init(&w.name);
    bool *timed = memory_array(p->events.len + 1, sizeof *timed);
    for (uint32_t i = 0; i < p->events.len; i++)
        timed[i] = profile_is_timed(p, i);
    samples_begin(&cursor, &p->samples, options->event, SAMPLES_ALL);
    while (samples_next(&cursor, &s)) {
        if (!timed[s.event])
            continue;
        write_heading(&w, s.thread, s.event, s.time, s.value);
        write_stack(&w, s.stack);
    }
    int rc = samples_end(&cursor, err);
    for (size_t i = 0; i < p->cells.len; i++) {
        const struct profile_cell *c = &p->cells.data[i];
        if (timed[c->event] || (options->event != PROFILE_NONE && c->event != options->event))
            continue;
        write_heading(&w, c->thread, c->event, 0, c->value);
        write_stack(&w, c->stack);
    }
    free(timed);
    text_release(&w.name);
    return rc;
}
