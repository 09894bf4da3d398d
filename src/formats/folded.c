/*
 * Folded stacks, the plainest of all: `root;...;leaf N`, a line a stack. Written
 * from a tree of names, so that stacks which differ in addresses alone make one line.
 */
#include <stdlib.h>
#include <string.h>

#include "formats/import.h"
#include "formats/pairs.h"
#include "formats/places.h"
#include "formats/thread_sums.h"

struct folder {
    const struct profile *p;
    struct sink *out;
    struct places places;
    struct thread_sums values;
    struct names names;
    VECTOR(uint32_t) name_of; /* by place */
    struct pairs paths;       /* of names: parent, name; number 0 is the root */
    uint32_t *path_of;        /* by stack */
    uint64_t *sums;           /* by path, of the group in hand */
    VECTOR(uint32_t) touched; /* paths with a sum */
    VECTOR(uint32_t) chain;   /* names of the line in hand, leaf first */
    struct text label;
};

/* A name that cannot be mistaken for two, for a number or for the end of a line. */
static uint32_t clean_name(struct folder *f, const char *text)
{
    text_clear(&f->label);
    text_add_printable(&f->label, text[0] ? text : "[unknown]");
    for (char *c = f->label.data; *c; c++)
        if (*c == ';')
            *c = ':';
    return names_add(&f->names, f->label.data);
}

static uint32_t name_of(struct folder *f, uint32_t place)
{
    struct text name = TEXT_INIT;
    while (f->name_of.len <= place) {
        text_clear(&name);
        places_name(&f->places, (uint32_t)f->name_of.len, &name);
        uint32_t id = clean_name(f, name.data);
        *vector_push(&f->name_of) = id;
    }
    text_release(&name);
    return f->name_of.data[place];
}

static uint32_t add_frame(struct folder *f, uint32_t path, uint32_t frame)
{
    uint32_t k = f->p->frames.data[frame].location_count;
    do {
        uint32_t name = name_of(f, places_find(&f->places, frame, k ? k - 1 : 0));
        path = pairs_add(&f->paths, path, name);
    } while (k && --k);
    return path;
}

/* Stacks stand after their parents, so one pass in order finds every parent done. */
static void add_stacks(struct folder *f)
{
    const struct profile *p = f->p;
    f->path_of = memory_array(p->stacks.len + 1, sizeof *f->path_of);
    pairs_add(&f->paths, 0, UINT32_MAX);
    for (size_t i = 1; i < p->stacks.len; i++)
        f->path_of[i] = add_frame(f, f->path_of[p->stacks.data[i].parent], p->stacks.data[i].frame);
    pairs_seal(&f->paths);
    f->sums = memory_array(f->paths.items.len, sizeof *f->sums);
}

static void write_line(struct folder *f, uint32_t path, const char *prefix)
{
    uint64_t sum = f->sums[path];
    f->chain.len = 0;
    for (uint32_t n = path; n; n = f->paths.items.data[n].a)
        *vector_push(&f->chain) = f->paths.items.data[n].b;
    sink_text(f->out, prefix);
    if (!f->chain.len)
        sink_text(f->out, "[unknown]");
    for (size_t i = f->chain.len; i-- > 0;) {
        sink_text(f->out, f->names.text[f->chain.data[i]]);
        if (i)
            sink_text(f->out, ";");
    }
    sink_format(f->out, " %llu\n", (unsigned long long)sum);
}

