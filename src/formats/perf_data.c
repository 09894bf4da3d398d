/*
 * perf.data, as `perf record` writes it to a file or (-o -) to a pipe.
 *
 *     file: "PERFILE2" | size 104 | attr_size | attrs | data | event_types | features[4]
 *           (each a place: offset, size), ids, attributes, records, then, a place for every bit
 *           of features, what each feature says
 *     pipe: "PERFILE2" | size 16, then records alone: attributes and features are records too
 *
 * Read once from front to back; only the features, which stand last, are looked at before
 * where the source can go there. What is kept is the records of two rounds.
 */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/memory.h"
#include "formats/perf_data_internal.h"
#include "formats/perf_data_queue.h"
#include "formats/perf_data_write.h"

#define MAGIC "PERFILE2"
#define MAGIC_SWAPPED "2ELIFREP"
#define MAGIC_OLD "PERFFILE"
#define HEADER_SIZE 104
#define PIPE_HEADER_SIZE 16
#define FRONT_MAX ((uint64_t)64 << 20) /* bytes before the records */
#define FEATURE_MAX ((uint64_t)64 << 20)
#define FEATURES 256
#define RECORD_HEADER 8
#define CHUNK ((size_t)256 * 1024) /* unpacked at a time */
#define RATIO_MAX 4096             /* unpacked to packed bytes, beyond the first ... */
#define RATIO_FREE ((uint64_t)64 << 20)

enum user_record {
    RECORD_HEADER_ATTR = 64,
    RECORD_TRACING_DATA = 66,
    RECORD_BUILD_ID = 67,
    RECORD_FINISHED_ROUND = 68,
    RECORD_AUXTRACE = 71,
    RECORD_EVENT_UPDATE = 78,
    RECORD_HEADER_FEATURE = 80,
    RECORD_COMPRESSED = 81,
    RECORD_COMPRESSED2 = 83,
};

struct place {
    uint64_t offset, size;
};

struct walker {
    struct perf_data d;
    struct perf_queue queue;
    struct source *in;
    uint64_t end; /* of the records; UINT64_MAX: of the file */
    bool unfinished;
    bool round_open; /* samples came since the last round was finished */
    bool injected;   /* perf inject was here, which leaves out the rounds */
    ZSTD_DStream *zstd;
    uint8_t *plain; /* unpacked bytes that are no whole record yet, and room for more */
    size_t plain_len;
    uint64_t packed, unpacked;
};

static int bad(const struct walker *w, struct error *err, const char *why)
{
    return source_bad(w->in, source_offset(w->in), err, "%s", why);
}

static int bad_size(const struct walker *w, uint64_t at, size_t size, struct error *err)
{
    return source_bad(w->in, at, err, "a record has the impossible size of %zu bytes", size);
}

static int add_attr_record(struct walker *w, struct perf_bytes r, struct error *err)
{
    size_t size = r.len >= RECORD_HEADER + 8 ? perf_u32(r.data + RECORD_HEADER + 4) : 0;
    if (!size)
        size = 64;
    if (size > r.len - RECORD_HEADER)
        return bad(w, err, "an event's description ends too early");
    const uint8_t *ids = r.data + RECORD_HEADER + size;
    return perf_attr_add(&w->d, r.data + RECORD_HEADER, size, ids,
                         (r.len - RECORD_HEADER - size) / 8, err);
}

/* type, id of a counter, and what changed: only names matter. */
static void update_event(struct walker *w, struct perf_bytes r)
{
    if (r.len <= RECORD_HEADER + 16 || perf_u64(r.data + RECORD_HEADER) != 2)
        return;
    const uint64_t *known = map_get(&w->d.ids, perf_u64(r.data + RECORD_HEADER + 8), 0);
    const char *name = (const char *)r.data + RECORD_HEADER + 16;
    if (known)
        perf_attr_rename(&w->d, &w->d.attrs.data[*known], name,
                         strnlen(name, r.len - RECORD_HEADER - 16));
}

