/*
 * The Gecko profile that the Firefox Profiler loads: for each thread its own tables of
 * strings, frames, stack nodes and samples, as rows under a schema. Without times the
 * samples are laid out one after the other, each as far on as its value.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "formats/pairs.h"
#include "formats/places.h"
#include "formats/thread_order.h"

#define GECKO_VERSION 24
#define ROW_MAX 128
enum category { CATEGORY_USER, CATEGORY_KERNEL, CATEGORY_PYTHON };

/* Numbers that a thread's table has for those of the whole profile. */
struct table {
    uint32_t *row_of;       /* plus one, 0: none yet */
    VECTOR(uint32_t) items; /* by row */
};

struct gecko_writer {
    const struct profile *p;
    struct places places;
    struct pairs paths; /* parent, place; number 0 is the root */
    uint32_t *path_of;  /* by stack */
    struct names strings;
    uint32_t *string_of;                      /* by place */
    struct table nodes, frames, used_strings; /* of the thread in hand: paths, places, strings */
    VECTOR(uint32_t) climb;                   /* paths on the way to one that has a row */
    struct json json;
    struct thread_order list;
};

static uint32_t table_row(struct table *t, uint32_t item)
{
    if (!t->row_of[item]) {
        *vector_push(&t->items) = item;
        t->row_of[item] = (uint32_t)t->items.len;
    }
    return t->row_of[item] - 1;
}

static void table_clear(struct table *t)
{
    for (size_t i = 0; i < t->items.len; i++)
        t->row_of[t->items.data[i]] = 0;
    t->items.len = 0;
}

static void table_release(struct table *t)
{
    free(t->row_of);
    vector_release(&t->items);
}

/* Stacks stand after their parents. */
static void make_paths(struct gecko_writer *w)
{
    const struct profile *p = w->p;
    w->path_of = memory_array(p->stacks.len + 1, sizeof *w->path_of);
    pairs_add(&w->paths, 0, UINT32_MAX);
    for (size_t i = 1; i < p->stacks.len; i++) {
        uint32_t frame = p->stacks.data[i].frame, k = p->frames.data[frame].location_count;
        uint32_t at = w->path_of[p->stacks.data[i].parent];
        do
            at = pairs_add(&w->paths, at, places_find(&w->places, frame, k ? k - 1 : 0));
        while (k && --k);
        w->path_of[i] = at;
    }
    pairs_seal(&w->paths);
}

/* "function (in module)", which is how the viewer finds the module again; as JSON, for there may be
 * as many tables as threads. */
static void make_strings(struct gecko_writer *w)
{
    struct text name = TEXT_INIT, quoted = TEXT_INIT;
    w->string_of = memory_array(w->places.items.len + 1, sizeof *w->string_of);
    for (uint32_t i = 0; i < w->places.items.len; i++) {
        const struct place *at = &w->places.items.data[i];
        text_clear(&name);
        places_name(&w->places, i, &name);
        if (at->function != PROFILE_NONE) {
            text_add(&name, " (in ");
            text_add_printable(&name,
                               profile_module_name(w->p, w->p->frames.data[at->frame].module));
            text_add(&name, ")");
        }
        text_clear(&quoted);
        text_add_char(&quoted, '"');
        json_escape(&quoted, name.data);
        text_add_char(&quoted, '"');
        w->string_of[i] = names_add(&w->strings, quoted.data);
    }
    text_release(&name);
    text_release(&quoted);
}

static void make_tables(struct gecko_writer *w)
{
    w->nodes.row_of = memory_array(w->paths.items.len + 1, sizeof(uint32_t));
    w->frames.row_of = memory_array(w->places.items.len + 1, sizeof(uint32_t));
    w->used_strings.row_of = memory_array(w->strings.len + 1, sizeof(uint32_t));
}

/* The row of a stack's path, PROFILE_NONE for the empty one; callers get theirs before. */
static uint32_t add_stack(struct gecko_writer *w, uint32_t stack)
{
    uint32_t at = w->path_of[stack];
    if (!at)
        return PROFILE_NONE;
    if (w->nodes.row_of[at])
        return w->nodes.row_of[at] - 1;
    w->climb.len = 0;
    for (; at && !w->nodes.row_of[at]; at = w->paths.items.data[at].a)
        *vector_push(&w->climb) = at;
    for (size_t i = w->climb.len; i-- > 0;) {
        at = w->climb.data[i];
        table_row(&w->nodes, at);
        table_row(&w->frames, w->paths.items.data[at].b);
    }
    return w->nodes.row_of[at] - 1;
}

/* Rows are put together here, for there are millions of them. */
static char *put_text(char *at, const char *text, size_t len)
{
    memcpy(at, text, len);
    return at + len;
}

