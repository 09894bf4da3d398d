/*
 * V8's .cpuprofile (Node's --cpu-prof, Chrome's developer tools): a tree of nodes, the node that
 * was hit at each sample, and the microseconds between samples. What V8 calls (idle) is no CPU
 * time. Until 2016 V8 wrote the tree as objects in objects under "head", lines counted from 1, its
 * first and last time in seconds, and when each sample was taken.
 */
#include <string.h>

#include "formats/import.h"
#include "formats/json_read.h"

#define NODES_MAX ((size_t)1 << 22)
#define SAMPLES_MAX ((size_t)1 << 28)

struct node {
    double id, hits;
    uint32_t frame;
    uint32_t parent; /* node, or PROFILE_NONE */
    uint32_t stack;  /* or PROFILE_NONE while not known */
    bool idle;
};

struct link {
    uint32_t parent;
    double child;
};

struct numbers {
    VECTOR(double) list;
};

struct cpuprofile {
    struct import im;
    struct json_reader json;
    VECTOR(struct node) nodes;
    VECTOR(struct link) links;
    struct map ids; /* id -> node */
    struct numbers samples, deltas, times;
    bool old; /* the form with a head */
    double start, end;
    uint32_t cpu, idle, thread;
};

/* What a node calls itself. */
struct label {
    struct text name, url;
    double line; /* -1: not told */
};

/* The value of a key that says what a function is; false if it is none. */
static bool read_label(struct cpuprofile *c, struct label *l, int *rc, struct error *err)
{
    struct json_reader *j = &c->json;
    if (!strcmp(j->text.data, "functionName"))
        *rc = json_read_text(j, &l->name, err);
    else if (!strcmp(j->text.data, "url"))
        *rc = json_read_text(j, &l->url, err);
    else if (!strcmp(j->text.data, "lineNumber"))
        *rc = json_read_number(j, &l->line, err);
    else
        return false;
    return true;
}

static int read_call_frame(struct cpuprofile *c, struct label *l, struct error *err)
{
    struct json_reader *j = &c->json;
    int rc = json_read(j, err);
    if (rc || j->token != JSON_OBJECT)
        return rc ? rc : json_reader_bad(j, err, "a call frame is no object");
    while (!rc && !(rc = json_read(j, err)) && j->token == JSON_KEY)
        if (!read_label(c, l, &rc, err))
            rc = json_read_skip(j, err);
    return rc;
}

static int read_numbers(struct cpuprofile *c, struct numbers *into, struct error *err)
{
    struct json_reader *j = &c->json;
    int rc = json_read(j, err);
    if (rc || j->token != JSON_ARRAY)
        return rc ? rc : json_reader_bad(j, err, "a list of numbers should be here");
    while (!rc && !(rc = json_read(j, err)) && j->token != JSON_END) {
        if (j->token != JSON_NUMBER)
            return json_reader_bad(j, err, "a list of numbers holds something else");
        if (into->list.len >= SAMPLES_MAX)
            return import_too_many(&c->im, "samples", SAMPLES_MAX, err);
        *vector_push(&into->list) = j->number;
    }
    return rc;
}

static int read_node(struct cpuprofile *c, uint32_t parent, struct error *err);

/* Numbers of nodes, or, in the old form, the nodes themselves. */
static int read_children(struct cpuprofile *c, uint32_t parent, struct error *err)
{
    struct json_reader *j = &c->json;
    int rc = json_read(j, err);
    if (rc || j->token != JSON_ARRAY)
        return rc ? rc : json_reader_bad(j, err, "the children of a node are no list");
    while (!rc && !(rc = json_read(j, err)) && j->token != JSON_END) {
        if (c->old && j->token == JSON_OBJECT) {
            rc = read_node(c, parent, err);
            continue;
        }
        if (j->token != JSON_NUMBER)
            return json_reader_bad(j, err, "a child is no number");
        if (c->links.len >= NODES_MAX)
            return import_too_many(&c->im, "nodes", NODES_MAX, err);
        *vector_push(&c->links) = (struct link){parent, j->number};
    }
    return rc;
}

static int name_node(struct cpuprofile *c, uint32_t node, const struct label *l, struct error *err)
{
    uint32_t module = import_module(&c->im, l->url.data);
    if (module == PROFILE_NONE)
        return import_too_many(&c->im, "scripts", IMPORT_MODULES_MAX, err);
    /* Counted from 0 today, from 1 in the old form; -1 or 0 is none. */
    uint32_t line = l->line >= 0 ? (uint32_t)json_to_int32(l->line) + !c->old : 0;
    c->nodes.data[node].idle = !strcmp(l->name.data, "(idle)");
    c->nodes.data[node].frame = import_frame(
        &c->im, module, l->name.len ? l->name.data : "(anonymous)", l->url.data, line, line);
    return 0;
}

