/* The figures of one moment; see figures.h. */
#include "top/figures.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define DEPTH_MAX 64

static const char *text_of(struct figures *f, json_t *object, const char *key)
{
    const char *raw =
        json_string_value(json_is_string(object) ? object : json_object_get(object, key));
    struct text t = TEXT_INIT;
    text_add_printable(&t, raw ? raw : "");
    const char *kept = arena_strdup(&f->arena, t.data);
    text_release(&t);
    return kept;
}

static int64_t number_of(json_t *object, const char *key)
{
    return (int64_t)json_number_value(json_object_get(object, key));
}

static void read_processes(struct figures *f, json_t *list)
{
    size_t i;
    json_t *x;
    json_array_foreach(list, i, x)
    {
        *vector_push(&f->processes) =
            (struct figures_process){.pid = (int32_t)number_of(x, "pid"),
                                     .parent = (int32_t)number_of(x, "parent"),
                                     .name = text_of(f, x, "name"),
                                     .command = text_of(f, x, "command"),
                                     .cpu = (uint64_t)number_of(x, "cpu"),
                                     .rss = number_of(x, "rss"),
                                     .heap = number_of(x, "heap"),
                                     .threads = (uint64_t)number_of(x, "threads"),
                                     .ended = json_is_true(json_object_get(x, "ended"))};
    }
}

static void read_threads(struct figures *f, json_t *list)
{
    size_t i;
    json_t *x;
    json_array_foreach(list, i, x)
    {
        *vector_push(&f->threads) =
            (struct figures_thread){.pid = (int32_t)number_of(x, "pid"),
                                    .tid = (int32_t)number_of(x, "tid"),
                                    .name = text_of(f, x, "name"),
                                    .cpu = (uint64_t)number_of(x, "cpu"),
                                    .ended = json_is_true(json_object_get(x, "ended"))};
    }
}

static struct figures_function read_function(struct figures *f, json_t *row)
{
    return (struct figures_function){.name = text_of(f, row, "name"),
                                     .module = text_of(f, row, "module"),
                                     .self = (uint64_t)number_of(row, "self"),
                                     .total = (uint64_t)number_of(row, "total")};
}

static void read_functions(struct figures *f, json_t *sections)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(json_object_get(sections, "functions"), "rows"), i, row)
    {
        if (!json_is_true(json_object_get(row, "rest")))
            *vector_push(&f->functions) = read_function(f, row);
    }
    json_array_foreach(json_object_get(json_object_get(sections, "hottest_path"), "rows"), i, row)
    {
        *vector_push(&f->path) = read_function(f, row);
    }
    json_t *facts = json_object_get(json_object_get(sections, "totals"), "facts");
    f->cpu_total = (uint64_t)number_of(facts, "value");
}

static void read_heap(struct figures *f, json_t *heap)
{
    size_t i, k;
    json_t *x, *name;
    f->heap_bytes = (uint64_t)number_of(heap, "bytes");
    f->heap_blocks = (uint64_t)number_of(heap, "blocks");
    json_array_foreach(json_object_get(heap, "stacks"), i, x)
    {
        struct figures_stack s = {.pid = (int32_t)number_of(x, "pid"),
                                  .bytes = (uint64_t)number_of(x, "bytes"),
                                  .blocks = (uint64_t)number_of(x, "blocks"),
                                  .python = (size_t)number_of(x, "python")};
        json_array_foreach(json_object_get(x, "frames"), k, name)
        {
            const char *frame = text_of(f, name, NULL);
            *vector_push(&s.frames) = frame;
            s.key = hash_mix(s.key, hash_bytes(frame, strlen(frame)));
        }
        s.key = hash_mix(s.key, (uint64_t)s.pid) | 1;
        *vector_push(&f->stacks) = s;
    }
}

static unsigned depth_of(const struct figures *f, const struct figures_process *p, unsigned level)
{
    if (!p->parent || level >= DEPTH_MAX)
        return level;
    for (size_t i = 0; i < f->processes.len; i++)
        if (f->processes.data[i].pid == p->parent && &f->processes.data[i] != p)
            return depth_of(f, &f->processes.data[i], level + 1);
    return level;
}

