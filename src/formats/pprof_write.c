/*
 * A profile as pprof's gzipped protocol buffer. A module becomes a mapping whose
 * range is made up: it holds the module's own addresses, moved so that no two modules
 * overlap, and pprof's arithmetic (address - start + offset) leads back to them.
 * Samples go out first and strings last, so nothing but the tables is held.
 */
#include <stdlib.h>

#include "formats/pprof_internal.h"
#include "formats/proto.h"
#include "formats/thread_sums.h"

#define PAGE 0x1000ull
#define FIRST_START 0x400000ull
#define SPAN_MAX (1ull << 48)

struct column {
    uint32_t event;
    bool counts;
};

struct module_range {
    uint32_t id; /* mapping, 0: none */
    uint64_t low, high, start;
    bool located, files, lines, inlined;
};

struct pprof_writer {
    const struct profile *p;
    struct sink *out;
    struct names strings;
    struct text message, part;
    VECTOR(struct column) columns;
    struct module_range *ranges;
    bool *frame_used, *function_used;
    bool *has_column;   /* by event */
    struct text labels; /* of the thread in hand */
    uint32_t main_event;
    bool nowhere_used; /* samples without a stack: pprof wants one frame at least */
};

/* Names come from outside, and pprof prints them as they are. */
static uint64_t string(struct pprof_writer *w, const char *text)
{
    struct text clean = TEXT_INIT;
    text_add_printable(&clean, text);
    uint64_t id = names_add(&w->strings, clean.data);
    text_release(&clean);
    return id;
}

/* Sends the message under construction as a field of the profile. */
static void send(struct pprof_writer *w, enum pprof_profile field)
{
    struct text head = TEXT_INIT;
    proto_add_varint(&head, (unsigned)field << 3 | PROTO_BYTES);
    proto_add_varint(&head, w->message.len);
    sink_add(w->out, head.data, head.len);
    sink_add(w->out, w->message.data, w->message.len);
    text_release(&head);
    text_clear(&w->message);
}

static void send_uint(struct pprof_writer *w, enum pprof_profile field, uint64_t v)
{
    struct text t = TEXT_INIT;
    proto_add_uint(&t, field, v);
    sink_add(w->out, t.data, t.len);
    text_release(&t);
}

static const char *unit_name(enum value_unit unit)
{
    return unit == UNIT_NANOSECONDS ? "nanoseconds" : unit == UNIT_BYTES ? "bytes" : "count";
}

/* Readers of heap profiles know these names. */
static const char *type_name(const struct profile *p, uint32_t event)
{
    static const struct {
        const char *event, *type;
    } heap[] = {{"heap:allocated", "alloc_space"},
                {"heap:live", "inuse_space"},
                {"heap:peak", "peak_space"},
                {"heap:tree-peak", "tree_peak_space"},
                {"heap:temporary", "temporary_space"}};
    const char *name = profile_text(p, p->events.data[event].name);
    for (size_t i = 0; i < sizeof heap / sizeof *heap; i++)
        if (!strcmp(heap[i].event, name))
            return heap[i].type;
    return name;
}

/* The two halves of every heap profile go together. */
static bool is_heap_half(const struct profile *p, uint32_t event)
{
    const char *name = profile_text(p, p->events.data[event].name);
    return !strcmp(name, "heap:allocated") || !strcmp(name, "heap:live");
}

static void count_name(const struct pprof_writer *w, uint32_t event, struct text *out)
{
    const char *name = type_name(w->p, event);
    size_t len = strlen(name);
    if (text_ends(name, "_space"))
        text_format(out, "%.*s_objects", (int)len - 6, name);
    else if (!strcmp(name, "delay"))
        text_add(out, "contentions");
    else if (event == w->main_event && profile_event_find(w->p, "samples") == PROFILE_NONE)
        text_add(out, "samples");
    else
        text_format(out, "%s_samples", name);
}

static void add_type(struct pprof_writer *w, const char *name, const char *unit)
{
    proto_add_uint(&w->message, TYPE_NAME, string(w, name));
    proto_add_uint(&w->message, TYPE_UNIT, string(w, unit));
}