static int use_record(struct walker *w, struct perf_bytes r, bool packed, struct error *err);

/* Uses the whole records of what was unpacked and keeps the rest. */
static int use_plain(struct walker *w, struct error *err)
{
    size_t at = 0;
    int rc = 0;
    while (!rc && w->plain_len - at >= RECORD_HEADER) {
        size_t size = perf_u16(w->plain + at + 6);
        if (size < RECORD_HEADER)
            return bad(w, err, "a compressed record has an impossible size");
        if (size > w->plain_len - at)
            break;
        rc = use_record(w, (struct perf_bytes){.data = w->plain + at, .len = size}, true, err);
        at += size;
    }
    memmove(w->plain, w->plain + at, w->plain_len - at);
    w->plain_len -= at;
    return rc;
}

static int unpack(struct walker *w, const uint8_t *data, size_t len, struct error *err)
{
    ZSTD_inBuffer in = {data, len, 0};
    if (!w->zstd) {
        w->zstd = ZSTD_createDStream();
        if (!w->zstd || ZSTD_isError(ZSTD_initDStream(w->zstd)))
            return error_set(err, FAULT_SYSTEM, "zstd could not be started");
        ZSTD_DCtx_setParameter(w->zstd, ZSTD_d_windowLogMax, 27);
        w->plain = memory_alloc(CHUNK + 65536);
    }
    w->packed += len;
    bool full = true;
    while (in.pos < in.size || full) {
        ZSTD_outBuffer out = {w->plain + w->plain_len, CHUNK, 0};
        size_t rc = ZSTD_decompressStream(w->zstd, &out, &in);
        if (ZSTD_isError(rc))
            return source_bad(w->in, source_offset(w->in), err,
                              "compressed records are damaged (%s)", ZSTD_getErrorName(rc));
        full = out.pos == out.size;
        w->plain_len += out.pos;
        w->unpacked += out.pos;
        if (w->unpacked > RATIO_FREE && w->unpacked / RATIO_MAX > w->packed)
            return error_set(
                err, FAULT_LIMIT, "%s, byte %llu: records unpack to more than %d times their size",
                source_name(w->in), (unsigned long long)source_offset(w->in), RATIO_MAX);
        int used = use_plain(w, err);
        if (used)
            return used;
    }
    return 0;
}

static int use_compressed(struct walker *w, struct perf_bytes r, bool second, struct error *err)
{
    size_t at = RECORD_HEADER, len = r.len - RECORD_HEADER;
    if (second) {
        if (len < 8 || perf_u64(r.data + at) > len - 8)
            return bad(w, err, "a compressed record is shorter than it says");
        len = (size_t)perf_u64(r.data + at);
        at += 8;
    }
    return unpack(w, r.data + at, len, err);
}

static int use_record(struct walker *w, struct perf_bytes r, bool packed, struct error *err)
{
    uint32_t type = perf_u32(r.data);
    w->round_open |= type == PERF_RECORD_SAMPLE;
    if (type < RECORD_HEADER_ATTR)
        return perf_queue_add(&w->queue, &w->d, r, err);
    switch (type) {
    case RECORD_HEADER_ATTR:
        return add_attr_record(w, r, err);
    case RECORD_EVENT_UPDATE:
        update_event(w, r);
        return 0;
    case RECORD_BUILD_ID:
        w->injected = true;
        perf_build_id(&w->d, r);
        return 0;
    case RECORD_HEADER_FEATURE:
        if (r.len >= RECORD_HEADER + 8)
            perf_feature(&w->d, (unsigned)perf_u64(r.data + RECORD_HEADER),
                         (struct perf_bytes){.data = r.data + RECORD_HEADER + 8,
                                             .len = r.len - RECORD_HEADER - 8});
        return 0;
    case RECORD_FINISHED_ROUND:
        w->round_open = false;
        return perf_queue_round(&w->queue, &w->d, err);
    case RECORD_COMPRESSED:
    case RECORD_COMPRESSED2:
        return packed ? bad(w, err, "compressed records hold compressed records")
                      : use_compressed(w, r, type == RECORD_COMPRESSED2, err);
    default:
        return 0;
    }
}

