/*
 * A perf.data file around its records, as perf_data.c draws it: the header, a number for each
 * event, the events' attributes; and behind the records the features.
 */
#include <string.h>

#include "formats/perf_data_write.h"

#define HEADER_SIZE 104
#define ATTR_SIZE PERF_ATTR_SIZE_VER5
#define NAME_ALIGN 64 /* perf's strings are padded to this */
#define MISC_ID_SIZE 0x8000
#define TEXT_MAX ((size_t)4095)

enum feature {
    FEATURE_BUILD_ID = 2,
    FEATURE_HOSTNAME = 3,
    FEATURE_OSRELEASE = 4,
    FEATURE_ARCH = 6,
    FEATURE_CMDLINE = 11,
    FEATURE_EVENT_DESC = 12,
};

static const enum feature features[] = {FEATURE_BUILD_ID, FEATURE_HOSTNAME, FEATURE_OSRELEASE,
                                        FEATURE_ARCH,     FEATURE_CMDLINE,  FEATURE_EVENT_DESC};
#define FEATURE_COUNT (sizeof features / sizeof *features)

static void add_u32(struct text *out, uint32_t value)
{
    text_add_len(out, &value, sizeof value);
}

static void add_u64(struct text *out, uint64_t value)
{
    text_add_len(out, &value, sizeof value);
}

/* What perf counts as this event; those that it does not know are "dummy" under our name. */
static struct perf_event_attr attr_of(const struct profile_event *e, const char *name)
{
    static const struct {
        const char *name;
        uint32_t type;
        uint64_t config;
    } known[] = {{"cpu", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
                 {"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
                 {"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
                 {"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
                 {"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
                 {"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
                 {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
                 {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
                 {"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
                 {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
                 {"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
                 {"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES}};
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .config = PERF_COUNT_SW_DUMMY,
                                   .size = ATTR_SIZE,
                                   .sample_period = e->period,
                                   .sample_type = PERF_WRITE_SAMPLE_TYPE,
                                   .mmap = 1,
                                   .comm = 1,
                                   .task = 1,
                                   .mmap2 = 1,
                                   .sample_id_all = 1};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i].name)) {
            attr.type = known[i].type;
            attr.config = known[i].config;
        }
    return attr;
}

static void add_attr(const struct perf_events *e, uint32_t event, struct text *out)
{
    const struct profile_event *of = &e->p->events.data[event];
    struct perf_event_attr attr = attr_of(of, profile_text(e->p, of->name));
    text_add_len(out, &attr, ATTR_SIZE);
}

static uint64_t records_at(const struct perf_events *e)
{
    return HEADER_SIZE + (uint64_t)e->count * (8 + ATTR_SIZE + 16);
}

void perf_write_front(const struct perf_events *e, uint64_t size, struct sink *out)
{
    struct text front = TEXT_INIT;
    uint64_t set[4] = {0}, attrs_at = HEADER_SIZE + 8ull * e->count;
    for (size_t i = 0; i < FEATURE_COUNT; i++)
        set[features[i] / 64] |= 1ull << features[i] % 64;
    text_add_len(&front, "PERFILE2", 8);
    const uint64_t head[] = {HEADER_SIZE,   ATTR_SIZE + 16, attrs_at, records_at(e) - attrs_at,
                             records_at(e), size,           0,        0};
    text_add_len(&front, head, sizeof head);
    text_add_len(&front, set, sizeof set);
    for (uint64_t i = 1; i <= e->count; i++)
        add_u64(&front, i);
    for (uint32_t i = 0; i < e->p->events.len; i++)
        if (e->number[i]) {
            add_attr(e, i, &front);
            add_u64(&front, HEADER_SIZE + 8ull * (e->number[i] - 1));
            add_u64(&front, 8);
        }
    sink_add(out, front.data, front.len);
    text_release(&front);
}

/* Length, then the text with its NUL and padding. */
static void add_string(struct text *out, const char *s)
{
    size_t len = strnlen(s, TEXT_MAX), padded = (len / NAME_ALIGN + 1) * NAME_ALIGN;
    add_u32(out, (uint32_t)padded);
    text_add_len(out, s, len);
    text_add_repeat(out, 0, padded - len);
}

/* Records of their own kind, one a module. */
static void add_build_ids(const struct profile *p, struct text *out)
{
    for (size_t i = 0; i < p->modules.len; i++) {
        const struct profile_module *m = &p->modules.data[i];
        const char *path = profile_text(p, m->path);
        if (m->kind != CODE_ELF || !m->build_id_len || m->build_id_len > 20)
            continue;
        size_t len = strnlen(path, TEXT_MAX), padded = (len / NAME_ALIGN + 1) * NAME_ALIGN;
        struct perf_event_header head = {
            .misc = PERF_RECORD_MISC_USER | MISC_ID_SIZE,
            .size = (uint16_t)(sizeof head + sizeof(uint32_t) + 24 + padded)};
        uint8_t id[24] = {0};
        memcpy(id, m->build_id, m->build_id_len);
        id[20] = m->build_id_len;
        text_add_len(out, &head, sizeof head);
        add_u32(out, UINT32_MAX); /* of any process */
        text_add_len(out, id, sizeof id);
        text_add_len(out, path, len);
        text_add_repeat(out, 0, padded - len);
    }
}

static void add_events(const struct perf_events *e, struct text *out)
{
    add_u32(out, e->count);
    add_u32(out, ATTR_SIZE);
    for (uint32_t i = 0; i < e->p->events.len; i++) {
        const char *name = profile_text(e->p, e->p->events.data[i].name);
        if (!e->number[i])
            continue;
        add_attr(e, i, out);
        add_u32(out, 1);
        add_string(out, strcmp(name, "cpu") ? name : "cpu-clock");
        add_u64(out, e->number[i]);
    }
}

static void add_feature(const struct perf_events *e, enum feature feature, struct text *out)
{
    const char *key = feature == FEATURE_HOSTNAME    ? "host"
                      : feature == FEATURE_OSRELEASE ? "kernel"
                      : feature == FEATURE_ARCH      ? "machine"
                                                     : "command";
    const char *value = profile_meta_get(e->p, key);
    if (feature == FEATURE_BUILD_ID) {
        add_build_ids(e->p, out);
    } else if (feature == FEATURE_EVENT_DESC) {
        add_events(e, out);
    } else {
        if (feature == FEATURE_CMDLINE)
            add_u32(out, 1);
        add_string(out, value ? value : "");
    }
}

void perf_write_features(const struct perf_events *e, uint64_t size, struct sink *out)
{
    struct text table = TEXT_INIT, content = TEXT_INIT;
    uint64_t at = records_at(e) + size + FEATURE_COUNT * 16;
    for (size_t i = 0; i < FEATURE_COUNT; i++) {
        size_t before = content.len;
        add_feature(e, features[i], &content);
        add_u64(&table, at + before);
        add_u64(&table, content.len - before);
    }
    sink_add(out, table.data, table.len);
    sink_add(out, content.data, content.len);
    text_release(&table);
    text_release(&content);
}