static bool any_but_one(const struct profile *p, uint32_t event)
{
    struct samples_cursor c;
    struct profile_sample s;
    bool found = false;
    samples_begin(&c, &p->samples, event, SAMPLES_ALL);
    while (!found && samples_next(&c, &s))
        found = s.value != 1;
    samples_end(&c, NULL);
    return found;
}

static bool counts_differ(const struct profile *p, uint32_t event)
{
    const struct profile_event *e = &p->events.data[event];
    if (e->unit != UNIT_COUNT)
        return e->samples || !e->value || is_heap_half(p, event);
    for (size_t i = 0; i < p->cells.len; i++)
        if (p->cells.data[i].event == event && p->cells.data[i].count != p->cells.data[i].value)
            return true;
    return p->samples_apart && any_but_one(p, event);
}

static void add_columns(struct pprof_writer *w, uint32_t event)
{
    const struct profile_event *e = &w->p->events.data[event];
    if (counts_differ(w->p, event)) {
        struct text name = TEXT_INIT;
        count_name(w, event, &name);
        add_type(w, name.data, "count");
        send(w, PROFILE_SAMPLE_TYPE);
        *vector_push(&w->columns) = (struct column){event, true};
        text_release(&name);
    }
    add_type(w, type_name(w->p, event), unit_name(e->unit));
    send(w, PROFILE_SAMPLE_TYPE);
    *vector_push(&w->columns) = (struct column){event, false};
    w->has_column[event] = true;
}

/* Of the heap, what was allocated and what is live, even if nothing is; the rest only if it is
 * asked for. */
static bool is_wanted(const struct profile *p, uint32_t event, uint32_t only)
{
    const struct profile_event *e = &p->events.data[event];
    if (only != PROFILE_NONE)
        return event == only || (is_heap_half(p, only) && is_heap_half(p, event));
    if (text_starts(profile_text(p, e->name), "heap:"))
        return is_heap_half(p, event);
    return e->samples || e->value;
}

/* Other tools expect cpu to come first. */
static void send_types(struct pprof_writer *w, uint32_t only)
{
    if (w->main_event == PROFILE_NONE) {
        add_type(w, "samples", "count");
        send(w, PROFILE_SAMPLE_TYPE);
        return;
    }
    uint32_t first = profile_event_find(w->p, "cpu");
    if (w->main_event == first)
        add_columns(w, first);
    for (uint32_t i = 0; i < w->p->events.len; i++)
        if (i != first && is_wanted(w->p, i, only))
            add_columns(w, i);
    const struct profile_event *e = &w->p->events.data[w->main_event];
    add_type(w, type_name(w->p, w->main_event), unit_name(e->unit));
    send(w, PROFILE_PERIOD_TYPE);
    send_uint(w, PROFILE_PERIOD, e->period);
    send_uint(w, PROFILE_DEFAULT_TYPE, string(w, type_name(w->p, w->main_event)));
}

static void add_label(struct pprof_writer *w, const char *key, const char *text, uint64_t number)
{
    text_clear(&w->part);
    proto_add_uint(&w->part, LABEL_KEY, string(w, key));
    if (text)
        proto_add_uint(&w->part, LABEL_TEXT, string(w, text));
    else
        proto_add_uint(&w->part, LABEL_NUMBER, number);
    proto_add_bytes(&w->labels, SAMPLE_LABEL, w->part.data, w->part.len);
}

static void make_labels(struct pprof_writer *w, uint32_t thread)
{
    const struct profile *p = w->p;
    const struct profile_thread *t = &p->threads.data[thread];
    const struct profile_process *q = &p->processes.data[t->process];
    const char *process = profile_process_name(p, t->process), *name = profile_text(p, t->name);
    text_clear(&w->labels);
    if (q->pid)
        add_label(w, "pid", NULL, (uint32_t)q->pid);
    if (q->pid && process[0])
        add_label(w, "process", process, 0);
    if (t->tid)
        add_label(w, "tid", NULL, (uint32_t)t->tid);
    if (name[0])
        add_label(w, "thread", name, 0);
}