/* Bytes that follow a record without being part of it. */
static uint64_t trailing(struct perf_bytes r, bool pipe)
{
    uint32_t type = perf_u32(r.data);
    if (type == RECORD_AUXTRACE && r.len >= RECORD_HEADER + 8)
        return perf_u64(r.data + RECORD_HEADER);
    if (type == RECORD_TRACING_DATA && pipe && r.len >= RECORD_HEADER + 4)
        return perf_u32(r.data + RECORD_HEADER);
    return 0;
}

/* A long sample of which the front was read: with its last word, if what follows is read ahead. */
static struct perf_bytes long_record(struct walker *w, struct perf_front *front)
{
    const struct perf_front *behind =
        perf_front_peek(&w->d.fronts, front->offset + front->whole_len);
    if (behind) {
        memcpy(front->end, behind->bytes, sizeof front->end);
        front->ended = true;
    }
    return (struct perf_bytes){
        .data = front->bytes + PERF_FRONT_BEFORE, .len = PERF_FRONT, .stays = true, .front = front};
}

/* The record at `at` of a file that is there as memory; *size is that of all of it. */
static struct perf_bytes record_at(struct walker *w, uint64_t at, size_t *size)
{
    struct perf_front *front = perf_front_take(&w->d.fronts, at);
    *size = front                          ? front->whole_len
            : w->end - at >= RECORD_HEADER ? perf_u16(w->d.file + at + 6)
                                           : 0;
    if (front && *size <= w->end - at)
        return long_record(w, front);
    perf_front_free(&w->d.fronts, front);
    if (*size >= RECORD_HEADER && *size < w->end - at && perf_front_is_long(w->d.file + at))
        perf_fronts_start(&w->d.fronts, w->in, at + *size, w->end);
    return (struct perf_bytes){.data = w->d.file + at, .len = *size, .stays = true};
}

/* The records of a file that is there as memory. */
static int use_records_whole(struct walker *w, struct error *err)
{
    int rc = 0;
    for (uint64_t at = source_offset(w->in); at < w->end && !rc;) {
        size_t size;
        source_seek(w->in, at);
        struct perf_bytes r = record_at(w, at, &size);
        if (size < RECORD_HEADER || size > w->end - at)
            return bad_size(w, at, size, err);
        uint64_t more = trailing(r, false);
        at += size;
        rc = use_record(w, r, false, err);
        if (!rc && more > w->end - at)
            return bad(w, err, "a record says that more follows than there is");
        at += more;
    }
    return rc;
}

/* The record in front, or 0 at the end of the records. */
static ssize_t next_record(struct walker *w, const uint8_t **data, struct error *err)
{
    uint64_t offset = source_offset(w->in), left = w->end - offset;
    if (offset >= w->end)
        return 0;
    ssize_t n = source_peek(w->in, RECORD_HEADER, data, err);
    if (n <= 0)
        return n < 0 || w->end == UINT64_MAX
                   ? n
                   : source_bad(w->in, offset, err, "the file ends here, %llu bytes too early",
                                (unsigned long long)left);
    size_t size = n == RECORD_HEADER ? perf_u16(*data + 6) : RECORD_HEADER;
    if (size < RECORD_HEADER || size > left)
        return bad_size(w, offset, size, err);
    n = source_peek(w->in, size, data, err);
    if (n >= 0 && (size_t)n < size && w->unfinished)
        return 0; /* nobody finished this file, so that its last record is cut is no surprise */
    if (n >= 0 && (size_t)n < size)
        return source_bad(w->in, offset, err, "the file ends within a record");
    return n;
}

