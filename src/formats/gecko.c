/*
 * The Gecko profile that the Firefox Profiler loads: for each thread its own tables of
 * strings, frames, stack nodes and samples, as rows under a schema. Without times the
 * samples are laid out one after the other, each as far on as its value.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "formats/places.h"
#include "formats/thread_order.h"

#define GECKO_VERSION 24
enum category { CATEGORY_USER, CATEGORY_KERNEL, CATEGORY_PYTHON };

struct gecko_stack {
    uint32_t prefix, frame; /* prefix PROFILE_NONE: a root */
};

/* The tables of the thread in hand. */
struct gecko_writer {
    const struct profile *p;
    struct places places;
    struct json json;
    struct names strings;
    struct map frame_index, stack_index;
    VECTOR(uint32_t) frames; /* places */
    VECTOR(struct gecko_stack) stacks;
    uint32_t *nodes;       /* by stack of the profile: its node, plus one; 0: not met yet */
    VECTOR(uint32_t) path; /* stacks on the way to one that is known */
    struct thread_order list;
    struct text row;
};

/* The node of a frame's places on top of `node`. */
static uint32_t add_frame(struct gecko_writer *w, uint32_t node, uint32_t frame)
{
    uint32_t k = w->p->frames.data[frame].location_count;
    bool added;
    do {
        uint32_t place = places_find(&w->places, frame, k ? k - 1 : 0);
        uint32_t row = (uint32_t)*map_put(&w->frame_index, place, 0, w->frames.len, &added);
        if (added)
            *vector_push(&w->frames) = place;
        uint32_t next = (uint32_t)*map_put(&w->stack_index, node, row, w->stacks.len, &added);
        if (added)
            *vector_push(&w->stacks) = (struct gecko_stack){node, row};
        node = next;
    } while (k && --k);
    return node;
}

/* PROFILE_NONE for the empty stack. Goes down to a caller that was met before. */
static uint32_t add_stack(struct gecko_writer *w, uint32_t stack)
{
    uint32_t at = stack;
    w->path.len = 0;
    for (; at && !w->nodes[at]; at = w->p->stacks.data[at].parent)
        *vector_push(&w->path) = at;
    uint32_t node = at ? w->nodes[at] - 1 : PROFILE_NONE;
    while (w->path.len) {
        at = w->path.data[--w->path.len];
        node = add_frame(w, node, w->p->stacks.data[at].frame);
        w->nodes[at] = node + 1;
    }
    return node;
}

static void clear_tables(struct gecko_writer *w)
{
    names_release(&w->strings);
    map_clear(&w->frame_index);
    map_clear(&w->stack_index);
    memset(w->nodes, 0, w->p->stacks.len * sizeof *w->nodes);
    w->frames.len = w->stacks.len = 0;
}

/* With six decimals, without those that say nothing. */
static void add_milliseconds(struct text *out, uint64_t ns)
{
    json_add_uint(out, ns / 1000000);
    uint64_t rest = ns % 1000000;
    if (!rest)
        return;
    char digits[7] = ".";
    size_t len = 1;
    for (uint64_t unit = 100000; rest; rest %= unit, unit /= 10)
        digits[len++] = (char)('0' + rest / unit);
    text_add_len(out, digits, len);
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

/* "function (in module)", which is how the viewer finds the module again. */
static uint32_t location_string(struct gecko_writer *w, uint32_t place)
{
    const struct place *at = &w->places.items.data[place];
    struct text name = TEXT_INIT;
    places_name(&w->places, place, &name);
    if (at->function != PROFILE_NONE) {
        text_add(&name, " (in ");
        text_add_printable(&name, profile_module_name(w->p, w->p->frames.data[at->frame].module));
        text_add(&name, ")");
    }
    uint32_t id = names_add(&w->strings, name.data);
    text_release(&name);
    return id;
}

static void write_frame_table(struct gecko_writer *w)
{
    static const char *const columns[] = {
        "location", "relevantForJS", "innerWindowID", "implementation", "optimizations",
        "line",     "column",        "category",      "subcategory",    NULL};
    struct json *j = &w->json;
    begin_table(j, "frameTable", columns);
    for (size_t i = 0; i < w->frames.len; i++) {
        uint32_t place = w->frames.data[i], line = w->places.items.data[place].line;
        json_open_array(j);
        json_uint(j, location_string(w, place));
        json_bool(j, false);
        json_uint(j, 0);
        json_nothing(j);
        json_nothing(j);
        if (line)
            json_uint(j, line);
        else
            json_nothing(j);
        json_nothing(j);
        json_uint(j, category_of(w, place));
        json_nothing(j);
        json_end(j);
    }
    end_table(j);
}

static void write_stack_table(struct gecko_writer *w)
{
    static const char *const columns[] = {"prefix", "frame", NULL};
    struct json *j = &w->json;
    begin_table(j, "stackTable", columns);
    for (size_t i = 0; i < w->stacks.len; i++) {
        json_open_array(j);
        if (w->stacks.data[i].prefix == PROFILE_NONE)
            json_nothing(j);
        else
            json_uint(j, w->stacks.data[i].prefix);
        json_uint(j, w->stacks.data[i].frame);
        json_end(j);
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
    clear_tables(w);
    thread_order_begin(&w->list, thread);
    while (!j->failed && thread_order_next(&w->list, &v)) {
        uint32_t stack = add_stack(w, v.stack);
        text_clear(&w->row);
        text_add_char(&w->row, '[');
        if (stack == PROFILE_NONE)
            text_add(&w->row, "null");
        else
            json_add_uint(&w->row, stack);
        text_add_char(&w->row, ',');
        add_milliseconds(&w->row, w->list.timed ? v.time : time);
        text_add(&w->row, ",0]");
        json_raw(j, w->row.data, w->row.len);
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
    for (size_t i = 0; i < w->strings.len; i++)
        json_text(j, w->strings.text[i]);
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
    w.nodes = memory_array(p->stacks.len + 1, sizeof *w.nodes);
    text_init(&w.row);
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
    map_release(&w.frame_index);
    map_release(&w.stack_index);
    vector_release(&w.frames);
    vector_release(&w.stacks);
    free(w.nodes);
    vector_release(&w.path);
    text_release(&w.row);
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
