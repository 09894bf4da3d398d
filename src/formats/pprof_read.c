/*
 * pprof's protocol buffer, of any language, plain or gzipped. Two passes over the
 * bytes: the tables first (they may stand anywhere), then the samples. A location becomes
 * a frame at the module's own address where pprof knows a mapping, a frame by name otherwise.
 */
#include <limits.h>
#include <stdlib.h>

#include "formats/import.h"
#include "formats/maps.h"
#include "formats/pprof_internal.h"
#include "formats/proto.h"

#define STRINGS_MAX ((size_t)1 << 24)
#define LOCATIONS_MAX ((size_t)1 << 24)
#define COLUMNS_MAX ((size_t)64)
#define BY_NAME UINT32_MAX /* a location whose places become frames of their own */

struct slice {
    const uint8_t *bytes;
    size_t len;
};

struct mapping {
    uint64_t bias; /* to take off an address */
    uint32_t module;
};

struct function {
    uint64_t name, system_name, file, start_line;
    uint32_t index; /* in the profile, by the module it was first met in */
    uint32_t module;
};

struct location {
    struct slice bytes; /* read when first needed */
    uint32_t frame;
    bool known;
};

struct column {
    uint64_t name, unit;
    uint64_t scale;
    uint32_t event;
    bool counts; /* those of the next column */
};

/* A location of a stack, and the stack with it. */
struct step {
    uint64_t location;
    uint32_t stack;
};

struct pprof_reader {
    struct import im;
    const uint8_t *start;
    VECTOR(struct slice) strings;
    VECTOR(struct mapping) mappings;
    VECTOR(struct function) functions;
    VECTOR(struct location) locations;
    VECTOR(struct column) columns;
    VECTOR(uint64_t) comments;
    VECTOR(uint64_t) path;   /* of the sample in hand */
    VECTOR(uint64_t) values; /* of it */
    struct map mapping_ids, function_ids, location_ids;
    VECTOR(uint32_t) by_id; /* id -> location + 1, if ids are small; 0: none */
    uint64_t largest_id;
    VECTOR(struct step) before; /* the sample before, outermost first */
    struct map named_threads;   /* (process, name) -> thread without a number */
    uint64_t time, duration, period, drop_frames, default_type;
    struct slice period_type;
    uint64_t labels_ignored;
    bool strings_missing;
};

static int bad(struct pprof_reader *r, const void *at, struct error *err, const char *reason)
{
    return source_bad(r->im.source, (uint64_t)((const uint8_t *)at - r->start), err, "%s", reason);
}

/* String number `i` as a C string, in the profile's keeping; "", and remembered, if there is none.
 */
static const char *text(struct pprof_reader *r, uint64_t i)
{
    if (i >= r->strings.len) {
        r->strings_missing = true;
        return "";
    }
    const struct slice *s = &r->strings.data[i];
    return profile_text(r->im.profile, import_string(&r->im, (const char *)s->bytes, s->len));
}

/* Collects varint fields of a message into values[number]; later ones win. */
static bool get_numbers(struct slice bytes, uint64_t *values, size_t count)
{
    struct cursor c = cursor_make(bytes.bytes ? bytes.bytes : (const uint8_t *)"", bytes.len);
    struct proto_field f;
    while (proto_next(&c, &f))
        if (f.number < count && f.wire == PROTO_VARINT)
            values[f.number] = f.value;
    return !c.bad;
}