static int read_node(struct cpuprofile *c, uint32_t parent, struct error *err)
{
    struct json_reader *j = &c->json;
    struct label label = {.name = TEXT_INIT, .url = TEXT_INIT, .line = -1};
    uint32_t self = (uint32_t)c->nodes.len;
    double id = 0, hits = 0;
    int rc = 0;
    if (c->nodes.len >= NODES_MAX)
        return import_too_many(&c->im, "nodes", NODES_MAX, err);
    *vector_push(&c->nodes) = (struct node){.parent = parent, .stack = PROFILE_NONE};
    while (!rc && !(rc = json_read(j, err)) && j->token == JSON_KEY) {
        if (!strcmp(j->text.data, "id"))
            rc = json_read_number(j, &id, err);
        else if (!strcmp(j->text.data, "callFrame"))
            rc = read_call_frame(c, &label, err);
        else if (!strcmp(j->text.data, "hitCount"))
            rc = json_read_number(j, &hits, err);
        else if (!strcmp(j->text.data, "children"))
            rc = read_children(c, self, err);
        else if (!c->old || !read_label(c, &label, &rc, err))
            rc = json_read_skip(j, err);
    }
    if (!rc)
        rc = name_node(c, self, &label, err);
    c->nodes.data[self].id = id;
    c->nodes.data[self].hits = hits;
    if (!rc)
        map_put(&c->ids, json_to_unsigned(id), 0, self, NULL);
    text_release(&label.name);
    text_release(&label.url);
    return rc;
}

static int read_head(struct cpuprofile *c, struct error *err)
{
    int rc = json_read(&c->json, err);
    c->old = true;
    if (rc || c->json.token != JSON_OBJECT)
        return rc ? rc : json_reader_bad(&c->json, err, "the head is no node");
    return read_node(c, PROFILE_NONE, err);
}

/* The old form's times as the new one's: microseconds from sample to sample. */
static void renew_times(struct cpuprofile *c)
{
    size_t n = c->samples.list.len;
    c->start *= 1e6;
    c->end *= 1e6;
    double each = n ? (c->end - c->start) / (double)n : 0, last = c->start;
    for (size_t i = 0; i < n; i++) {
        bool told = i < c->times.list.len;
        /* Its clock began elsewhere than that of the start. */
        if (told && !i) {
            c->end += c->times.list.data[0] - c->start;
            last = c->start = c->times.list.data[0];
        }
        *vector_push(&c->deltas.list) = told ? c->times.list.data[i] - last : i ? each : 0;
        last = told ? c->times.list.data[i] : last;
    }
}

static int read_all(struct cpuprofile *c, struct error *err)
{
    struct json_reader *j = &c->json;
    int rc = json_read(j, err);
    if (rc || j->token != JSON_OBJECT)
        return rc ? rc : json_reader_bad(j, err, "this is not a .cpuprofile");
    while (!rc && !(rc = json_read(j, err)) && j->token == JSON_KEY) {
        if (!strcmp(j->text.data, "nodes")) {
            rc = json_read(j, err);
            if (!rc && j->token != JSON_ARRAY)
                return json_reader_bad(j, err, "the nodes are no list");
            while (!rc && !(rc = json_read(j, err)) && j->token != JSON_END)
                rc = j->token == JSON_OBJECT ? read_node(c, PROFILE_NONE, err)
                                             : json_reader_bad(j, err, "a node is no object");
        } else if (!strcmp(j->text.data, "head")) {
            rc = read_head(c, err);
        } else if (!strcmp(j->text.data, "timestamps")) {
            rc = read_numbers(c, &c->times, err);
        } else if (!strcmp(j->text.data, "startTime")) {
            rc = json_read_number(j, &c->start, err);
        } else if (!strcmp(j->text.data, "endTime")) {
            rc = json_read_number(j, &c->end, err);
        } else if (!strcmp(j->text.data, "samples")) {
            rc = read_numbers(c, &c->samples, err);
        } else if (!strcmp(j->text.data, "timeDeltas")) {
            rc = read_numbers(c, &c->deltas, err);
        } else {
            rc = json_read_skip(j, err);
        }
    }
    return rc;
}

static int tie_nodes(struct cpuprofile *c, struct error *err)
{
    for (size_t i = 0; i < c->links.len; i++) {
        const struct link *l = &c->links.data[i];
        const uint64_t *child = map_get(&c->ids, json_to_unsigned(l->child), 0);
        if (!child)
            return json_reader_bad(&c->json, err, "a node has a child that is not in the file");
        if (l->parent < c->nodes.len && l->parent != *child)
            c->nodes.data[*child].parent = l->parent;
    }
    return 0;
}

/* The stack of a node: up to an ancestor whose stack is known, then down again. The root of V8's
 * tree is no function. */