static uint64_t cpu_before(const struct figures *before, int32_t pid, int32_t tid, uint64_t now)
{
    for (size_t i = 0; !tid && i < before->processes.len; i++)
        if (before->processes.data[i].pid == pid && before->processes.data[i].cpu <= now)
            return before->processes.data[i].cpu;
    for (size_t i = 0; tid && i < before->threads.len; i++)
        if (before->threads.data[i].tid == tid && before->threads.data[i].cpu <= now)
            return before->threads.data[i].cpu;
    return 0;
}

/* The session's own clock says how long it was: answers may come late. */
static void take_rates(struct figures *f, const struct figures *before)
{
    double seconds = before ? f->moment - before->moment : 0;
    for (size_t i = 0; i < f->processes.len; i++) {
        struct figures_process *p = &f->processes.data[i];
        p->depth = depth_of(f, p, 0);
        if (seconds > 0.05)
            p->rate = (double)(p->cpu - cpu_before(before, p->pid, 0, p->cpu)) / 1e9 / seconds;
        else if (!before && f->seconds > 0)
            p->rate = (double)p->cpu / 1e9 / f->seconds;
        f->rate += p->rate;
        if (p->rss > 0 && !p->ended)
            f->rss += p->rss;
    }
    for (size_t i = 0; i < f->threads.len; i++) {
        struct figures_thread *t = &f->threads.data[i];
        if (seconds > 0.05)
            t->rate = (double)(t->cpu - cpu_before(before, t->pid, t->tid, t->cpu)) / 1e9 / seconds;
    }
}

static const struct figures_function *same(const struct figures *before,
                                           const struct figures_function *x)
{
    for (size_t i = 0; i < before->functions.len; i++) {
        const struct figures_function *y = &before->functions.data[i];
        if (strcmp(x->name, y->name) == 0 && strcmp(x->module, y->module) == 0)
            return y;
    }
    return NULL;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t grown(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

/* Names come later than samples, so what one function had may be another's by now, and functions
 * come into the list late: neither has happened since the moment before, so nothing is more than
 * all that has. */
static void take_recent(struct figures *f, const struct figures *before)
{
    if (before && before->cpu_total > f->cpu_total)
        before = NULL; /* another recording */
    f->recent_total = f->cpu_total - (before ? before->cpu_total : 0);
    for (size_t i = 0; i < f->functions.len; i++) {
        struct figures_function *x = &f->functions.data[i];
        const struct figures_function *y = before ? same(before, x) : NULL;
        x->recent_total = least(grown(y ? y->total : 0, x->total), f->recent_total);
        x->recent = least(grown(y ? y->self : 0, x->self), x->recent_total);
    }
}

int figures_read(struct figures *f, const char *json, size_t len, const struct figures *before,
                 struct error *err)
{
    json_error_t why;
    json_t *root = json_loadb(json, len, 0, &why);
    *f = (struct figures){0};
    if (!json_is_object(root)) {
        json_decref(root);
        return error_set(err, FAULT_INPUT, "the session's answer makes no sense: %s", why.text);
    }
    f->command = text_of(f, root, "command");
    f->seconds = json_number_value(json_object_get(root, "seconds"));
    f->moment = json_number_value(json_object_get(root, "moment"));
    f->samples = (uint64_t)number_of(root, "samples");
    f->lost = (uint64_t)number_of(root, "lost");
    f->cpus = (uint64_t)number_of(root, "cpus");
    f->complete = json_is_true(json_object_get(root, "complete"));
    read_processes(f, json_object_get(root, "processes"));
    read_threads(f, json_object_get(root, "threads"));
    read_functions(f, json_object_get(json_object_get(root, "cpu"), "sections"));
    read_heap(f, json_object_get(root, "heap"));
    take_rates(f, before);
    take_recent(f, before);
    json_decref(root);
    return 0;
}

void figures_release(struct figures *f)
{
    for (size_t i = 0; i < f->stacks.len; i++)
        vector_release(&f->stacks.data[i].frames);
    vector_release(&f->processes);
    vector_release(&f->threads);
    vector_release(&f->functions);
    vector_release(&f->path);
    vector_release(&f->stacks);
    arena_release(&f->arena);
}

void figures_add_counts(const struct figures *f, struct text *out)
{
    text_format(out, "%zu process%s  %zu thread%s  ", f->processes.len,
                f->processes.len == 1 ? "" : "es", f->threads.len, f->threads.len == 1 ? "" : "s");
    text_add_count(out, f->samples);
    text_format(out, " sample%s  lost %llu", f->samples == 1 ? "" : "s",
                (unsigned long long)f->lost);
}
