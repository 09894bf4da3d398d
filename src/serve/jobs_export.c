/* A job as a profile; see jobs_export.h. */
#include "serve/jobs_export.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "formats/format.h"
#include "serve/jobs_internal.h"

#define DEPTH_MAX 4096

struct building {
    struct profile profile;
    struct names executables;
    uint32_t *thread; /* by executable */
    size_t thread_cap;
    uint32_t module;
    size_t rows, max;
    const struct jobs_counted *since; /* what is not to be counted again, or NULL */
};

static enum value_unit unit_of(const char *event)
{
    if (!strcmp(event, "cpu") || !strcmp(event, "wall") || !strcmp(event, "itimer") ||
        text_starts(event, "off-cpu"))
        return UNIT_NANOSECONDS;
    if (text_starts(event, "heap:") || text_ends(event, "_space") || text_ends(event, "-bytes"))
        return UNIT_BYTES;
    return UNIT_COUNT;
}

static uint32_t thread_of(struct building *b, const char *executable)
{
    struct profile *p = &b->profile;
    uint32_t at = names_find(&b->executables, executable);
    if (at != NAMES_NONE)
        return b->thread[at];
    at = names_add(&b->executables, executable);
    uint32_t process = profile_process_add(p, (int32_t)at + 1, PROFILE_NONE, 0);
    uint32_t name = profile_string(p, executable);
    *vector_push(&p->processes.data[process].execs) =
        (struct profile_exec){.comm = name, .exe = name};
    b->thread = vector_reserve_raw(b->thread, &b->thread_cap, (size_t)at + 1, sizeof *b->thread);
    b->thread[at] = profile_thread_add(p, process, (int32_t)at + 1, executable, 0);
    return b->thread[at];
}

static int too_many(size_t max, struct error *err)
{
    return error_set(err, FAULT_USAGE,
                     "the job has more than %zu stacks: ask for one event or "
                     "for days with 'event', 'from' and 'to'",
                     max);
}

/* The length first: no row can be taken for another one with its parts. */
static const char *identity(const struct store_count *c, struct text *out)
{
    text_clear(out);
    text_format(out, "%d %zu:%s", (int)c->kind, strlen(c->executable), c->executable);
    text_add(out, c->name);
    return out->data;
}

static int note_row(void *context, const struct store_count *c, struct error *err)
{
    struct jobs_counted *n = context;
    if (n->rows.len >= n->max)
        return too_many(n->max, err);
    uint32_t at = names_add(&n->rows, identity(c, &n->scratch));
    while (n->values.len <= at)
        *vector_push(&n->values) = 0;
    n->values.data[at] += c->value;
    return 0;
}

int jobs_count(struct jobs_counted *n, struct store *s, const struct store_query *query,
               struct error *err)
{
    struct store_query all = *query;
    int rc = 0;
    for (int kind = 0; !rc && kind < COUNT_KINDS; kind++) {
        all.kind = (enum count_kind)kind;
        rc = store_counts(s, &all, note_row, n, err);
    }
    return rc;
}

void jobs_counted_release(struct jobs_counted *n)
{
    names_release(&n->rows);
    vector_release(&n->values);
    text_release(&n->scratch);
}

static int64_t gained(const struct jobs_counted *since, const struct store_count *c)
{
    struct text t = TEXT_INIT;
    uint32_t at = since ? names_find(&since->rows, identity(c, &t)) : NAMES_NONE;
    text_release(&t);
    return at == NAMES_NONE ? c->value : c->value - since->values.data[at];
}

static int take_row(void *context, const struct store_count *c, struct error *err)
{
    struct building *b = context;
    struct profile *p = &b->profile;
    int64_t value = gained(b->since, c);
    if (++b->rows > b->max)
        return too_many(b->max, err);
    if (value <= 0)
        return 0;
    uint32_t event = profile_event_add(p, c->event, unit_of(c->event), 0);
    uint32_t stack = 0, depth = 0;
    char *copy = memory_strdup(c->name), *rest = copy;
    for (char *name; depth < DEPTH_MAX && (name = c->kind == COUNT_STACK ? strsep(&rest, ";")
                                                  : depth                ? NULL
                                                                         : copy);
         depth++) {
        uint32_t function = profile_function_add(p, *name ? name : "?", "", "", 0, b->module);
        stack = profile_stack_add(p, stack, profile_frame_named(p, b->module, function, 0));
    }
    free(copy);
    profile_count(p, event, thread_of(b, c->executable), stack, 1, (uint64_t)value);
    return 0;
}

static int build(struct building *b, struct store *s, const struct store_query *query,
                 struct error *err)
{
    struct store_query all = *query;
    profile_init(&b->profile);
    b->module = profile_module_add(&b->profile, CODE_UNKNOWN, "", NULL, 0);
    all.kind = COUNT_STACK;
    int rc = store_counts(s, &all, take_row, b, err);
    if (rc || b->rows)
        return rc;
    all.kind = COUNT_NODE;
    return store_counts(s, &all, take_row, b, err);
}

static int write_out(void *context, const void *data, size_t len, struct error *err)
{
    (void)err;
    text_add_len(context, data, len);
    return 0;
}

static int write_profile(const struct profile *p, const struct format *f, struct text *out,
                         struct error *err)
{
    struct export_options how = {.event = PROFILE_NONE, .weight = WEIGHT_VALUE};
    struct sink sink;
    sink_init(&sink, write_out, out);
    int rc = f->write(p, &how, &sink, err);
    if (!rc)
        rc = sink_finish(&sink, err);
    sink_release(&sink);
    return rc;
}

void jobs_export_answer(struct http_request *q, struct jobs *j, const struct store_query *query,
                        const char *format, const struct jobs_counted *since)
{
    const struct format *f = format_find(format);
    struct building b = {.max = j->rows_max, .since = since};
    struct text out = TEXT_INIT;
    struct error err = {0};
    if (!f || !f->write) {
        format_names(true, &out);
        http_reply_error(q, 400, "'%s' is no format that can be written: use %s", format, out.data);
        text_release(&out);
        return;
    }
    struct store *s = jobs_store(q, j);
    if (!s)
        return;
    int rc = build(&b, s, query, &err);
    if (!rc)
        rc = write_profile(&b.profile, f, &out, &err);
    if (!rc)
        http_reply_text(q, 200,
                        f->binary ? "application/octet-stream" : "text/plain; charset=utf-8", &out);
    jobs_close(q, j, s, rc, &err);
    profile_release(&b.profile);
    names_release(&b.executables);
    free(b.thread);
    text_release(&out);
}