static int use_records_in_turn(struct walker *w, bool pipe, struct error *err)
{
    const uint8_t *data;
    ssize_t n;
    int rc = 0;
    while (!rc && (n = next_record(w, &data, err)) != 0) {
        if (n < 0)
            return (int)n;
        struct perf_bytes r = {data, (size_t)n, false};
        uint64_t more = trailing(r, pipe);
        rc = use_record(w, r, false, err);
        if (!rc && more > w->end - source_offset(w->in))
            return bad(w, err, "a record says that more follows than there is");
        if (!rc)
            rc = source_skip(w->in, (uint64_t)n + more, err);
    }
    return rc;
}

static int use_records(struct walker *w, bool pipe, struct error *err)
{
    uint64_t size;
    w->d.in = w->in;
    w->d.file = pipe || w->unfinished ? NULL : source_whole(w->in, &size);
    int rc =
        w->d.file && w->end <= size ? use_records_whole(w, err) : use_records_in_turn(w, pipe, err);
    if (!rc && w->plain_len)
        rc = bad(w, err, "compressed records end within a record");
    if (!rc)
        rc = perf_queue_finish(&w->queue, &w->d, err);
    return source_was_cut(w->in) ? bad(w, err, "the file was cut short while it was read") : rc;
}

static struct place place_at(const uint8_t *at)
{
    return (struct place){perf_u64(at), perf_u64(at + 8)};
}

