/* The document of `sonde top`; see top.h. Sums from the beginning: who asks every second takes the
 * differences. */
#include "live/top.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "capture/proc.h"
#include "profile/interpreter.h"
#include "render/view_json.h"

#define FRAMES_MAX 48

struct writing {
    struct json json;
    int32_t pid;
    unsigned rows;
    struct profile *profile;
    uint64_t *cpu; /* by thread, ns */
};

/* The newest point of a curve of the process, or -1. */
static int64_t newest(const struct profile *p, uint32_t process, const char *name)
{
    for (size_t i = 0; i < p->series.len; i++) {
        const struct profile_series *s = &p->series.data[i];
        if (s->process == process && s->thread == PROFILE_NONE && s->points.len &&
            !strcmp(profile_text(p, s->name), name))
            return s->points.data[s->points.len - 1].value;
    }
    return -1;
}

static void add_up_cpu(struct writing *w)
{
    const struct profile *p = w->profile;
    uint32_t cpu = profile_event_find(p, "cpu");
    w->cpu = memory_array(p->threads.len + 1, sizeof *w->cpu);
    for (size_t i = 0; i < p->cells.len; i++)
        if (p->cells.data[i].event == cpu)
            w->cpu[p->cells.data[i].thread] += p->cells.data[i].value;
}

static const char *command_of(const struct profile *p, uint32_t number)
{
    const struct profile_exec *program = profile_process_program(p, number);
    return program ? profile_text(p, program->arguments) : "";
}

static void put_process(struct writing *w, uint32_t number)
{
    const struct profile *p = w->profile;
    const struct profile_process *x = &p->processes.data[number];
    struct json *j = &w->json;
    uint64_t cpu = 0, threads = 0;
    for (size_t i = 0; i < p->threads.len; i++) {
        if (p->threads.data[i].process == number) {
            cpu += w->cpu[i];
            threads += !p->threads.data[i].ended;
        }
    }
    int64_t heap = newest(p, number, "heap"), rss = newest(p, number, "rss");
    if (!x->ended && rss < 0)
        rss = (int64_t)proc_rss(x->pid);
    json_open_object(j);
    json_put_int(j, "pid", x->pid);
    json_put_int(j, "parent", x->parent == PROFILE_NONE ? 0 : p->processes.data[x->parent].pid);
    json_put_string(j, "name", profile_process_name(p, number));
    json_put_string(j, "command", command_of(p, number));
    json_put_uint(j, "cpu", cpu);
    json_put_uint(j, "threads", threads);
    json_put_int(j, "rss", rss);
    json_put_int(j, "heap", heap);
    json_put_bool(j, "ended", x->ended);
    json_end(j);
}

static void put_threads(struct writing *w)
{
    const struct profile *p = w->profile;
    json_key(&w->json, "threads");
    json_open_array(&w->json);
    for (size_t i = 0; i < p->threads.len; i++) {
        const struct profile_thread *t = &p->threads.data[i];
        if (t->ended && !w->cpu[i])
            continue;
        json_open_object(&w->json);
        json_put_int(&w->json, "pid", p->processes.data[t->process].pid);
        json_put_int(&w->json, "tid", t->tid);
        json_put_string(&w->json, "name", profile_text(p, t->name));
        json_put_uint(&w->json, "cpu", w->cpu[i]);
        json_put_bool(&w->json, "ended", t->ended);
        json_end(&w->json);
    }
    json_end(&w->json);
}

static int by_value(const void *a, const void *b)
{
    const struct profile_cell *x = a, *y = b;
    return x->value < y->value ? 1 : x->value > y->value ? -1 : 0;
}

static bool is_python(const struct profile *p, const struct profile_frame *f)
{
    return f->module != PROFILE_NONE && p->modules.data[f->module].kind == CODE_PYTHON;
}

/* Does a frame only lead from one of Python to the next? Its name came too late to load it without.
 */
static bool leads_on(const struct profile *p, const struct profile_frame *f, bool in_python)
{
    if (f->module == PROFILE_NONE || f->location_count != 1)
        return false;
    const struct profile_function *named =
        &p->functions.data[p->locations.data[f->first_location].function];
    enum interpreter_way way =
        p->modules.data[f->module].kind == CODE_ELF
            ? interpreter_way(profile_text(p, named->name), profile_module_name(p, f->module))
            : WAY_NONE;
    return way == WAY_ANYWHERE || (way == WAY_IN_PYTHON && in_python);
}

static bool has_python(const struct profile *p, uint32_t stack)
{
    while (stack && !is_python(p, &p->frames.data[p->stacks.data[stack].frame]))
        stack = p->stacks.data[stack].parent;
    return stack != 0;
}