static void add_path(struct pprof_writer *w, uint32_t stack)
{
    const struct profile *p = w->p;
    text_clear(&w->part);
    for (; stack; stack = p->stacks.data[stack].parent) {
        uint32_t frame = p->stacks.data[stack].frame;
        w->frame_used[frame] = true;
        proto_add_varint(&w->part, (uint64_t)frame + 1);
    }
    if (!w->part.len) {
        w->nowhere_used = true;
        proto_add_varint(&w->part, (uint64_t)p->frames.len + 1);
    }
    proto_add_bytes(&w->message, SAMPLE_LOCATION, w->part.data, w->part.len);
}

static uint64_t value_of(const struct thread_sums *sums, uint32_t stack, struct column column)
{
    for (uint32_t i = sums->newest[stack]; i; i = sums->next.data[i - 1]) {
        const struct profile_cell *c = &sums->items.data[i - 1];
        if (c->event == column.event)
            return column.counts ? c->count : c->value;
    }
    return 0;
}

/* What a stack has of all events. */
static void send_sample(struct pprof_writer *w, const struct thread_sums *sums, uint32_t stack)
{
    add_path(w, stack);
    text_clear(&w->part);
    for (size_t i = 0; i < w->columns.len; i++)
        proto_add_varint(&w->part, value_of(sums, stack, w->columns.data[i]));
    proto_add_bytes(&w->message, SAMPLE_VALUE, w->part.data, w->part.len);
    text_add_len(&w->message, w->labels.data, w->labels.len);
    send(w, PROFILE_SAMPLE);
}

static bool has_columns(const struct pprof_writer *w, const struct thread_sums *sums,
                        uint32_t stack)
{
    for (uint32_t i = sums->newest[stack]; i; i = sums->next.data[i - 1])
        if (w->has_column[sums->items.data[i - 1].event])
            return true;
    return false;
}

static int send_samples(struct pprof_writer *w, struct error *err)
{
    struct thread_sums sums;
    thread_sums_init(&sums, w->p, PROFILE_NONE);
    for (uint32_t t = 0; t < w->p->threads.len && !sink_failed(w->out); t++) {
        thread_sums_take(&sums, t);
        if (sums.items.len)
            make_labels(w, t);
        for (size_t i = 0; i < sums.stacks.len; i++)
            if (has_columns(w, &sums, sums.stacks.data[i]))
                send_sample(w, &sums, sums.stacks.data[i]);
    }
    return thread_sums_release(&sums, err);
}

/* The frame of samples that have none, one past the others. */
static void send_nowhere(struct pprof_writer *w)
{
    uint64_t function = w->p->functions.len + 1, location = w->p->frames.len + 1;
    proto_add_uint(&w->message, FUNCTION_ID, function);
    proto_add_uint(&w->message, FUNCTION_NAME, string(w, PPROF_NOWHERE));
    send(w, PROFILE_FUNCTION);
    text_clear(&w->part);
    proto_add_uint(&w->part, LINE_FUNCTION, function);
    proto_add_uint(&w->message, LOCATION_ID, location);
    proto_add_bytes(&w->message, LOCATION_LINE, w->part.data, w->part.len);
    send(w, PROFILE_LOCATION);
}

static void send_functions(struct pprof_writer *w)
{
    const struct profile *p = w->p;
    for (size_t i = 0; i < p->functions.len; i++) {
        const struct profile_function *f = &p->functions.data[i];
        if (!w->function_used[i])
            continue;
        const char *name = profile_text(p, f->name), *linkage = profile_text(p, f->linkage);
        proto_add_uint(&w->message, FUNCTION_ID, i + 1);
        proto_add_uint(&w->message, FUNCTION_NAME, string(w, name));
        proto_add_uint(&w->message, FUNCTION_SYSTEM_NAME, string(w, linkage[0] ? linkage : name));
        proto_add_uint(&w->message, FUNCTION_FILE, string(w, profile_text(p, f->file)));
        proto_add_uint(&w->message, FUNCTION_START_LINE, f->start_line);
        send(w, PROFILE_FUNCTION);
    }
}

/* A frame known by its names alone stands at address 0 in pprof. */
static uint64_t made_up_address(const struct pprof_writer *w, const struct profile_frame *f)
{
    if (!f->address || f->module >= w->p->modules.len || !w->ranges[f->module].id)
        return f->address;
    return w->ranges[f->module].start + (f->address - w->ranges[f->module].low);
}