/* Attributes, each with the place of its ids; all of it stands before the records. */
static int use_attrs(struct walker *w, const uint8_t *front, uint64_t len, uint64_t attr_size,
                     struct place attrs, struct error *err)
{
    if (attr_size < 64 + 16 || attr_size > 4096 || attrs.offset > len ||
        attrs.size > len - attrs.offset || attrs.size % attr_size || !attrs.size)
        return source_bad(w->in, 24, err, "the descriptions of events are not where they must be");
    for (uint64_t at = attrs.offset; at < attrs.offset + attrs.size; at += attr_size) {
        struct place ids = place_at(front + at + attr_size - 16);
        if (ids.offset > len || ids.size > len - ids.offset)
            return source_bad(w->in, at, err, "the counters of an event are not in the file");
        int rc = perf_attr_add(&w->d, front + at, (size_t)attr_size - 16, front + ids.offset,
                               (size_t)ids.size / 8, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* All samples are there, but what stands behind them is not. */
static void note_features_cut(struct walker *w)
{
    import_damage(&w->d.im,
                  "%s ends within what follows its samples: it was cut short, and names of events, "
                  "builds of programs or facts about the machine are missing",
                  source_name(w->in));
}

/* Reads the features where the source can go back and forth; false if it cannot. */
static bool features_ahead(struct walker *w, const uint64_t *set, uint64_t table)
{
    uint8_t row[16];
    bool whole = true, any = source_at(w->in, 0, row, sizeof row);
    for (unsigned i = 0; i < FEATURES && any; i++) {
        if (!(set[i / 64] >> (i % 64) & 1))
            continue;
        bool listed = source_at(w->in, table, row, sizeof row);
        struct place at = listed ? place_at(row) : (struct place){0};
        uint8_t *content = at.size <= FEATURE_MAX ? malloc((size_t)at.size + 1) : NULL;
        bool there = listed && content && source_at(w->in, at.offset, content, (size_t)at.size);
        if (there)
            perf_feature(&w->d, i, (struct perf_bytes){.data = content, .len = (size_t)at.size});
        free(content);
        whole &= there;
        table += sizeof row;
    }
    if (any && !whole)
        note_features_cut(w);
    return any;
}

/* The same after the records, in passing. What stands elsewhere than in order is left out. */
static int features_behind(struct walker *w, const uint64_t *set, struct error *err)
{
    struct place at[FEATURES];
    unsigned id[FEATURES], count = 0;
    int rc = 0;
    for (unsigned i = 0; i < FEATURES; i++) {
        uint8_t row[16];
        if (!(set[i / 64] >> (i % 64) & 1))
            continue;
        rc = source_read(w->in, row, sizeof row, err);
        if (rc <= 0)
            return rc < 0 ? rc : bad(w, err, "the file ends before the list of its features");
        id[count] = i;
        at[count++] = place_at(row);
    }
    for (unsigned i = 0; i < count; i++) {
        uint64_t here = source_offset(w->in);
        if (at[i].offset < here || at[i].size > FEATURE_MAX)
            continue;
        rc = source_skip(w->in, at[i].offset - here, err);
        uint8_t *content = memory_alloc((size_t)at[i].size + 1);
        if (!rc && at[i].size && source_read(w->in, content, (size_t)at[i].size, err) != 1)
            rc = err->fault ? (int)err->fault : bad(w, err, "the file ends within a feature");
        if (!rc)
            perf_feature(&w->d, id[i],
                         (struct perf_bytes){.data = content, .len = (size_t)at[i].size});
        free(content);
        if (rc)
            return rc;
    }
    return 0;
}

static int read_front(struct walker *w, uint64_t size, uint8_t **front, struct error *err)
{
    *front = memory_alloc((size_t)size + 1);
    int rc = source_read(w->in, *front, (size_t)size, err);
    return rc == 1 ? 0 : rc < 0 ? rc : bad(w, err, "the file is empty");
}

static int read_file(struct walker *w, struct error *err)
{
    const uint8_t *head;
    uint8_t *front = NULL;
    uint64_t set[FEATURES / 64];
    ssize_t n = source_peek(w->in, HEADER_SIZE, &head, err);
    if (n < HEADER_SIZE)
        return n < 0 ? (int)n : bad(w, err, "the file ends within its header");
    struct place attrs = place_at(head + 24), data = place_at(head + 40);
    uint64_t attr_size = perf_u64(head + 16);
    memcpy(set, head + 72, sizeof set);
    if (data.offset < HEADER_SIZE || data.offset > FRONT_MAX)
        return source_bad(w->in, 40, err, "the records are said to begin at byte %llu",
                          (unsigned long long)data.offset);
    if (__builtin_add_overflow(data.offset, data.size, &w->end))
        return source_bad(w->in, 48, err, "the records are said to have %llu bytes",
                          (unsigned long long)data.size);
    if (!data.size) {
        w->end = UINT64_MAX;
        w->unfinished = true;
        import_damage(&w->d.im,
                      "perf did not finish this file: it is read up to its end, without names of "
                      "events and machines");
    }
    int rc = read_front(w, data.offset, &front, err);
    if (!rc)
        rc = use_attrs(w, front, data.offset, attr_size, attrs, err);
    bool known = !rc && !w->unfinished && features_ahead(w, set, w->end);
    if (!rc)
        rc = use_records(w, false, err);
    if (!rc && !known && !w->unfinished && features_behind(w, set, err)) {
        rc = err->fault == FAULT_INPUT ? 0 : err->fault;
        if (!rc)
            note_features_cut(w);
        if (!rc)
            *err = (struct error){0};
    }
    free(front);
    return rc;
}

static int read_pipe(struct walker *w, struct error *err)
{
    w->end = UINT64_MAX;
    int rc = source_skip(w->in, PIPE_HEADER_SIZE, err);
    if (!rc)
        rc = use_records(w, true, err);
    if (!rc && !w->d.attrs.len)
        rc = bad(w, err, "no event is described in this file");
    /* A pipe has no other end: perf finishes a round behind whatever it read last. */
    if (!rc && w->round_open && !w->injected)
        import_damage(
            &w->d.im,
            "%s ends within a round of samples: it was cut short, and samples are missing",
            source_name(w->in));
    return rc;
}

static void add_losses(struct walker *w)
{
    struct profile *p = w->d.im.profile;
    for (size_t i = 0; i < w->d.attrs.len; i++) {
        const struct perf_attr *a = &w->d.attrs.data[i];
        if (a->lost)
            *vector_push(&p->losses) = (struct profile_loss){.event = a->event,
                                                             .thread = PROFILE_NONE,
                                                             .reason = LOSS_RING_FULL,
                                                             .count = a->lost};
    }
    if (w->d.odd) {
        *vector_push(&p->losses) = (struct profile_loss){.event = PROFILE_NONE,
                                                         .thread = PROFILE_NONE,
                                                         .reason = LOSS_UNREADABLE,
                                                         .count = w->d.odd};
        import_damage(&w->d.im, "%llu records made no sense and are left out",
                      (unsigned long long)w->d.odd);
    }
}

static void walker_init(struct walker *w, struct source *in, const struct import_options *options,
                        struct profile *p)
{
    struct perf_data *d = &w->d;
    w->in = in;
    import_init(&d->im, p, in, options);
    text_init(&d->release);
    text_init(&d->host);
    d->kernel = profile_module_add(p, CODE_KERNEL, "[kernel]", NULL, 0);
    d->unknown = profile_module_add(p, CODE_UNKNOWN, "", NULL, 0);
    uint32_t cut = profile_function_add(p, "[cut]", "", "", 0, d->unknown);
    d->cut_frame = profile_frame_named(p, d->unknown, cut, 0);
}

static void walker_free(struct walker *w)
{
    struct perf_data *d = &w->d;
    perf_work_free(d->work);
    perf_queue_release(&w->queue);
    perf_fronts_release(&d->fronts);
    perf_space_release(d);
    vector_release(&d->attrs);
    vector_release(&d->known_ids);
    map_release(&d->ids);
    map_release(&d->build_ids);
    text_release(&d->release);
    text_release(&d->host);
    import_release(&d->im);
    ZSTD_freeDStream(w->zstd);
    free(w->plain);
    free(w);
}

static int perf_data_read(struct source *in, const struct import_options *options,
                          struct profile *p, struct error *err)
{
    const uint8_t *head;
    ssize_t n = source_peek(in, PIPE_HEADER_SIZE, &head, err);
    if (n < 0)
        return (int)n;
    if (n < PIPE_HEADER_SIZE)
        return source_bad(in, 0, err, "the file ends within its header");
    if (!memcmp(head, MAGIC_SWAPPED, 8))
        return source_bad(in, 0, err, "it was recorded on a machine of the other byte order");
    if (memcmp(head, MAGIC, 8))
        return source_bad(in, 0, err, "this does not begin like a perf.data file");
    uint64_t size = perf_u64(head + 8);
    if (size != HEADER_SIZE && size != PIPE_HEADER_SIZE)
        return source_bad(in, 8, err, "a header of %llu bytes is of no version known",
                          (unsigned long long)size);
    struct walker *w = memory_alloc(sizeof *w);
    walker_init(w, in, options, p);
    int rc = size == PIPE_HEADER_SIZE ? read_pipe(w, err) : read_file(w, err);
    if (!rc) {
        add_losses(w);
        perf_space_finish(&w->d);
        import_finish(&w->d.im, "perf-data");
        p->complete = !w->unfinished;
    }
    walker_free(w);
    return rc;
}

static int perf_data_detect(const uint8_t *bytes, size_t len)
{
    return len >= 8 && (!memcmp(bytes, MAGIC, 8) || !memcmp(bytes, MAGIC_SWAPPED, 8) ||
                        !memcmp(bytes, MAGIC_OLD, 8))
               ? 100
               : 0;
}

static const char *const extensions[] = {".data", NULL};

const struct format format_perf_data = {
    .name = "perf-data",
    .alias = "perf",
    .description = "what perf record writes",
    .extensions = extensions,
    .binary = true,
    .timed = true,
    .by_address = true,
    .detect = perf_data_detect,
    .read = perf_data_read,
    .write = perf_data_write,
};