#define PUT(at, text) put_text(at, text, sizeof(text) - 1)

/* A number, or null for `none`. */
static char *put_or_null(char *at, uint32_t number, uint32_t none)
{
    return number == none ? PUT(at, "null") : json_put_digits(at, number);
}

/* With six decimals, without those that say nothing. */
static char *put_milliseconds(char *at, uint64_t ns)
{
    at = json_put_digits(at, ns / 1000000);
    uint64_t rest = ns % 1000000;
    if (!rest)
        return at;
    *at++ = '.';
    for (uint64_t unit = 100000; rest; rest %= unit, unit /= 10)
        *at++ = (char)('0' + rest / unit);
    return at;
}

/* {"schema": {"a": 0, "b": 1}, "data": [ — the caller writes rows and ends twice. */
static void begin_table(struct json *j, const char *key, const char *const *columns)
{
    json_key(j, key);
    json_open_object(j);
    json_key(j, "schema");
    json_open_object(j);
    for (uint64_t i = 0; columns[i]; i++)
        json_put_uint(j, columns[i], i);
    json_end(j);
    json_key(j, "data");
    json_open_array(j);
}

static void end_table(struct json *j)
{
    json_end(j);
    json_end(j);
}

static enum category category_of(const struct gecko_writer *w, uint32_t place)
{
    uint32_t module = w->p->frames.data[w->places.items.data[place].frame].module;
    enum code_kind kind = module < w->p->modules.len ? w->p->modules.data[module].kind : CODE_ELF;
    return kind == CODE_KERNEL   ? CATEGORY_KERNEL
           : kind == CODE_PYTHON ? CATEGORY_PYTHON
                                 : CATEGORY_USER;
}

static void write_frame_table(struct gecko_writer *w)
{
    static const char *const columns[] = {
        "location", "relevantForJS", "innerWindowID", "implementation", "optimizations",
        "line",     "column",        "category",      "subcategory",    NULL};
    struct json *j = &w->json;
    begin_table(j, "frameTable", columns);
    for (size_t i = 0; i < w->frames.items.len && !j->failed; i++) {
        uint32_t place = w->frames.items.data[i], line = w->places.items.data[place].line;
        char row[ROW_MAX], *at = PUT(row, "[");
        at = json_put_digits(at, table_row(&w->used_strings, w->string_of[place]));
        at = PUT(at, ",false,0,null,null,");
        at = PUT(put_or_null(at, line, 0), ",null,");
        at = PUT(json_put_digits(at, category_of(w, place)), ",null]");
        json_raw(j, row, (size_t)(at - row));
    }
    end_table(j);
}

static void write_stack_table(struct gecko_writer *w)
{
    static const char *const columns[] = {"prefix", "frame", NULL};
    struct json *j = &w->json;
    begin_table(j, "stackTable", columns);
    for (size_t i = 0; i < w->nodes.items.len && !j->failed; i++) {
        struct pair path = w->paths.items.data[w->nodes.items.data[i]];
        uint32_t prefix = path.a ? table_row(&w->nodes, path.a) : PROFILE_NONE;
        char row[ROW_MAX], *at = PUT(row, "[");
        at = PUT(put_or_null(at, prefix, PROFILE_NONE), ",");
        at = PUT(json_put_digits(at, table_row(&w->frames, path.b)), "]");
        json_raw(j, row, (size_t)(at - row));
    }
    end_table(j);
}

/* Fills the thread's tables as it goes, so it comes before them. */
static void write_sample_table(struct gecko_writer *w, uint32_t thread)
{
    static const char *const columns[] = {"stack", "time", "responsiveness", NULL};
    struct json *j = &w->json;
    begin_table(j, "samples", columns);
    struct thread_value v;
    uint64_t time = 0;
    table_clear(&w->nodes);
    table_clear(&w->frames);
    table_clear(&w->used_strings);
    thread_order_begin(&w->list, thread);
    while (!j->failed && thread_order_next(&w->list, &v)) {
        uint32_t stack = add_stack(w, v.stack);
        char row[ROW_MAX], *at = PUT(row, "[");
        at = PUT(put_or_null(at, stack, PROFILE_NONE), ",");
        at = PUT(put_milliseconds(at, w->list.timed ? v.time : time), ",0]");
        json_raw(j, row, (size_t)(at - row));
        time += v.value;
    }
    end_table(j);
}