static void send_locations(struct pprof_writer *w)
{
    const struct profile *p = w->p;
    for (size_t i = 0; i < p->frames.len; i++) {
        const struct profile_frame *f = &p->frames.data[i];
        if (!w->frame_used[i])
            continue;
        proto_add_uint(&w->message, LOCATION_ID, i + 1);
        if (f->module < p->modules.len)
            proto_add_uint(&w->message, LOCATION_MAPPING, w->ranges[f->module].id);
        proto_add_uint(&w->message, LOCATION_ADDRESS, made_up_address(w, f));
        for (uint32_t k = 0; k < f->location_count; k++) {
            const struct profile_location *at = &p->locations.data[f->first_location + k];
            text_clear(&w->part);
            proto_add_uint(&w->part, LINE_FUNCTION, (uint64_t)at->function + 1);
            proto_add_uint(&w->part, LINE_NUMBER, at->line);
            proto_add_bytes(&w->message, LOCATION_LINE, w->part.data, w->part.len);
            w->function_used[at->function] = true;
        }
        send(w, PROFILE_LOCATION);
    }
}

static void measure_frame(struct pprof_writer *w, const struct profile_frame *f)
{
    const struct profile *p = w->p;
    struct module_range *r = &w->ranges[f->module];
    if (f->address && f->address < r->low)
        r->low = f->address;
    if (f->address > r->high)
        r->high = f->address;
    r->located |= f->location_count > 0;
    r->inlined |= f->location_count > 1;
    for (uint32_t k = 0; k < f->location_count; k++) {
        const struct profile_location *at = &p->locations.data[f->first_location + k];
        r->lines |= at->line > 0;
        r->files |= p->functions.data[at->function].file != 0;
    }
}

/* Python files and unknown code have no mapping; nor has what is spread over half the addresses. */
static bool has_mapping(const struct profile *p, uint32_t module, const struct module_range *r)
{
    enum code_kind kind = p->modules.data[module].kind;
    return kind != CODE_PYTHON && kind != CODE_UNKNOWN && r->high - r->low < SPAN_MAX;
}

static void send_mapping(struct pprof_writer *w, uint32_t module)
{
    const struct profile *p = w->p;
    const struct profile_module *m = &p->modules.data[module];
    const struct module_range *r = &w->ranges[module];
    char build_id[2 * sizeof m->build_id + 1] = "";
    for (size_t i = 0; i < m->build_id_len; i++)
        snprintf(build_id + 2 * i, 3, "%02x", m->build_id[i]);
    const char *path = profile_text(p, m->path);
    bool settled = r->located || p->symbolized || m->kind != CODE_ELF;
    proto_add_uint(&w->message, MAPPING_ID, r->id);
    proto_add_uint(&w->message, MAPPING_START, r->start);
    proto_add_uint(&w->message, MAPPING_LIMIT, r->start + (r->high - r->low));
    proto_add_uint(&w->message, MAPPING_OFFSET, r->low);
    proto_add_uint(&w->message, MAPPING_FILE,
                   string(w, path[0] ? path : profile_module_name(p, module)));
    proto_add_uint(&w->message, MAPPING_BUILD_ID, string(w, build_id));
    proto_add_uint(&w->message, MAPPING_HAS_FUNCTIONS, settled);
    proto_add_uint(&w->message, MAPPING_HAS_FILES, r->files || settled);
    proto_add_uint(&w->message, MAPPING_HAS_LINES, r->lines || settled);
    proto_add_uint(&w->message, MAPPING_HAS_INLINED, r->inlined || settled);
    send(w, PROFILE_MAPPING);
}

/* The module of the program that ran: by its path, else the first that is no library. */
static uint32_t main_module(const struct profile *p)
{
    uint32_t exe = 0;
    for (size_t i = 0; i < p->processes.len && !exe; i++)
        if (p->processes.data[i].execs.len)
            exe = p->processes.data[i].execs.data[p->processes.data[i].execs.len - 1].exe;
    for (size_t i = 0; exe && i < p->modules.len; i++)
        if (p->modules.data[i].path == exe && p->modules.data[i].kind == CODE_ELF)
            return (uint32_t)i;
    for (size_t i = 0; i < p->modules.len; i++)
        if (p->modules.data[i].kind == CODE_ELF &&
            !strstr(profile_text(p, p->modules.data[i].path), ".so"))
            return (uint32_t)i;
    return PROFILE_NONE;
}

