/*
 * speedscope's JSON, both of its kinds: sampled profiles (stacks and weights) and evented ones
 * (frames open and close). A profile becomes a thread. Frames may stand behind the profiles that
 * use them, so stacks are kept by number until all is read.
 */
#include "formats/speedscope_read.h"

#include <string.h>

#include "formats/import.h"
#include "formats/json_read.h"

#define FRAMES_MAX ((size_t)1 << 24)
#define SAMPLES_MAX ((size_t)1 << 28)

struct node {
    uint32_t parent, frame; /* frame of the file */
};

struct weighed {
    uint32_t node, thread;
    double weight;
};

struct scope {
    struct import im;
    struct json_reader json;
    VECTOR(uint32_t) frames; /* of the profile */
    VECTOR(struct node) nodes;
    struct map node_index;
    VECTOR(struct weighed) all; /* of the whole file */
    size_t first;               /* of this profile */
    size_t weights;
    VECTOR(uint32_t) open; /* nodes, for events */
    double opened_at;
    uint32_t process, thread;
    struct text name, unit, word;
    double scale; /* from the file's unit to ours; 0: not told yet */
    enum value_unit ours;
};

static int put_node(struct scope *s, uint32_t *node, double frame, struct error *err)
{
    if (!(frame >= 0 && frame < (double)FRAMES_MAX))
        return json_reader_bad(&s->json, err, "a sample names a frame that cannot be");
    if (s->nodes.len >= IMPORT_STACKS_MAX)
        return import_too_many(&s->im, "distinct stacks", IMPORT_STACKS_MAX, err);
    bool added;
    uint64_t *known = map_put(&s->node_index, *node, (uint64_t)frame, s->nodes.len, &added);
    if (added)
        *vector_push(&s->nodes) = (struct node){*node, (uint32_t)frame};
    *node = (uint32_t)*known;
    return 0;
}

static int put_sample(struct scope *s, uint32_t node, double weight, struct error *err)
{
    if (s->all.len >= SAMPLES_MAX)
        return import_too_many(&s->im, "samples", SAMPLES_MAX, err);
    *vector_push(&s->all) = (struct weighed){node, s->thread, weight};
    return 0;
}

static int read_frame(struct scope *s, struct error *err)
{
    struct json_reader *j = &s->json;
    struct text file = TEXT_INIT;
    double line = 0;
    int rc = 0;
    text_clear(&s->name);
    while (!rc && !(rc = json_read(j, err)) && j->token == JSON_KEY) {
        if (!strcmp(j->text.data, "name"))
            rc = json_read_text(j, &s->name, err);
        else if (!strcmp(j->text.data, "file"))
            rc = json_read_text(j, &file, err);
        else if (!strcmp(j->text.data, "line"))
            rc = json_read_number(j, &line, err);
        else
            rc = json_read_skip(j, err);
    }
    if (!rc && s->frames.len >= FRAMES_MAX)
        rc = import_too_many(&s->im, "frames", FRAMES_MAX, err);
    uint32_t module = rc ? PROFILE_NONE : import_module(&s->im, "");
    if (!rc)
        *vector_push(&s->frames) = import_frame(&s->im, module, s->name.data, file.data, 0,
                                                (uint32_t)json_to_int32(line < 0 ? 0 : line));
    text_release(&file);
    return rc;
}

static int read_shared(struct scope *s, struct error *err)
{
    struct json_reader *j = &s->json;
    int rc = json_read(j, err);
    if (rc || j->token != JSON_OBJECT)
        return rc ? rc : json_reader_bad(j, err, "what is shared is no object");
    while (!rc && !(rc = json_read(j, err)) && j->token == JSON_KEY) {
        bool frames = !strcmp(j->text.data, "frames");
        rc = frames ? json_read(j, err) : json_read_skip(j, err);
        if (rc || !frames)
            continue;
        if (j->token != JSON_ARRAY)
            return json_reader_bad(j, err, "the frames are no list");
        while (!rc && !(rc = json_read(j, err)) && j->token != JSON_END)
            rc = j->token == JSON_OBJECT ? read_frame(s, err)
                                         : json_reader_bad(j, err, "a frame is no object");
    }
    return rc;
}

static int read_samples(struct scope *s, struct error *err)
{
    struct json_reader *j = &s->json;
    int rc = json_read(j, err);
    if (rc || j->token != JSON_ARRAY)
        return rc ? rc : json_reader_bad(j, err, "the samples are no list");
    while (!rc && !(rc = json_read(j, err)) && j->token != JSON_END) {
        uint32_t node = 0;
        if (j->token != JSON_ARRAY)
            return json_reader_bad(j, err, "a sample is no list of frames");
        while (!rc && !(rc = json_read(j, err)) && j->token != JSON_END)
            rc = j->token == JSON_NUMBER ? put_node(s, &node, j->number, err)
                                         : json_reader_bad(j, err, "a frame is no number");
        if (!rc)
            rc = put_sample(s, node, 1, err);
    }
    return rc;
}

