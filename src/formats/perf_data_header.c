/*
 * What a perf.data file says before and after its records: attributes of events, their
 * names, and features (who recorded what on which machine, build-ids).
 */
#include <string.h>

#include "formats/perf_data_internal.h"

#define ATTR_MIN 64 /* the first version's size */

enum feature {
    FEATURE_BUILD_ID = 2,
    FEATURE_HOSTNAME = 3,
    FEATURE_OSRELEASE = 4,
    FEATURE_ARCH = 6,
    FEATURE_NRCPUS = 7,
    FEATURE_CMDLINE = 11,
    FEATURE_EVENT_DESC = 12,
};

static uint64_t attr_word(const uint8_t *attr, size_t len, size_t at)
{
    return at + 8 <= len ? perf_u64(attr + at) : 0;
}

int perf_attr_add(struct perf_data *d, const uint8_t *attr, size_t len, const uint8_t *ids,
                  size_t id_count, struct error *err)
{
    if (len < ATTR_MIN)
        return source_bad(d->im.source, source_offset(d->im.source), err,
                          "an event's description has %zu bytes, too few", len);
    if (d->attrs.len >= PERF_ATTRS_MAX)
        return import_too_many(&d->im, "events", PERF_ATTRS_MAX, err);
    if (id_count > PERF_IDS_MAX || d->ids.len + id_count > PERF_IDS_MAX)
        return import_too_many(&d->im, "counters", PERF_IDS_MAX, err);
    struct perf_attr a = {.type = perf_u32(attr),
                          .config = perf_u64(attr + 8),
                          .period = perf_u64(attr + 16),
                          .sample_type = perf_u64(attr + 24),
                          .read_format = perf_u64(attr + 32),
                          .flags = perf_u64(attr + 40),
                          .branch_type = attr_word(attr, len, 72),
                          .regs_user = attr_word(attr, len, 80),
                          .regs_intr = attr_word(attr, len, 96),
                          .event = PROFILE_NONE};
    for (size_t i = 0; i < id_count; i++)
        map_put(&d->ids, perf_u64(ids + 8 * i), 0, d->attrs.len, NULL);
    d->maps_have_ids |= (a.flags & PERF_FLAG_BUILD_ID) != 0;
    d->stacks_copied |= (a.sample_type & PERF_SAMPLE_STACK_USER) != 0;
    *vector_push(&d->attrs) = a;
    return 0;
}

/* For files whose names were not written: what perf calls the usual ones. */
static const char *usual_name(const struct perf_attr *a)
{
    static const char *const hardware[] = {"cycles",
                                           "instructions",
                                           "cache-references",
                                           "cache-misses",
                                           "branches",
                                           "branch-misses",
                                           "bus-cycles",
                                           "stalled-cycles-frontend",
                                           "stalled-cycles-backend",
                                           "ref-cycles"};
    static const char *const software[] = {
        "cpu-clock",        "task-clock",   "page-faults",  "context-switches",
        "cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
        "emulation-faults", "dummy",        "bpf-output",   "cgroup-switches"};
    if (a->type == PERF_TYPE_HARDWARE && a->config < sizeof hardware / sizeof *hardware)
        return hardware[a->config];
    if (a->type == PERF_TYPE_SOFTWARE && a->config < sizeof software / sizeof *software)
        return software[a->config];
    return NULL;
}

static bool is_clock(const struct perf_attr *a)
{
    return a->type == PERF_TYPE_SOFTWARE && a->config <= PERF_COUNT_SW_TASK_CLOCK;
}

/* "cpu-clock:pppH" without its modifiers; the first clock is "cpu", as in our own recordings. */
static void event_name(struct perf_data *d, const struct perf_attr *a, struct text *out)
{
    const char *usual = usual_name(a), *given = profile_text(d->im.profile, a->name);
    size_t len = strlen(given);
    const char *colon = memrchr(given, ':', len);
    if (colon && strspn(colon + 1, "ukhpPGHSDIWe") == strlen(colon + 1) && strchr(given, '/') == 0)
        len = (size_t)(colon - given);
    bool cpu = is_clock(a) && (profile_event_find(d->im.profile, "cpu") == PROFILE_NONE ||
                               profile_event_find(d->im.profile, "cpu") == a->event);
    if (cpu)
        text_add(out, "cpu");
    else if (len)
        text_add_len(out, given, len);
    else if (usual)
        text_add(out, usual);
    else
        text_format(out, "type %u config 0x%llx", a->type, (unsigned long long)a->config);
}

uint32_t perf_attr_event(struct perf_data *d, struct perf_attr *a)
{
    if (a->event != PROFILE_NONE)
        return a->event;
    struct text name = TEXT_INIT;
    uint64_t period = a->period;
    if (a->flags & PERF_FLAG_FREQ)
        period = is_clock(a) && period ? 1000000000 / period : 0;
    event_name(d, a, &name);
    a->event = import_event(&d->im, name.data, is_clock(a) ? UNIT_NANOSECONDS : UNIT_COUNT, period);
    text_release(&name);
    return a->event;
}