static void write_thread(struct gecko_writer *w, uint32_t thread)
{
    static const char *const markers[] = {"name",     "startTime", "endTime", "phase",
                                          "category", "data",      NULL};
    const struct profile_thread *t = &w->p->threads.data[thread];
    const struct profile_process *q = &w->p->processes.data[t->process];
    const char *name = profile_text(w->p, t->name);
    struct json *j = &w->json;
    json_open_object(j);
    /* The viewer takes the thread with this name for the main one of its process. */
    json_put_string(j, "name", t->tid == q->pid ? "GeckoMain" : name[0] ? name : "thread");
    json_put_string(j, "processType", "default");
    json_put_string(j, "processName", profile_process_name(w->p, t->process));
    json_put_int(j, "tid", t->tid);
    json_put_int(j, "pid", q->pid);
    json_put_double(j, "registerTime",
                    t->start > w->p->start ? (double)(t->start - w->p->start) / 1e6 : 0);
    json_key(j, "unregisterTime");
    if (t->ended && t->end > w->p->start)
        json_double(j, (double)(t->end - w->p->start) / 1e6);
    else
        json_nothing(j);
    begin_table(j, "markers", markers);
    end_table(j);
    write_sample_table(w, thread);
    write_frame_table(w);
    write_stack_table(w);
    json_key(j, "stringTable");
    json_open_array(j);
    for (size_t i = 0; i < w->used_strings.items.len && !j->failed; i++) {
        const char *text = w->strings.text[w->used_strings.items.data[i]];
        json_raw(j, text, strlen(text));
    }
    json_end(j);
    json_end(j);
}

static void write_category(struct json *j, const char *name, const char *color)
{
    json_open_object(j);
    json_put_string(j, "name", name);
    json_put_string(j, "color", color);
    json_key(j, "subcategories");
    json_open_array(j);
    json_text(j, "Other");
    json_end(j);
    json_end(j);
}

static void write_meta(struct gecko_writer *w, uint32_t event)
{
    const struct profile *p = w->p;
    const struct profile_event *e = &p->events.data[event];
    struct json *j = &w->json;
    json_key(j, "meta");
    json_open_object(j);
    json_put_uint(j, "version", GECKO_VERSION);
    json_put_double(j, "interval",
                    e->unit == UNIT_NANOSECONDS && e->period ? (double)e->period / 1e6 : 1);
    json_put_double(j, "startTime", (double)p->wall_start / 1e6);
    json_key(j, "shutdownTime");
    json_nothing(j);
    json_put_uint(j, "processType", 0);
    json_put_uint(j, "stackwalk", 1);
    json_put_uint(j, "debug", 0);
    json_put_uint(j, "gcpoison", 0);
    json_put_uint(j, "asyncstack", 1);
    json_put_string(j, "product", p->processes.len ? profile_process_name(p, 0) : "sonde");
    json_put_string(j, "importedFrom", "sonde");
    json_put_bool(j, "presymbolicated", true);
    json_key(j, "categories");
    json_open_array(j);
    write_category(j, "User", "yellow");
    write_category(j, "Kernel", "orange");
    write_category(j, "Python", "green");
    json_end(j);
    json_key(j, "markerSchema");
    json_open_array(j);
    json_end(j);
    json_end(j);
}

static void write_empty(struct json *j, const char *key)
{
    json_key(j, key);
    json_open_array(j);
    json_end(j);
}

static int gecko_write(const struct profile *p, const struct export_options *options,
                       struct sink *out, struct error *err)
{
    struct gecko_writer w = {.p = p};
    uint32_t event = options->event == PROFILE_NONE ? format_main_event(p) : options->event;
    if (event == PROFILE_NONE)
        return error_set(err, FAULT_MISSING, "there are no samples to write");
    json_init(&w.json, sink_json, out);
    places_init(&w.places, p);
    thread_order_init(&w.list, p, event);
    make_paths(&w);
    make_strings(&w);
    make_tables(&w);
    json_open_object(&w.json);
    write_meta(&w, event);
    write_empty(&w.json, "libs");
    json_key(&w.json, "threads");
    json_open_array(&w.json);
    for (uint32_t i = 0; i < p->threads.len; i++)
        if (thread_order_has(&w.list, i))
            write_thread(&w, i);
    json_end(&w.json);
    write_empty(&w.json, "processes");
    write_empty(&w.json, "pausedRanges");
    json_end(&w.json);
    json_finish(&w.json);
    json_release(&w.json);
    names_release(&w.strings);
    table_release(&w.nodes);
    table_release(&w.frames);
    table_release(&w.used_strings);
    vector_release(&w.climb);
    pairs_release(&w.paths);
    free(w.path_of);
    free(w.string_of);
    places_release(&w.places);
    return thread_order_release(&w.list, err);
}

static const char *const extensions[] = {".gecko.json", NULL};

const struct format format_gecko = {
    .name = "gecko",
    .description = "for the Firefox Profiler",
    .extensions = extensions,
    .timed = true,
    .write = gecko_write,
};