/* Weights may stand before or behind their samples. */
static int read_weights(struct scope *s, struct error *err)
{
    struct json_reader *j = &s->json;
    int rc = json_read(j, err);
    if (rc || j->token != JSON_ARRAY)
        return rc ? rc : json_reader_bad(j, err, "the weights are no list");
    if (s->all.len == s->first)
        return json_reader_bad(j, err, "weights stand before the samples they belong to");
    while (!rc && !(rc = json_read(j, err)) && j->token != JSON_END) {
        if (j->token != JSON_NUMBER || s->first + s->weights >= s->all.len)
            return json_reader_bad(j, err, "there are other weights than samples");
        s->all.data[s->first + s->weights++].weight = j->number;
    }
    return rc;
}

static int use_event(struct scope *s, bool opens, double frame, double at, struct error *err)
{
    uint32_t node = s->open.len ? s->open.data[s->open.len - 1] : 0;
    int rc = 0;
    if (s->open.len && at > s->opened_at)
        rc = put_sample(s, node, at - s->opened_at, err);
    s->opened_at = at;
    if (rc)
        return rc;
    if (!opens) {
        if (!s->open.len || s->nodes.data[node].frame != frame)
            return json_reader_bad(&s->json, err, "a frame ends that is not the innermost");
        s->open.len--;
        return 0;
    }
    if (s->open.len >= IMPORT_DEPTH_MAX)
        return import_too_many(&s->im, "frames on a stack", IMPORT_DEPTH_MAX, err);
    rc = put_node(s, &node, frame, err);
    *vector_push(&s->open) = node;
    return rc;
}

static int read_events(struct scope *s, struct error *err)
{
    struct json_reader *j = &s->json;
    int rc = json_read(j, err);
    if (rc || j->token != JSON_ARRAY)
        return rc ? rc : json_reader_bad(j, err, "the events are no list");
    while (!rc && !(rc = json_read(j, err)) && j->token != JSON_END) {
        double frame = 0, at = 0;
        text_clear(&s->word);
        if (j->token != JSON_OBJECT)
            return json_reader_bad(j, err, "an event is no object");
        while (!rc && !(rc = json_read(j, err)) && j->token == JSON_KEY) {
            if (!strcmp(j->text.data, "type"))
                rc = json_read_text(j, &s->word, err);
            else if (!strcmp(j->text.data, "frame"))
                rc = json_read_number(j, &frame, err);
            else if (!strcmp(j->text.data, "at"))
                rc = json_read_number(j, &at, err);
            else
                rc = json_read_skip(j, err);
        }
        if (!rc)
            rc = use_event(s, s->word.data[0] == 'O', frame, at, err);
    }
    return rc;
}

static int settle_unit(struct scope *s, struct error *err)
{
    static const struct {
        const char *name;
        enum value_unit unit;
        double scale;
    } units[] = {{"nanoseconds", UNIT_NANOSECONDS, 1},
                 {"microseconds", UNIT_NANOSECONDS, 1e3},
                 {"milliseconds", UNIT_NANOSECONDS, 1e6},
                 {"seconds", UNIT_NANOSECONDS, 1e9},
                 {"bytes", UNIT_BYTES, 1},
                 {"none", UNIT_COUNT, 1}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(units[i].name, s->unit.len ? s->unit.data : "none"))
            continue;
        if (s->scale && s->ours != units[i].unit)
            return json_reader_bad(&s->json, err, "its profiles have different units");
        s->ours = units[i].unit;
        s->scale = 1;
        for (size_t k = s->first; k < s->all.len; k++)
            s->all.data[k].weight *= units[i].scale;
        return 0;
    }
    return json_reader_bad(&s->json, err, "a profile is in a unit that nobody knows");
}

static int read_profile(struct scope *s, int32_t number, struct error *err)
{
    struct json_reader *j = &s->json;
    int rc = 0;
    s->first = s->all.len;
    s->weights = s->open.len = 0;
    s->opened_at = 0;
    text_clear(&s->unit);
    s->thread = import_thread(&s->im, s->process, number, "");
    if (s->thread == PROFILE_NONE)
        return import_too_many(&s->im, "profiles", IMPORT_THREADS_MAX, err);
    while (!rc && !(rc = json_read(j, err)) && j->token == JSON_KEY) {
        const char *key = j->text.data;
        if (!strcmp(key, "name")) {
            rc = json_read_text(j, &s->name, err);
            s->im.profile->threads.data[s->thread].name =
                import_string(&s->im, s->name.data, s->name.len);
        } else if (!strcmp(key, "unit")) {
            rc = json_read_text(j, &s->unit, err);
        } else if (!strcmp(key, "samples")) {
            rc = read_samples(s, err);
        } else if (!strcmp(key, "weights")) {
            rc = read_weights(s, err);
        } else if (!strcmp(key, "events")) {
            rc = read_events(s, err);
        } else {
            rc = json_read_skip(j, err);
        }
    }
    if (!rc && s->weights && s->weights != s->all.len - s->first)
        rc = json_reader_bad(j, err, "there are other weights than samples");
    return rc ? rc : settle_unit(s, err);
}