static void send_mappings(struct pprof_writer *w)
{
    const struct profile *p = w->p;
    w->ranges = memory_array(p->modules.len + 1, sizeof *w->ranges);
    bool *used = memory_array(p->modules.len + 1, sizeof *used);
    for (size_t i = 0; i < p->modules.len; i++)
        w->ranges[i].low = UINT64_MAX;
    for (size_t i = 0; i < p->frames.len; i++) {
        if (!w->frame_used[i] || p->frames.data[i].module >= p->modules.len)
            continue;
        used[p->frames.data[i].module] = true;
        measure_frame(w, &p->frames.data[i]);
    }
    uint32_t first = main_module(p), id = 0;
    uint64_t start = FIRST_START;
    for (size_t i = 0; i <= p->modules.len; i++) {
        uint32_t module = i ? (uint32_t)i - 1 : first;
        if (module == PROFILE_NONE || (i && module == first) || (!used[module] && i))
            continue;
        struct module_range *r = &w->ranges[module];
        r->low = r->low == UINT64_MAX ? 0 : r->low & ~(PAGE - 1);
        r->high = (r->high | (PAGE - 1)) == UINT64_MAX ? UINT64_MAX : (r->high | (PAGE - 1)) + 1;
        if (!has_mapping(p, module, r))
            continue;
        r->id = ++id;
        r->start = start;
        start = (start + (r->high - r->low) + 0x200000) & ~0xfffffull;
        send_mapping(w, module);
    }
    free(used);
}

static void send_facts(struct pprof_writer *w)
{
    const struct profile *p = w->p;
    send_uint(w, PROFILE_TIME, p->wall_start);
    send_uint(w, PROFILE_DURATION, p->end > p->start ? p->end - p->start : 0);
    for (size_t i = 0; i < p->notes.len; i++)
        send_uint(w, PROFILE_COMMENT, string(w, profile_text(p, p->notes.data[i].text)));
    if (profile_lost(p)) {
        char lost[80];
        snprintf(lost, sizeof lost, "%llu samples were lost and are not in here",
                 (unsigned long long)profile_lost(p));
        send_uint(w, PROFILE_COMMENT, string(w, lost));
    }
}

static void send_strings(struct pprof_writer *w)
{
    for (size_t i = 0; i < w->strings.len; i++) {
        text_add(&w->message, w->strings.text[i]);
        send(w, PROFILE_STRING);
    }
}

static void release(struct pprof_writer *w)
{
    names_release(&w->strings);
    text_release(&w->message);
    text_release(&w->part);
    vector_release(&w->columns);
    free(w->ranges);
    free(w->frame_used);
    free(w->function_used);
    free(w->has_column);
    text_release(&w->labels);
}

int pprof_write(const struct profile *p, const struct export_options *options, struct sink *out,
                struct error *err)
{
    struct gzip *gzip;
    int rc = gzip_new(out, &gzip, err);
    if (rc)
        return rc;
    struct pprof_writer w = {.p = p, .out = gzip_sink(gzip)};
    text_init(&w.message);
    text_init(&w.part);
    text_init(&w.labels);
    string(&w, "");
    w.frame_used = memory_array(p->frames.len + 1, sizeof *w.frame_used);
    w.function_used = memory_array(p->functions.len + 1, sizeof *w.function_used);
    w.has_column = memory_array(p->events.len + 1, sizeof *w.has_column);
    w.main_event = options->event == PROFILE_NONE ? format_main_event(p) : options->event;
    send_types(&w, options->event);
    rc = send_samples(&w, err);
    send_mappings(&w);
    send_locations(&w);
    send_functions(&w);
    if (w.nowhere_used)
        send_nowhere(&w);
    send_facts(&w);
    send_strings(&w);
    release(&w);
    int closed = gzip_free(gzip, rc ? NULL : err);
    return rc ? rc : closed;
}