void perf_attr_rename(struct perf_data *d, struct perf_attr *a, const char *name, size_t len)
{
    a->name = import_string(&d->im, name, len);
    if (a->event == PROFILE_NONE || !len)
        return;
    struct text better = TEXT_INIT;
    event_name(d, a, &better);
    if (profile_event_find(d->im.profile, better.data) == PROFILE_NONE)
        d->im.profile->events.data[a->event].name = import_string(&d->im, better.data, better.len);
    text_release(&better);
}

struct cursor {
    const uint8_t *at, *end;
};

static size_t left(const struct cursor *c)
{
    return (size_t)(c->end - c->at);
}

static bool next_u32(struct cursor *c, uint32_t *out)
{
    if (left(c) < 4)
        return false;
    *out = perf_u32(c->at);
    c->at += 4;
    return true;
}

/* u32 length, then as many bytes: a string with its NUL and padding. */
static const char *next_string(struct cursor *c, size_t *len)
{
    uint32_t size;
    if (!next_u32(c, &size) || size > left(c))
        return NULL;
    const char *s = (const char *)c->at;
    c->at += size;
    *len = strnlen(s, size);
    return s;
}

/* nr, size of an attribute; for each event attribute, nr of ids, name, ids. */
static void read_event_names(struct perf_data *d, struct cursor c)
{
    uint32_t count, size, ids;
    if (!next_u32(&c, &count) || !next_u32(&c, &size))
        return;
    for (uint32_t i = 0; i < count && i < d->attrs.len; i++) {
        size_t len;
        if (size > left(&c))
            return;
        c.at += size;
        if (!next_u32(&c, &ids))
            return;
        const char *name = next_string(&c, &len);
        if (!name || (uint64_t)ids * 8 > left(&c))
            return;
        perf_attr_rename(d, &d->attrs.data[i], name, len);
        c.at += (size_t)ids * 8;
    }
}

static void read_command(struct perf_data *d, struct cursor c)
{
    struct text line = TEXT_INIT;
    uint32_t count;
    const char *word;
    size_t len;
    for (next_u32(&c, &count); line.len < IMPORT_STRING_MAX && (word = next_string(&c, &len));) {
        text_add(&line, line.len ? " " : "");
        text_add_len(&line, word, len);
    }
    if (line.len)
        profile_meta_set(d->im.profile, "command", line.data);
    text_release(&line);
}

void perf_build_id(struct perf_data *d, struct perf_bytes event)
{
    const size_t path_at = sizeof(struct perf_event_header) + 4 + 24;
    if (event.len <= path_at)
        return;
    const uint8_t *id = event.data + sizeof(struct perf_event_header) + 4;
    uint16_t misc = perf_u16(event.data + 4);
    struct perf_build_id known = {.len = 20};
    /* Bit 15: the length is told; it has not always been. */
    if (misc & 0x8000)
        known.len = id[20] < 20 ? id[20] : 20;
    memcpy(known.bytes, id, 20);
    const char *path = (const char *)event.data + path_at;
    uint32_t name = import_string(&d->im, path, strnlen(path, event.len - path_at));
    bool added;
    map_put(&d->build_ids, name, 0, d->known_ids.len, &added);
    if (added)
        *vector_push(&d->known_ids) = known;
}

static void read_build_ids(struct perf_data *d, struct cursor c)
{
    while (left(&c) >= sizeof(struct perf_event_header)) {
        size_t size = perf_u16(c.at + 6);
        if (size < sizeof(struct perf_event_header) || size > left(&c))
            return;
        perf_build_id(d, (struct perf_bytes){.data = c.at, .len = size});
        c.at += size;
    }
}

static void read_text(struct perf_data *d, struct cursor c, const char *key, struct text *keep)
{
    size_t len;
    const char *s = next_string(&c, &len);
    if (!s || !len)
        return;
    struct text copy = TEXT_INIT;
    text_add_len(&copy, s, len);
    profile_meta_set(d->im.profile, key, copy.data);
    if (keep) {
        text_clear(keep);
        text_add(keep, copy.data);
    }
    text_release(&copy);
}

void perf_feature(struct perf_data *d, unsigned feature, struct perf_bytes content)
{
    struct cursor c = {content.data, content.data + content.len};
    char number[16];
    uint32_t cpus;
    switch (feature) {
    case FEATURE_BUILD_ID:
        read_build_ids(d, c);
        break;
    case FEATURE_HOSTNAME:
        read_text(d, c, "host", &d->host);
        break;
    case FEATURE_OSRELEASE:
        read_text(d, c, "kernel", &d->release);
        break;
    case FEATURE_ARCH:
        read_text(d, c, "machine", NULL);
        break;
    case FEATURE_NRCPUS:
        if (next_u32(&c, &cpus) && cpus) {
            snprintf(number, sizeof number, "%u", cpus);
            profile_meta_set(d->im.profile, "cpus", number);
        }
        break;
    case FEATURE_CMDLINE:
        read_command(d, c);
        break;
    case FEATURE_EVENT_DESC:
        read_event_names(d, c);
        break;
    default:
        break;
    }
}