/* Innermost first; "python" is how many stand before the first that is Python. */
static void put_frames(struct writing *w, uint32_t stack)
{
    const struct profile *p = w->profile;
    bool in_python = has_python(p, stack);
    unsigned python = 0;
    json_key(&w->json, "frames");
    json_open_array(&w->json);
    for (unsigned n = 0; stack && n < FRAMES_MAX; stack = p->stacks.data[stack].parent) {
        const struct profile_frame *f = &p->frames.data[p->stacks.data[stack].frame];
        if (n && leads_on(p, f, in_python))
            continue;
        if (!python && is_python(p, f))
            python = n;
        for (uint32_t i = 0; i < f->location_count; i++, n++) {
            const struct profile_location *at = &p->locations.data[f->first_location + i];
            json_text(&w->json, profile_text(p, p->functions.data[at->function].name));
        }
        if (!f->location_count && ++n)
            json_text(&w->json, profile_module_name(p, f->module));
    }
    json_end(&w->json);
    json_put_uint(&w->json, "python", python);
}

/* Who holds memory now, stack by stack, the largest first. */
static void put_heap(struct writing *w)
{
    const struct profile *p = w->profile;
    uint32_t event = profile_event_find(p, "heap:live");
    VECTOR(struct profile_cell) held = {0};
    uint64_t bytes = 0, blocks = 0;
    for (size_t i = 0; event != PROFILE_NONE && i < p->cells.len; i++) {
        const struct profile_cell *c = &p->cells.data[i];
        if (c->event != event || (int64_t)c->value <= 0)
            continue;
        int32_t pid = p->processes.data[p->threads.data[c->thread].process].pid;
        if (w->pid && pid != w->pid)
            continue;
        *vector_push(&held) = *c;
        bytes += c->value;
        blocks += c->count;
    }
    if (held.len)
        qsort(held.data, held.len, sizeof *held.data, by_value);
    json_key(&w->json, "heap");
    json_open_object(&w->json);
    json_put_uint(&w->json, "bytes", bytes);
    json_put_uint(&w->json, "blocks", blocks);
    json_key(&w->json, "stacks");
    json_open_array(&w->json);
    for (size_t i = 0; i < held.len && i < w->rows; i++) {
        const struct profile_cell *c = &held.data[i];
        json_open_object(&w->json);
        json_put_int(&w->json, "pid", p->processes.data[p->threads.data[c->thread].process].pid);
        json_put_uint(&w->json, "bytes", c->value);
        json_put_uint(&w->json, "blocks", c->count);
        put_frames(w, c->stack);
        json_end(&w->json);
    }
    json_end(&w->json);
    json_end(&w->json);
    vector_release(&held);
}

static void put_facts(struct writing *w, const struct state_facts *f)
{
    const struct profile *p = w->profile;
    struct json *j = &w->json;
    const char *command = profile_meta_get(p, "command"), *cpus = profile_meta_get(p, "cpus");
    uint32_t cpu = profile_event_find(p, "cpu");
    json_put_string(j, "command", command ? command : "");
    json_put_double(j, "seconds", p->end > p->start ? (double)(p->end - p->start) / 1e9 : 0);
    json_put_double(j, "moment", (double)(f->advanced / 1000000) / 1e3);
    json_put_uint(j, "samples", cpu == PROFILE_NONE ? 0 : p->events.data[cpu].samples);
    json_put_uint(j, "lost", profile_lost(p));
    json_put_uint(j, "cpus", cpus ? strtoull(cpus, NULL, 10) : 0);
    json_put_bool(j, "complete", p->complete);
}

static void put_view(void *context, const struct view *v)
{
    view_json(v, context);
}

/* The functions and the hottest path: the sections of the overview of what is selected. */
static void put_functions(struct writing *w)
{
    struct views_options o = {.event = "cpu", .pid = w->pid, .top = w->rows, .min = 1};
    json_key(&w->json, "cpu");
    if (profile_event_find(w->profile, "cpu") == PROFILE_NONE ||
        views_make("overview", w->profile, &o, put_view, &w->json, NULL))
        json_nothing(&w->json);
}

int top_write(struct state *s, int32_t pid, unsigned rows, struct text *out, struct error *err)
{
    struct profile copy;
    struct writing w = {.pid = pid, .rows = rows, .profile = &copy};
    profile_init(&copy);
    struct state_facts facts;
    state_facts(s, &facts);
    int rc = state_copy(s, &copy, err);
    if (!rc) {
        add_up_cpu(&w);
        json_init(&w.json, NULL, NULL);
        json_open_object(&w.json);
        put_facts(&w, &facts);
        json_key(&w.json, "processes");
        json_open_array(&w.json);
        for (uint32_t i = 0; i < copy.processes.len; i++)
            put_process(&w, i);
        json_end(&w.json);
        put_threads(&w);
        put_heap(&w);
        put_functions(&w); /* last: it changes the copy */
        json_end(&w.json);
        json_finish(&w.json);
        text_add_len(out, w.json.out.data, w.json.out.len);
        json_release(&w.json);
        free(w.cpu);
    }
    profile_release(&copy);
    return rc;
}