static int read_profiles(struct scope *s, struct error *err)
{
    struct json_reader *j = &s->json;
    int rc = json_read(j, err);
    if (rc || j->token != JSON_ARRAY)
        return rc ? rc : json_reader_bad(j, err, "the profiles are no list");
    for (int32_t i = 1; !rc && !(rc = json_read(j, err)) && j->token != JSON_END; i++)
        rc = j->token == JSON_OBJECT ? read_profile(s, i, err)
                                     : json_reader_bad(j, err, "a profile is no object");
    return rc;
}

static int read_all(struct scope *s, struct error *err)
{
    struct json_reader *j = &s->json;
    int rc = json_read(j, err);
    if (rc || j->token != JSON_OBJECT)
        return rc ? rc : json_reader_bad(j, err, "this is not speedscope's JSON");
    while (!rc && !(rc = json_read(j, err)) && j->token == JSON_KEY) {
        if (!strcmp(j->text.data, "shared")) {
            rc = read_shared(s, err);
        } else if (!strcmp(j->text.data, "profiles")) {
            rc = read_profiles(s, err);
        } else if (!strcmp(j->text.data, "name")) {
            rc = json_read_text(j, &s->name, err);
            struct profile_process *q = &s->im.profile->processes.data[s->process];
            q->execs.data[0].comm = import_string(&s->im, s->name.data, s->name.len);
        } else {
            rc = json_read_skip(j, err);
        }
    }
    return rc;
}

/* Stacks by number become stacks of the profile. */
static int count_all(struct scope *s, struct error *err)
{
    static const char *const names[UNIT_KINDS] = {"samples", "cpu", "inuse_space"};
    uint32_t event = import_event(&s->im, names[s->ours], s->ours, 0);
    VECTOR(uint32_t) stacks = {0};
    int rc = 0;
    vector_reserve(&stacks, s->nodes.len);
    for (size_t i = 0; i < s->nodes.len && !rc; i++) {
        uint32_t stack = i ? stacks.data[s->nodes.data[i].parent] : 0;
        if (i && s->nodes.data[i].frame >= s->frames.len)
            rc = json_reader_bad(&s->json, err, "a sample names a frame that is not in the file");
        if (i && !rc)
            rc = import_push(&s->im, &stack, s->frames.data[s->nodes.data[i].frame], err);
        stacks.data[i] = stack;
    }
    for (size_t i = 0; i < s->all.len && !rc; i++) {
        const struct weighed *w = &s->all.data[i];
        uint64_t value = json_to_unsigned(w->weight);
        uint64_t count = s->ours == UNIT_COUNT ? value : 1;
        rc = import_count(&s->im, event, w->thread, stacks.data[w->node], count, value, err);
    }
    vector_release(&stacks);
    return rc;
}

int speedscope_read(struct source *in, const struct import_options *options, struct profile *p,
                    struct error *err)
{
    struct scope s = {.name = TEXT_INIT, .unit = TEXT_INIT, .word = TEXT_INIT};
    import_init(&s.im, p, in, options);
    json_reader_init(&s.json, in);
    s.process = import_process(&s.im, 1, "");
    *vector_push(&s.nodes) = (struct node){0};
    int rc = read_all(&s, err);
    if (!rc)
        rc = count_all(&s, err);
    if (!rc)
        import_finish(&s.im, "speedscope");
    json_reader_release(&s.json);
    vector_release(&s.frames);
    vector_release(&s.nodes);
    vector_release(&s.all);
    vector_release(&s.open);
    map_release(&s.node_index);
    text_release(&s.name);
    text_release(&s.unit);
    text_release(&s.word);
    import_release(&s.im);
    return rc;
}

int speedscope_detect(const uint8_t *bytes, size_t len)
{
    size_t look = len < 4096 ? len : 4096;
    if (!len || (bytes[0] != '{' && !memchr(" \t\r\n", bytes[0], 4)))
        return 0;
    if (memmem(bytes, look, "speedscope.app/file-format-schema", 33))
        return 100;
    return memmem(bytes, look, "\"shared\"", 8) && memmem(bytes, look, "\"frames\"", 8) ? 60 : 0;
}