/* Bytes from hexadecimal digits; 0 if there is anything else. */
static size_t parse_hex(const char *s, uint8_t *out, size_t max)
{
    size_t digits = strspn(s, "0123456789abcdefABCDEF"), n = digits / 2;
    if (s[digits] || digits % 2)
        return 0;
    for (size_t i = 0; i < n && i < max; i++) {
        char pair[3] = {s[2 * i], s[2 * i + 1], 0};
        out[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return n < max ? n : max;
}

/* Strings may come after the mappings, so modules are made once all tables are read. */
static int add_mapping(struct pprof_reader *r, struct slice bytes, struct error *err)
{
    uint64_t v[MAPPING_HAS_INLINED + 1] = {0};
    if (!get_numbers(bytes, v, MAPPING_HAS_INLINED + 1))
        return bad(r, bytes.bytes, err, "a mapping makes no sense");
    const char *path = text(r, v[MAPPING_FILE]), *id = text(r, v[MAPPING_BUILD_ID]);
    uint8_t build_id[20];
    size_t len = parse_hex(id, build_id, sizeof build_id);
    if (r->im.profile->modules.len >= IMPORT_MODULES_MAX)
        return import_too_many(&r->im, "mappings", IMPORT_MODULES_MAX, err);
    bool added;
    map_put(&r->mapping_ids, v[MAPPING_ID], 0, r->mappings.len, &added);
    if (!v[MAPPING_ID] || !added)
        return bad(r, bytes.bytes, err, "a mapping's id is 0 or used twice");
    enum code_kind kind = import_kind(path);
    uint32_t module = profile_module_add(r->im.profile, kind, path, build_id, len);
    uint64_t bias = v[MAPPING_START] - v[MAPPING_OFFSET];
    /* Whoever looks up the names that the file lacks needs the addresses of the program's file. */
    if (kind == CODE_ELF && !v[MAPPING_HAS_FUNCTIONS])
        bias = maps_bias(path, build_id, len, v[MAPPING_START], v[MAPPING_OFFSET]);
    *vector_push(&r->mappings) = (struct mapping){.bias = bias, .module = module};
    return 0;
}

static int add_function(struct pprof_reader *r, struct slice bytes, struct error *err)
{
    uint64_t v[FUNCTION_START_LINE + 1] = {0};
    if (!get_numbers(bytes, v, FUNCTION_START_LINE + 1))
        return bad(r, bytes.bytes, err, "a function makes no sense");
    if (r->functions.len >= LOCATIONS_MAX)
        return import_too_many(&r->im, "functions", LOCATIONS_MAX, err);
    bool added;
    map_put(&r->function_ids, v[FUNCTION_ID], 0, r->functions.len, &added);
    if (!v[FUNCTION_ID] || !added)
        return bad(r, bytes.bytes, err, "a function's id is 0 or used twice");
    *vector_push(&r->functions) = (struct function){.name = v[FUNCTION_NAME],
                                                    .system_name = v[FUNCTION_SYSTEM_NAME],
                                                    .file = v[FUNCTION_FILE],
                                                    .start_line = v[FUNCTION_START_LINE],
                                                    .index = PROFILE_NONE};
    return 0;
}

static int add_location(struct pprof_reader *r, struct slice bytes, struct error *err)
{
    uint64_t v[LOCATION_ADDRESS + 1] = {0};
    if (!get_numbers(bytes, v, LOCATION_ADDRESS + 1))
        return bad(r, bytes.bytes, err, "a location makes no sense");
    if (r->locations.len >= LOCATIONS_MAX)
        return import_too_many(&r->im, "locations", LOCATIONS_MAX, err);
    bool added;
    map_put(&r->location_ids, v[LOCATION_ID], 0, r->locations.len, &added);
    if (!v[LOCATION_ID] || !added)
        return bad(r, bytes.bytes, err, "a location's id is 0 or used twice");
    r->largest_id = v[LOCATION_ID] > r->largest_id ? v[LOCATION_ID] : r->largest_id;
    *vector_push(&r->locations) = (struct location){.bytes = bytes};
    return 0;
}

static int add_column(struct pprof_reader *r, struct slice bytes, struct error *err)
{
    uint64_t v[TYPE_UNIT + 1] = {0};
    if (!get_numbers(bytes, v, TYPE_UNIT + 1))
        return bad(r, bytes.bytes, err, "a sample type makes no sense");
    if (r->columns.len >= COLUMNS_MAX)
        return import_too_many(&r->im, "sample types", COLUMNS_MAX, err);
    *vector_push(&r->columns) = (struct column){.name = v[TYPE_NAME], .unit = v[TYPE_UNIT]};
    return 0;
}

/* Fields that need no other table. */
static int first_pass_field(struct pprof_reader *r, const struct proto_field *f, struct error *err)
{
    struct slice bytes = {f->bytes, f->len};
    bool message = f->wire == PROTO_BYTES;
    switch (f->number) {
    case PROFILE_STRING:
        if (r->strings.len >= STRINGS_MAX)
            return import_too_many(&r->im, "strings", STRINGS_MAX, err);
        if (message)
            *vector_push(&r->strings) = bytes;
        return 0;
    case PROFILE_SAMPLE_TYPE:
        return message ? add_column(r, bytes, err) : 0;
    case PROFILE_FUNCTION:
        return message ? add_function(r, bytes, err) : 0;
    case PROFILE_LOCATION:
        return message ? add_location(r, bytes, err) : 0;
    case PROFILE_PERIOD_TYPE:
        r->period_type = bytes;
        return 0;
    case PROFILE_PERIOD:
        r->period = f->value;
        return 0;
    case PROFILE_TIME:
        r->time = f->value;
        return 0;
    case PROFILE_DURATION:
        r->duration = f->value;
        return 0;
    case PROFILE_DROP_FRAMES:
        r->drop_frames = f->value;
        return 0;
    case PROFILE_DEFAULT_TYPE:
        r->default_type = f->value;
        return 0;
    case PROFILE_COMMENT:
        if (f->wire == PROTO_VARINT && r->comments.len < IMPORT_NOTES_MAX)
            *vector_push(&r->comments) = f->value;
        return 0;
    default:
        return 0;
    }
}

/* The function as the profile has it. One met in several modules is made once for each. */
static uint32_t function_in(struct pprof_reader *r, uint64_t id, uint32_t module)
{
    uint64_t *at = map_get(&r->function_ids, id, 0);
    if (!at)
        return PROFILE_NONE;
    struct function *f = &r->functions.data[*at];
    if (f->index != PROFILE_NONE && f->module == module)
        return f->index;
    const char *name = text(r, f->name), *system = text(r, f->system_name);
    f->module = module;
    f->index = profile_function_add(r->im.profile, name[0] ? name : system,
                                    name[0] && strcmp(name, system) ? system : "", text(r, f->file),
                                    f->start_line > INT_MAX ? 0 : (uint32_t)f->start_line, module);
    return f->index;
}

/* Frames without a mapping belong to the Python file they name, if they do. */
static uint32_t module_of_function(struct pprof_reader *r, uint64_t id)
{
    uint64_t *at = map_get(&r->function_ids, id, 0);
    const char *file = at ? text(r, r->functions.data[*at].file) : "";
    return import_module(&r->im, import_kind(file) == CODE_PYTHON ? file : "");
}

struct places {
    uint64_t function[IMPORT_INLINED_MAX];
    uint32_t line[IMPORT_INLINED_MAX];
    uint32_t count;
    uint64_t mapping, address;
};

static int read_places(struct pprof_reader *r, struct slice bytes, struct places *at,
                       struct error *err)
{
    struct cursor c = cursor_make(bytes.bytes, bytes.len);
    struct proto_field f;
    at->count = 0;
    at->mapping = at->address = 0;
    while (proto_next(&c, &f)) {
        if (f.number == LOCATION_MAPPING)
            at->mapping = f.value;
        else if (f.number == LOCATION_ADDRESS)
            at->address = f.value;
        if (f.number != LOCATION_LINE || f.wire != PROTO_BYTES)
            continue;
        uint64_t v[LINE_NUMBER + 1] = {0};
        if (at->count == IMPORT_INLINED_MAX)
            return bad(r, bytes.bytes, err, "more than 256 functions are inlined at one location");
        if (!get_numbers((struct slice){f.bytes, f.len}, v, LINE_NUMBER + 1) ||
            !map_get(&r->function_ids, v[LINE_FUNCTION], 0))
            return bad(r, f.bytes, err, "a line names a function that is not there");
        at->function[at->count] = v[LINE_FUNCTION];
        at->line[at->count++] = v[LINE_NUMBER] > INT_MAX ? 0 : (uint32_t)v[LINE_NUMBER];
    }
    return 0;
}

static bool same_places(const struct profile *p, uint32_t frame, const struct profile_location *at,
                        uint32_t count)
{
    const struct profile_frame *f = &p->frames.data[frame];
    if (f->location_count != count)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct profile_location *known = &p->locations.data[f->first_location + i];
        if (known->function != at[i].function || known->line != at[i].line)
            return false;
    }
    return true;
}

/* The frame at an address, with its places; BY_NAME when others are known to stand there. */
static uint32_t addressed_frame(struct pprof_reader *r, const struct places *at,
                                const struct mapping *m)
{
    struct profile *p = r->im.profile;
    struct profile_location where[IMPORT_INLINED_MAX];
    for (uint32_t i = 0; i < at->count; i++)
        where[i] =
            (struct profile_location){function_in(r, at->function[i], m->module), at->line[i]};
    size_t known = p->frames.len;
    uint32_t frame = profile_frame_add(p, m->module, at->address - m->bias);
    if (frame < known)
        return same_places(p, frame, where, at->count) ? frame : BY_NAME;
    if (at->count) {
        profile_frame_locate(p, frame, where, at->count);
        p->symbolized = true;
    }
    return frame;
}

static int read_location(struct pprof_reader *r, struct location *l, struct places *at,
                         struct error *err)
{
    int rc = read_places(r, l->bytes, at, err);
    if (rc)
        return rc;
    uint64_t *id = at->mapping ? map_get(&r->mapping_ids, at->mapping, 0) : NULL;
    if (at->mapping && !id)
        return bad(r, l->bytes.bytes, err, "a location names a mapping that is not there");
    if (l->known)
        return 0;
    l->known = true;
    struct mapping nowhere = {.module = PROFILE_NONE};
    const struct mapping *m = id ? &r->mappings.data[*id] : &nowhere;
    if (id && at->address) {
        l->frame = addressed_frame(r, at, m);
        return 0;
    }
    l->frame = BY_NAME;
    if (!at->count)
        l->frame = profile_frame_add(r->im.profile, id ? m->module : import_module(&r->im, ""),
                                     at->address);
    return 0;
}

/* Is this the frame that stands for having none? */
static bool is_nowhere(struct pprof_reader *r, const struct places *at)
{
    const uint64_t *id = at->count == 1 && !at->mapping && r->path.len == 1
                             ? map_get(&r->function_ids, at->function[0], 0)
                             : NULL;
    const struct function *f = id ? &r->functions.data[*id] : NULL;
    return f && !text(r, f->file)[0] && !strcmp(text(r, f->name), PPROF_NOWHERE);
}

/* Places without an address of their own: outermost first, each a frame. */
static int push_by_name(struct pprof_reader *r, const struct places *at, uint32_t *stack,
                        struct error *err)
{
    uint64_t *id = at->mapping ? map_get(&r->mapping_ids, at->mapping, 0) : NULL;
    for (uint32_t i = at->count; i-- > 0;) {
        uint32_t module =
            id ? r->mappings.data[*id].module : module_of_function(r, at->function[i]);
        if (module == PROFILE_NONE)
            return import_too_many(&r->im, "modules", IMPORT_MODULES_MAX, err);
        uint32_t function = function_in(r, at->function[i], module);
        uint32_t frame = profile_frame_named(r->im.profile, module, function, at->line[i]);
        int rc = import_push(&r->im, stack, frame, err);
        if (rc)
            return rc;
    }
    return 0;
}

static struct location *location_of(struct pprof_reader *r, uint64_t id)
{
    if (r->by_id.len)
        return id < r->by_id.len && r->by_id.data[id] ? &r->locations.data[r->by_id.data[id] - 1]
                                                      : NULL;
    const uint64_t *index = map_get(&r->location_ids, id, 0);
    return index ? &r->locations.data[*index] : NULL;
}

/* Most tools number locations from 1 on: then a list finds them faster than a map. */
static void list_locations(struct pprof_reader *r)
{
    uint64_t most = 4 * (uint64_t)r->locations.len + 1024;
    if (r->largest_id >= most)
        return;
    r->by_id.len = (size_t)r->largest_id + 1;
    r->by_id.data = memory_array(r->by_id.len, sizeof *r->by_id.data);
    r->by_id.cap = r->by_id.len;
    for (size_t id = 0; id < r->by_id.len; id++) {
        const uint64_t *index = map_get(&r->location_ids, id, 0);
        r->by_id.data[id] = index ? (uint32_t)*index + 1 : 0;
    }
}

/* How many of the outermost locations are those of the sample before: their stacks are known. A
 * location that is a whole stack by itself may stand for none. */
static size_t known_part(const struct pprof_reader *r)
{
    size_t n = r->path.len, most = n < r->before.len ? n : r->before.len, same = 0;
    if (most < 2)
        return 0;
    while (same < most && r->before.data[same].location == r->path.data[n - 1 - same])
        same++;
    return same;
}

static int build_stack(struct pprof_reader *r, const void *sample, uint32_t *stack,
                       struct error *err)
{
    struct places at;
    size_t n = r->path.len, same = known_part(r);
    *stack = same ? r->before.data[same - 1].stack : 0;
    vector_reserve(&r->before, n);
    r->before.len = 0;
    for (size_t i = same; i < n; i++) {
        uint64_t id = r->path.data[n - 1 - i];
        struct location *l = location_of(r, id);
        if (!l)
            return bad(r, sample, err, "a sample names a location that is not there");
        int rc = l->known && l->frame != BY_NAME ? 0 : read_location(r, l, &at, err);
        if (!rc && l->frame == BY_NAME)
            rc = is_nowhere(r, &at) ? 0 : push_by_name(r, &at, stack, err);
        else if (!rc)
            rc = import_push(&r->im, stack, l->frame, err);
        if (rc)
            return rc;
        r->before.data[i] = (struct step){id, *stack};
    }
    r->before.len = n;
    return 0;
}

struct sample_labels {
    uint64_t pid, tid;
    const char *process, *thread;
};

static bool one_of(const char *key, const char *a, const char *b, const char *c)
{
    return !strcmp(key, a) || !strcmp(key, b) || !strcmp(key, c);
}

static void read_label(struct pprof_reader *r, struct slice bytes, struct sample_labels *labels)
{
    uint64_t v[LABEL_UNIT + 1] = {0};
    if (!get_numbers(bytes, v, LABEL_UNIT + 1))
        return;
    const char *key = text(r, v[LABEL_KEY]), *value = text(r, v[LABEL_TEXT]);
    uint64_t number = v[LABEL_NUMBER] ? v[LABEL_NUMBER] : strtoull(value, NULL, 10);
    if (one_of(key, "pid", "process_id", "process id"))
        labels->pid = number;
    else if (one_of(key, "tid", "thread_id", "thread id"))
        labels->tid = number;
    else if (one_of(key, "process", "process_name", "comm"))
        labels->process = value;
    else if (one_of(key, "thread", "thread_name", "thread name"))
        labels->thread = value;
    else if (strcmp(key, "bytes")) /* a block's size, in Go's heap profiles */
        r->labels_ignored++;
}

static void read_packed(const struct proto_field *f, struct cursor *out)
{
    static const uint8_t none[1];
    *out = f->wire == PROTO_BYTES ? cursor_make(f->bytes, f->len) : cursor_make(none, 0);
}

/* Adds a repeated number, packed or single; of more than a stack may have, one too many. */
#define ADD_NUMBERS(list, field)                                                                   \
    do {                                                                                           \
        struct cursor packed;                                                                      \
        size_t most = (field)->len < IMPORT_DEPTH_MAX ? (field)->len : IMPORT_DEPTH_MAX + 1;       \
        read_packed((field), &packed);                                                             \
        vector_reserve(list, (list)->len + most + 1);                                              \
        if ((field)->wire == PROTO_VARINT)                                                         \
            (list)->data[(list)->len++] = (field)->value;                                          \
        for (; most && cursor_left(&packed); most--)                                               \
            (list)->data[(list)->len++] = cursor_varint(&packed);                                  \
    } while (0)

static int read_sample_fields(struct pprof_reader *r, struct slice bytes,
                              struct sample_labels *labels, struct error *err)
{
    struct cursor c = cursor_make(bytes.bytes, bytes.len);
    struct proto_field f;
    r->path.len = r->values.len = 0;
    while (proto_next(&c, &f)) {
        if (f.number == SAMPLE_LOCATION)
            ADD_NUMBERS(&r->path, &f);
        else if (f.number == SAMPLE_VALUE)
            ADD_NUMBERS(&r->values, &f);
        else if (f.number == SAMPLE_LABEL && f.wire == PROTO_BYTES)
            read_label(r, (struct slice){f.bytes, f.len}, labels);
    }
    if (c.bad)
        return bad(r, bytes.bytes, err, "a sample makes no sense");
    if (r->path.len > IMPORT_DEPTH_MAX)
        return import_too_many(&r->im, "frames in one stack", IMPORT_DEPTH_MAX, err);
    if (r->values.len != r->columns.len)
        return bad(r, bytes.bytes, err, "a sample has not one value for each sample type");
    return 0;
}

static int count_values(struct pprof_reader *r, const void *sample, uint32_t thread, uint32_t stack,
                        struct error *err)
{
    for (size_t i = 0; i < r->columns.len; i++) {
        const struct column *c = &r->columns.data[i];
        bool paired = i > 0 && r->columns.data[i - 1].counts;
        uint64_t value, count = paired ? r->values.data[i - 1] : 0;
        if (c->counts)
            continue;
        if ((int64_t)r->values.data[i] < 0 || (int64_t)count < 0)
            return bad(r, sample, err,
                       "a value is negative: this is a difference of two profiles, not a profile");
        if (__builtin_mul_overflow(r->values.data[i], c->scale, &value))
            return bad(r, sample, err, "a value is too large");
        if (!value && !count)
            continue;
        if (!paired)
            count = r->im.profile->events.data[c->event].unit == UNIT_COUNT ? value : 1;
        int rc = import_count(&r->im, c->event, thread, stack, count, value, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* Some tools tell threads apart by their names alone. */
static uint32_t thread_of(struct pprof_reader *r, uint32_t process, const struct sample_labels *l)
{
    if (l->tid || !l->thread[0] || process == PROFILE_NONE)
        return import_thread(&r->im, process, (int32_t)l->tid, l->thread);
    uint32_t name = import_string(&r->im, l->thread, strlen(l->thread));
    uint64_t *known = map_get(&r->named_threads, process, name);
    if (known)
        return (uint32_t)*known;
    if (r->im.profile->threads.len >= IMPORT_THREADS_MAX)
        return PROFILE_NONE;
    uint32_t thread = profile_thread_add(r->im.profile, process, 0, l->thread, 0);
    map_put(&r->named_threads, process, name, thread, NULL);
    return thread;
}

static int read_sample(struct pprof_reader *r, struct slice bytes, const char *program,
                       struct error *err)
{
    struct sample_labels labels = {.process = program, .thread = ""};
    int rc = read_sample_fields(r, bytes, &labels, err);
    if (rc)
        return rc;
    uint32_t process = import_process(&r->im, (int32_t)labels.pid, labels.process);
    uint32_t thread = thread_of(r, process, &labels);
    if (thread == PROFILE_NONE)
        return import_too_many(&r->im, "threads", IMPORT_THREADS_MAX, err);
    uint32_t stack;
    rc = build_stack(r, bytes.bytes, &stack, err);
    return rc ? rc : count_values(r, bytes.bytes, thread, stack, err);
}

static bool is_count(const char *name)
{
    return !strcmp(name, "samples") || !strcmp(name, "contentions") || !strcmp(name, "objects") ||
           text_ends(name, "_samples") || text_ends(name, "_objects");
}

static enum value_unit unit_of(const char *name, uint64_t *scale)
{
    static const struct {
        const char *name;
        enum value_unit unit;
        uint64_t scale;
    } units[] = {
        {"nanoseconds", UNIT_NANOSECONDS, 1},
        {"ns", UNIT_NANOSECONDS, 1},
        {"microseconds", UNIT_NANOSECONDS, 1000},
        {"us", UNIT_NANOSECONDS, 1000},
        {"milliseconds", UNIT_NANOSECONDS, 1000000},
        {"ms", UNIT_NANOSECONDS, 1000000},
        {"seconds", UNIT_NANOSECONDS, 1000000000},
        {"s", UNIT_NANOSECONDS, 1000000000},
        {"bytes", UNIT_BYTES, 1},
        {"kilobytes", UNIT_BYTES, 1024},
        {"megabytes", UNIT_BYTES, 1048576},
    };
    *scale = 1;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (!strcmp(units[i].name, name)) {
            *scale = units[i].scale;
            return units[i].unit;
        }
    }
    return UNIT_COUNT;
}

/* What pprof shows unless told otherwise: the file's own choice, else the last. */
static size_t default_column(struct pprof_reader *r)
{
    const char *name = r->default_type ? text(r, r->default_type) : "";
    for (size_t i = 0; *name && i < r->columns.len; i++)
        if (!strcmp(name, text(r, r->columns.data[i].name)))
            return i;
    return r->columns.len - 1;
}

static int name_column(struct pprof_reader *r, size_t i, const char *period_type, struct error *err)
{
    struct column *c = &r->columns.data[i];
    const char *name = text(r, c->name);
    enum value_unit unit = unit_of(text(r, c->unit), &c->scale);
    bool paired = i > 0 && r->columns.data[i - 1].counts;
    uint64_t period = unit == UNIT_COUNT && !paired;
    if (!strcmp(name, period_type))
        period = r->period * c->scale;
    size_t known = r->im.profile->events.len;
    c->event = import_event(&r->im, name[0] ? name : "samples", unit, period);
    return c->event < known ? bad(r, r->start, err, "two sample types have the same name") : 0;
}

/* Views show the first event that has anything: the one that pprof would show comes first. */
static int name_columns(struct pprof_reader *r, struct error *err)
{
    uint64_t v[TYPE_UNIT + 1] = {0}, scale;
    size_t len = r->columns.len, first = default_column(r);
    get_numbers(r->period_type, v, TYPE_UNIT + 1);
    for (size_t i = 0; i + 1 < len; i++) {
        struct column *c = &r->columns.data[i];
        c->counts = unit_of(text(r, c->unit), &scale) == UNIT_COUNT && is_count(text(r, c->name)) &&
                    !is_count(text(r, c[1].name));
    }
    int rc = 0;
    for (size_t i = 0; i < len && !rc; i++)
        if (!r->columns.data[(first + i) % len].counts)
            rc = name_column(r, (first + i) % len, text(r, v[TYPE_NAME]), err);
    return rc;
}

static int first_pass(struct pprof_reader *r, size_t len, struct error *err)
{
    struct cursor c = cursor_make(r->start, len);
    struct proto_field f;
    while (proto_next(&c, &f)) {
        int rc = first_pass_field(r, &f, err);
        if (rc)
            return rc;
    }
    if (c.bad)
        return bad(r, c.at, err, "a field is cut short or makes no sense");
    if (!r->columns.len || !r->strings.len || r->strings.data[0].len)
        return bad(r, r->start, err,
                   "this is no pprof profile: it has no sample type or no string table");
    return 0;
}

static int second_pass(struct pprof_reader *r, size_t len, struct error *err)
{
    struct cursor c = cursor_make(r->start, len);
    struct proto_field f;
    int rc = name_columns(r, err);
    list_locations(r);
    while (!rc && proto_next(&c, &f))
        if (f.number == PROFILE_MAPPING && f.wire == PROTO_BYTES)
            rc = add_mapping(r, (struct slice){f.bytes, f.len}, err);
    const char *program = source_name(r->im.source);
    if (r->mappings.len)
        program = profile_module_name(r->im.profile, r->mappings.data[0].module);
    c = cursor_make(r->start, len);
    while (!rc && proto_next(&c, &f))
        if (f.number == PROFILE_SAMPLE && f.wire == PROTO_BYTES)
            rc = read_sample(r, (struct slice){f.bytes, f.len}, program, err);
    return rc;
}

static void keep_facts(struct pprof_reader *r)
{
    struct profile *p = r->im.profile;
    p->wall_start = r->time;
    p->end = r->duration;
    import_finish(&r->im, "pprof");
    for (size_t i = 0; i < r->comments.len; i++)
        import_note(&r->im, NOTE_INFO, "%s", text(r, r->comments.data[i]));
    if (r->drop_frames)
        import_note(&r->im, NOTE_INFO, "the file asks to hide frames named %s; they are shown",
                    text(r, r->drop_frames));
    if (r->labels_ignored)
        import_note(&r->im, NOTE_INFO, "%llu labels other than process and thread were left out",
                    (unsigned long long)r->labels_ignored);
}

static int pprof_read(struct source *in, const struct import_options *options, struct profile *p,
                      struct error *err)
{
    struct pprof_reader r = {0};
    uint8_t *data;
    size_t len;
    int rc = source_rest(in, &data, &len, err);
    if (rc)
        return rc;
    r.start = data;
    import_init(&r.im, p, in, options);
    rc = first_pass(&r, len, err);
    if (!rc)
        rc = second_pass(&r, len, err);
    if (!rc)
        keep_facts(&r);
    if (!rc && r.strings_missing)
        rc = bad(&r, data + len, err, "a name is not among the file's strings: it was cut short");
    import_release(&r.im);
    vector_release(&r.strings);
    vector_release(&r.mappings);
    vector_release(&r.functions);
    vector_release(&r.locations);
    vector_release(&r.columns);
    vector_release(&r.comments);
    vector_release(&r.by_id);
    vector_release(&r.before);
    vector_release(&r.path);
    vector_release(&r.values);
    map_release(&r.mapping_ids);
    map_release(&r.function_ids);
    map_release(&r.location_ids);
    map_release(&r.named_threads);
    free(data);
    return rc;
}

/* No magic, so: the first fields must be fields of a profile, with wire types they can have. */
static int pprof_detect(const uint8_t *bytes, size_t len)
{
    struct cursor c = cursor_make(bytes, len);
    struct proto_field f;
    int fields = 0;
    while (fields < 64 && proto_next(&c, &f)) {
        bool number = (f.number >= PROFILE_DROP_FRAMES && f.number <= PROFILE_PERIOD &&
                       f.number != PROFILE_PERIOD_TYPE) ||
                      f.number == PROFILE_DEFAULT_TYPE;
        if (f.number > PROFILE_DEFAULT_TYPE + 1)
            return 0;
        if (f.number != PROFILE_COMMENT && f.wire != (number ? PROTO_VARINT : PROTO_BYTES) &&
            f.number != PROFILE_DEFAULT_TYPE + 1)
            return 0;
        fields++;
    }
    return fields >= 2 ? 60 : 0;
}

static const char *const extensions[] = {".pb.gz", ".pprof", ".pb", ".prof", NULL};

const struct format format_pprof = {
    .name = "pprof",
    .description = "pprof's protocol buffer, gzipped; for `go tool pprof` and most servers",
    .extensions = extensions,
    .binary = true,
    .detect = pprof_detect,
    .write = pprof_write,
    .read = pprof_read,
};