static int stack_of(struct cpuprofile *c, uint32_t node, uint32_t *stack, struct error *err)
{
    VECTOR(uint32_t) path = {0};
    int rc = 0;
    for (uint32_t at = node; !rc && at != PROFILE_NONE && c->nodes.data[at].stack == PROFILE_NONE;
         at = c->nodes.data[at].parent) {
        *vector_push(&path) = at;
        if (path.len > IMPORT_DEPTH_MAX)
            rc = json_reader_bad(&c->json, err, "nodes are nested too deeply, or in a circle");
    }
    for (size_t i = path.len; i-- > 0 && !rc;) {
        struct node *n = &c->nodes.data[path.data[i]];
        uint32_t below = n->parent == PROFILE_NONE ? 0 : c->nodes.data[n->parent].stack;
        if (n->parent != PROFILE_NONE)
            rc = import_push(&c->im, &below, n->frame, err);
        n->stack = below;
    }
    vector_release(&path);
    *stack = c->nodes.data[node].stack;
    return rc;
}

static int count_samples(struct cpuprofile *c, struct error *err)
{
    double at = c->start;
    int rc = 0;
    c->im.first = json_to_unsigned(at * 1000);
    for (size_t i = 0; i < c->samples.list.len && !rc; i++) {
        const uint64_t *node = map_get(&c->ids, json_to_unsigned(c->samples.list.data[i]), 0);
        uint32_t stack;
        if (!node)
            return json_reader_bad(&c->json, err, "a sample hit a node that is not in the file");
        at += i < c->deltas.list.len ? c->deltas.list.data[i] : 0;
        double next = i + 1 < c->deltas.list.len ? c->deltas.list.data[i + 1] : c->end - at;
        rc = stack_of(c, (uint32_t)*node, &stack, err);
        /* A sample of ours stands for the time before it. */
        if (!rc)
            rc = import_sample(&c->im, c->nodes.data[*node].idle ? c->idle : c->cpu,
                               json_to_unsigned((at + (next > 0 ? next : 0)) * 1000), c->thread,
                               stack, json_to_unsigned(next * 1000), err);
    }
    return rc;
}

/* Without samples there are still hits. */
static int count_hits(struct cpuprofile *c, struct error *err)
{
    double hits = 0;
    int rc = 0;
    for (size_t i = 0; i < c->nodes.len; i++)
        hits += c->nodes.data[i].hits;
    double each = hits > 0 ? (c->end - c->start) * 1000 / hits : 0;
    for (uint32_t i = 0; i < c->nodes.len && !rc; i++) {
        uint64_t count = json_to_unsigned(c->nodes.data[i].hits);
        uint32_t stack;
        if (!count)
            continue;
        rc = stack_of(c, i, &stack, err);
        if (!rc)
            rc = import_count(&c->im, c->nodes.data[i].idle ? c->idle : c->cpu, c->thread, stack,
                              count, json_to_unsigned((double)count * each), err);
    }
    return rc;
}

static int cpuprofile_read(struct source *in, const struct import_options *options,
                           struct profile *p, struct error *err)
{
    struct cpuprofile c = {0};
    import_init(&c.im, p, in, options);
    json_reader_init(&c.json, in);
    c.cpu = import_event(&c.im, "cpu", UNIT_NANOSECONDS, 0);
    c.idle = import_event(&c.im, "off-cpu:other", UNIT_NANOSECONDS, 0);
    c.thread = import_thread(&c.im, import_process(&c.im, 1, "v8"), 1, "main");
    int rc = read_all(&c, err);
    if (!rc && !c.nodes.len)
        rc = json_reader_bad(&c.json, err, "there are no nodes in this file");
    if (!rc && c.old)
        renew_times(&c);
    if (!rc)
        rc = tie_nodes(&c, err);
    if (!rc)
        rc = c.samples.list.len ? count_samples(&c, err) : count_hits(&c, err);
    if (!rc)
        import_finish(&c.im, "cpuprofile");
    json_reader_release(&c.json);
    vector_release(&c.nodes);
    vector_release(&c.links);
    vector_release(&c.samples.list);
    vector_release(&c.deltas.list);
    map_release(&c.ids);
    vector_release(&c.times.list);
    import_release(&c.im);
    return rc;
}

static int cpuprofile_detect(const uint8_t *bytes, size_t len)
{
    if (!len || bytes[0] != '{')
        return 0;
    bool now = import_holds(bytes, len, "\"callFrame\"") && import_holds(bytes, len, "\"nodes\"");
    bool old = import_holds(bytes, len, "\"head\"") && import_holds(bytes, len, "\"functionName\"");
    return now || old ? 90 : 0;
}

static const char *const extensions[] = {".cpuprofile", NULL};

const struct format format_cpuprofile = {
    .name = "cpuprofile",
    .description = "V8's CPU profiles, of Node and Chrome",
    .extensions = extensions,
    .detect = cpuprofile_detect,
    .read = cpuprofile_read,
};