static int compare_paths(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void write_group(struct folder *f, const char *prefix)
{
    if (!f->touched.len)
        return;
    qsort(f->touched.data, f->touched.len, sizeof *f->touched.data, compare_paths);
    for (size_t i = 0; i < f->touched.len && !sink_failed(f->out); i++) {
        write_line(f, f->touched.data[i], prefix);
        f->sums[f->touched.data[i]] = 0;
    }
    f->touched.len = 0;
}

static void add_thread(struct folder *f, uint32_t thread, enum weight weight)
{
    thread_sums_take(&f->values, thread);
    for (size_t i = 0; i < f->values.items.len; i++) {
        const struct profile_cell *c = &f->values.items.data[i];
        uint32_t path = f->path_of[c->stack];
        uint64_t w = format_weight(f->p, c, weight);
        if (w && !f->sums[path])
            *vector_push(&f->touched) = path;
        f->sums[path] += w;
    }
}

static void add_prefix(struct folder *f, const char *text, int32_t id, struct text *out)
{
    uint32_t name = clean_name(f, text);
    text_format(out, "%s-%d;", f->names.text[name], id);
}

/* "app-1234;" and "worker-1240;", as the outermost frames of what follows. */
static void make_prefix(struct folder *f, const struct export_options *options, uint32_t thread,
                        struct text *out)
{
    const struct profile_thread *t = &f->p->threads.data[thread];
    text_clear(out);
    if (options->by_process)
        add_prefix(f, profile_process_name(f->p, t->process), f->p->processes.data[t->process].pid,
                   out);
    if (options->by_thread)
        add_prefix(f, t->name ? profile_text(f->p, t->name) : "thread", t->tid, out);
}

static int compare_processes(const void *a, const void *b, void *context)
{
    const struct profile_thread *threads = context;
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    if (threads[i].process != threads[k].process)
        return threads[i].process < threads[k].process ? -1 : 1;
    return i < k ? -1 : i > k;
}

static void write_groups(struct folder *f, const struct export_options *options)
{
    const struct profile *p = f->p;
    struct text prefix = TEXT_INIT;
    uint32_t *order = memory_array(p->threads.len + 1, sizeof *order);
    for (uint32_t i = 0; i < p->threads.len; i++)
        order[i] = i;
    if (options->by_process && !options->by_thread && p->threads.len)
        qsort_r(order, p->threads.len, sizeof *order, compare_processes, p->threads.data);
    for (size_t i = 0; i < p->threads.len && !sink_failed(f->out); i++) {
        uint32_t process = p->threads.data[order[i]].process;
        bool last = i + 1 == p->threads.len;
        add_thread(f, order[i], options->weight);
        if (last || options->by_thread ||
            (options->by_process && p->threads.data[order[i + 1]].process != process)) {
            make_prefix(f, options, order[i], &prefix);
            write_group(f, prefix.data);
        }
    }
    text_release(&prefix);
    free(order);
}

static int folded_write(const struct profile *p, const struct export_options *options,
                        struct sink *out, struct error *err)
{
    uint32_t event = options->event == PROFILE_NONE ? format_main_event(p) : options->event;
    if (event == PROFILE_NONE)
        return 0;
    struct folder f = {.p = p, .out = out};
    text_init(&f.label);
    places_init(&f.places, p);
    thread_sums_init(&f.values, p, event);
    add_stacks(&f);
    write_groups(&f, options);
    places_release(&f.places);
    names_release(&f.names);
    vector_release(&f.name_of);
    pairs_release(&f.paths);
    vector_release(&f.touched);
    vector_release(&f.chain);
    text_release(&f.label);
    free(f.path_of);
    free(f.sums);
    return thread_sums_release(&f.values, err);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

/* Splits "a;b;c 12" at its last space; false if there is no number. */
static bool split_count(char *line, size_t len, uint64_t *count)
{
    while (len && is_space(line[len - 1]))
        line[--len] = 0;
    size_t digits = len;
    while (digits && line[digits - 1] >= '0' && line[digits - 1] <= '9')
        digits--;
    if (digits == len || len - digits > 19 || !digits || !is_space(line[digits - 1]))
        return false;
    *count = strtoull(line + digits, NULL, 10);
    while (digits && is_space(line[digits - 1]))
        digits--;
    line[digits] = 0;
    return digits > 0;
}

/* "name (file.py:12)", as Python's samplers write it, has a file and a line. */
static uint32_t read_frame(struct import *im, char *name)
{
    size_t len = strlen(name);
    char *open = len && name[len - 1] == ')' ? strrchr(name, '(') : NULL;
    char *colon = open ? strrchr(open, ':') : NULL;
    uint32_t line = 0;
    const char *file = "";
    if (colon && open > name && open[-1] == ' ' && colon[1] && colon - open > 1 &&
        strspn(colon + 1, "0123456789") == strlen(colon + 1) - 1) {
        line = (uint32_t)strtoul(colon + 1, NULL, 10);
        *colon = 0;
        file = open + 1;
        open[-1] = 0;
    }
    uint32_t module = import_module(im, import_kind(file) == CODE_PYTHON ? file : "");
    if (module == PROFILE_NONE)
        module = import_module(im, "");
    return import_frame(im, module, name[0] ? name : "[unknown]", file, 0, line);
}

static int read_stack(struct import *im, char *line, uint32_t *stack, struct error *err)
{
    size_t depth = 0;
    *stack = 0;
    while (line) {
        char *next = strchr(line, ';');
        if (next)
            *next++ = 0;
        if (++depth > IMPORT_DEPTH_MAX)
            return import_too_many(im, "frames in one stack", IMPORT_DEPTH_MAX, err);
        int rc = import_push(im, stack, read_frame(im, line), err);
        if (rc)
            return rc;
        line = next;
    }
    return 0;
}

static int read_lines(struct import *im, struct error *err)
{
    char *line;
    size_t len;
    int rc;
    import_module(im, ""); /* there when the limit on modules is met */
    uint32_t event = import_event(im, "samples", UNIT_COUNT, 1);
    uint32_t process = import_process(im, 0, source_name(im->source));
    uint32_t thread = import_thread(im, process, 0, "");
    for (;;) {
        uint64_t at = source_offset(im->source), count;
        uint32_t stack;
        rc = source_line(im->source, &line, &len, err);
        if (rc <= 0)
            return rc;
        if (!len || line[0] == '#')
            continue;
        if (strlen(line) != len || !split_count(line, len, &count))
            return source_bad(im->source, at, err,
                              "a folded stack must end with a space and a whole number");
        rc = read_stack(im, line, &stack, err);
        if (!rc && count)
            rc = import_count(im, event, thread, stack, count, count, err);
        if (rc)
            return rc;
    }
}

static int folded_read(struct source *in, const struct import_options *options, struct profile *p,
                       struct error *err)
{
    struct import im;
    import_init(&im, p, in, options);
    int rc = read_lines(&im, err);
    if (!rc) {
        import_check_line_end(&im);
        import_finish(&im, "folded");
    }
    import_release(&im);
    return rc;
}

/* The first line may be longer than what is seen of it. */
static bool is_long_stack(const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (bytes[i] < ' ' && bytes[i] != '\t')
            return false;
    return !strchr("{[", bytes[0]) && memchr(bytes, ';', len);
}

/* Most lines must look like one, and some must have a ';'. What is wrong with the rest the reader
 * tells, with its place. */
static int folded_detect(const uint8_t *bytes, size_t len)
{
    size_t lines = 0, good = 0;
    bool semicolon = false;
    if (len == SOURCE_PEEK_MAX && !memchr(bytes, '\n', len))
        return is_long_stack(bytes, len) ? 40 : 0;
    for (size_t at = 0; at < len;) {
        const uint8_t *end = memchr(bytes + at, '\n', len - at);
        size_t n = end ? (size_t)(end - (bytes + at)) : len - at;
        if (!end && lines)
            break;
        size_t last = n;
        while (last && (bytes[at + last - 1] == '\r' || bytes[at + last - 1] == ' '))
            last--;
        size_t digits = last;
        while (digits && bytes[at + digits - 1] >= '0' && bytes[at + digits - 1] <= '9')
            digits--;
        if (last && bytes[at] != '#') {
            lines++;
            good += digits < last && digits >= 2 && is_space((char)bytes[at + digits - 1]) &&
                    !is_space((char)bytes[at]) && !memchr(bytes + at, 0, n);
            semicolon |= memchr(bytes + at, ';', n) != NULL;
        }
        at += n + 1;
    }
    return semicolon && good && good >= lines - lines / 4 ? 65 : 0;
}

static const char *const extensions[] = {".folded", ".collapsed", NULL};

const struct format format_folded = {
    .name = "folded",
    .description = "folded stacks, `root;...;leaf N`; for flame graph scripts",
    .extensions = extensions,
    .detect = folded_detect,
    .write = folded_write,
    .read = folded_read,
};
