/*
 * Profiles of gperftools. CPU: words of the machine (4 or 8 bytes), then text.
 *
 *     0 | 3 | 0 | period in µs | 0     header
 *     count | depth | addresses ...    a stack each, the innermost first
 *     0 | 1 | 0                        end
 *     lines of /proc/self/maps
 *
 * Heap: "heap profile: OBJECTS: BYTES [ OBJECTS: BYTES] @ heap_v2/PERIOD", then a line of that kind
 * for each stack with its addresses, "MAPPED_LIBRARIES:", and lines of /proc/self/maps. Of sampled
 * heaps (heap_v2) values are scaled up as pprof does. jemalloc's begin with that word alone, and
 * have two lines or more a stack: "@ ADDRESSES", then the sums of all threads ("t*: ...") and of
 * each, of which the first is taken.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formats/import.h"
#include "formats/maps.h"

#define DEPTH_MAX 4096
#define USER_END ((uint64_t)1 << 47)

extern const struct format format_gperftools_heap, format_jemalloc_heap;

struct words {
    const uint8_t *data;
    size_t len, at; /* in words */
    unsigned size;
};

static uint64_t word_at(const struct words *w, size_t i)
{
    uint64_t value = 0;
    memcpy(&value, w->data + i * w->size, w->size);
    return value;
}

/* The lines of maps, with which every file ends, and what they tell of where it was cut. */
struct mapped {
    struct ranges ranges;
    uint64_t end;    /* of the last one, whatever it maps */
    bool open;       /* the last line has no end */
    uint64_t beyond; /* addresses behind all of them */
};

static int read_maps(struct import *im, struct mapped *m, char *text, struct error *err)
{
    int rc = 0;
    for (char *line = text, *end; !rc && *line; line = end) {
        end = line + strcspn(line, "\n");
        m->open = !*end;
        if (*end)
            *end++ = 0;
        maps_end(line, &m->end);
        rc = maps_line(&m->ranges, im, line, err);
    }
    return rc;
}

static void check_maps(struct import *im, const struct mapped *m)
{
    if (!m->end)
        import_damage(im,
                      "%s ends without the mappings that belong there: it was cut short, and where "
                      "its addresses lay is not known",
                      source_name(im->source));
    else if (m->open || m->beyond)
        import_damage(im,
                      "%s ends within its mappings: it was cut short, and where %llu of its "
                      "addresses lay is not known",
                      source_name(im->source), (unsigned long long)m->beyond);
}

/* Where the stacks end, in words; 0 if they never do. */
static size_t find_end(const struct words *w)
{
    size_t at = 5;
    while (at + 3 <= w->len) {
        uint64_t count = word_at(w, at), depth = word_at(w, at + 1);
        if (!count && depth == 1 && !word_at(w, at + 2))
            return at;
        if (depth > DEPTH_MAX || !depth || depth > w->len - at - 2)
            return 0;
        at += 2 + (size_t)depth;
    }
    return 0;
}

/* Callers are where calls return to; one less is in the call. */
static int push_stack(struct import *im, struct mapped *m, const uint64_t *address, size_t n,
                      bool exact, uint32_t *stack, struct error *err)
{
    int rc = 0;
    *stack = 0;
    while (n-- > 0 && !rc) {
        uint64_t at = address[n] && (n || !exact) ? address[n] - 1 : address[n];
        m->beyond += at >= m->end && at < USER_END;
        rc = import_push(im, stack, maps_frame(&m->ranges, im, at), err);
    }
    return rc;
}

static int count_stacks(struct import *im, struct mapped *m, const struct words *w, size_t end,
                        uint32_t event, struct error *err)
{
    uint32_t process = import_only_process(im, 1), thread = import_thread(im, process, 1, "");
    uint64_t period = im->profile->events.data[event].period, address[DEPTH_MAX];
    int rc = 0;
    for (size_t at = 5; at < end && !rc;) {
        uint64_t count = word_at(w, at), value;
        size_t depth = (size_t)word_at(w, at + 1);
        uint32_t stack;
        for (size_t i = 0; i < depth; i++)
            address[i] = word_at(w, at + 2 + i);
        if (__builtin_mul_overflow(count, period, &value))
            return source_bad(im->source, at * w->size, err, "a stack has an impossible count");
        rc = push_stack(im, m, address, depth, true, &stack, err);
        if (!rc)
            rc = import_count(im, event, thread, stack, count, value, err);
        at += 2 + depth;
    }
    return rc;
}

static unsigned word_size(const uint8_t *data, size_t len)
{
    static const unsigned sizes[] = {8, 4};
    for (int i = 0; i < 2; i++) {
        struct words w = {data, len / sizes[i], 0, sizes[i]};
        if (w.len >= 8 && !word_at(&w, 0) && word_at(&w, 1) == 3 && !word_at(&w, 2) &&
            word_at(&w, 3) && word_at(&w, 3) < 100000000 && !word_at(&w, 4))
            return sizes[i];
    }
    return 0;
}

static int cpu_read(struct source *in, const struct import_options *options, struct profile *p,
                    struct error *err)
{
    struct import im;
    struct mapped maps = {0};
    uint8_t *data;
    size_t len;
    int rc = source_rest(in, &data, &len, err);
    if (rc)
        return rc;
    import_init(&im, p, in, options);
    unsigned size = word_size(data, len);
    struct words w = {data, size ? len / size : 0, 0, size};
    size_t end = size ? find_end(&w) : 0;
    if (!size)
        rc = source_bad(in, 0, err, "this does not begin like a CPU profile of gperftools");
    else if (!end)
        rc = source_bad(in, len, err, "the stacks do not end, or one of them makes no sense");
    if (!rc)
        rc = read_maps(&im, &maps, (char *)data + (end + 3) * size, err);
    if (!rc) {
        uint32_t event = import_event(&im, "cpu", UNIT_NANOSECONDS, word_at(&w, 3) * 1000);
        rc = count_stacks(&im, &maps, &w, end, event, err);
    }
    if (!rc) {
        check_maps(&im, &maps);
        import_finish(&im, "gperftools-cpu");
    }
    ranges_release(&maps.ranges);
    import_release(&im);
    free(data);
    return rc;
}

static int cpu_detect(const uint8_t *bytes, size_t len)
{
    return word_size(bytes, len) ? 95 : 0;
}

struct heap_line {
    uint64_t in_use[2], all[2]; /* objects, bytes */
    const char *rest;           /* behind the @ */
};

/* "  1: 8 [ 2: 16] @ ..." */
static bool parse_heap(const char *line, struct heap_line *out)
{
    char *at;
    uint64_t *to[] = {&out->in_use[0], &out->in_use[1], &out->all[0], &out->all[1]};
    static const char *const behind[] = {":", "[", ":", "]"};
    for (int i = 0; i < 4; i++) {
        line += strspn(line, " ");
        if (*line < '0' || *line > '9')
            return false;
        *to[i] = strtoull(line, &at, 10);
        at += strspn(at, " ");
        if (*at != behind[i][0])
            return false;
        line = at + 1;
    }
    line += strspn(line, " ");
    if (*line != '@')
        return false;
    out->rest = line + 1;
    return true;
}

struct heap {
    struct import im;
    struct mapped maps;
    uint64_t said[2],
        seen[2]; /* bytes in use and in all: as the file sums them up, and its stacks' */
    uint32_t in_use, all, thread;
    double period; /* 0: every allocation was counted */
};

static double scale_of(const struct heap *h, const uint64_t sums[2])
{
    if (h->period <= 0 || !sums[0] || !sums[1])
        return 1;
    double mean = (double)sums[1] / (double)sums[0];
    return 1 / (1 - exp(-mean / h->period));
}

static int count_heap(struct heap *h, uint32_t event, const uint64_t sums[2], uint32_t stack,
                      struct error *err)
{
    double scale = scale_of(h, sums);
    if (!sums[0] && !sums[1])
        return 0;
    if (!((double)sums[1] * scale < 9e18) || !((double)sums[0] * scale < 9e18))
        return source_bad(h->im.source, source_offset(h->im.source), err,
                          "a stack has an impossible size");
    return import_count(&h->im, event, h->thread, stack,
                        scale == 1 ? sums[0] : (uint64_t)((double)sums[0] * scale),
                        scale == 1 ? sums[1] : (uint64_t)((double)sums[1] * scale), err);
}

static int use_heap_line(struct heap *h, const struct heap_line *l, struct error *err)
{
    uint64_t address[DEPTH_MAX];
    size_t n = 0;
    uint32_t stack;
    for (const char *at = l->rest; n < DEPTH_MAX;) {
        char *end;
        at += strspn(at, " ");
        if (*at != '0')
            break;
        address[n++] = strtoull(at, &end, 16);
        at = end;
    }
    for (int i = 0; i < 2; i++)
        h->seen[i] += i ? l->all[1] : l->in_use[1];
    int rc = push_stack(&h->im, &h->maps, address, n, false, &stack, err);
    if (!rc)
        rc = count_heap(h, h->in_use, l->in_use, stack, err);
    return rc ? rc : count_heap(h, h->all, l->all, stack, err);
}

/* heap_v2/524288, heap/1048576 (of Go, and of tcmalloc long ago: twice the period), heapprofile
 * (every allocation). Numbers are as pprof prints them: it takes both for a Poisson process. */
static void use_heap_kind(struct heap *h, const char *kind)
{
    kind += strspn(kind, " ");
    if (text_starts(kind, "heap_v2/"))
        h->period = strtod(kind + 8, NULL);
    else if (text_starts(kind, "heap/"))
        h->period = strtod(kind + 5, NULL) / 2;
    if (!(h->period > 0 && h->period < 1e15))
        h->period = 0;
}

static void use_sums(struct heap *h, const struct heap_line *l)
{
    h->said[0] = l->in_use[1];
    h->said[1] = l->all[1];
}

static void check_sums(struct heap *h)
{
    for (int i = 0; i < 2; i++)
        if (h->seen[i] < h->said[i]) {
            import_damage(&h->im,
                          "%s says that %llu bytes were %s, but its stacks have only %llu: it was "
                          "cut short, or parts of it were left out",
                          source_name(h->im.source), (unsigned long long)h->said[i],
                          i ? "allocated" : "in use", (unsigned long long)h->seen[i]);
            return;
        }
}

/* The stacks need the maps, which stand behind them. */
static int read_mapped(struct heap *h, char *text, size_t len, struct error *err)
{
    static const char maps[] = "MAPPED_LIBRARIES:";
    char *mapped = memmem(text, len, maps, sizeof maps - 1);
    if (!mapped)
        return 0;
    int rc = read_maps(&h->im, &h->maps, mapped + sizeof maps - 1, err);
    *mapped = 0;
    return rc;
}

static int read_heap(struct heap *h, char *text, size_t len, struct error *err)
{
    static const char head[] = "heap profile:";
    struct heap_line l;
    char *end = text + strcspn(text, "\n");
    if (!text_starts(text, head) || !*end)
        return source_bad(h->im.source, 0, err, "this does not begin like a heap profile");
    int rc = read_mapped(h, end + 1, len - (size_t)(end + 1 - text), err);
    *end = 0;
    if (!rc && !parse_heap(text + sizeof head - 1, &l))
        return source_bad(h->im.source, 0, err,
                          "the first line of the heap profile makes no sense");
    if (!rc) {
        use_heap_kind(h, l.rest);
        use_sums(h, &l);
    }
    for (char *line = end + 1; !rc && *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end)
            *end++ = 0;
        if (parse_heap(line, &l))
            rc = use_heap_line(h, &l, err);
        else if (line[strspn(line, " \t\r")])
            rc = source_bad(h->im.source, (uint64_t)(line - text), err,
                            "a line is no stack of a heap profile");
    }
    return rc;
}

/* "  t*: 1: 8 [2: 16]": the sums of all threads. */
static bool parse_threads(const char *line, struct heap_line *out)
{
    struct text whole = TEXT_INIT;
    line += strspn(line, " \t");
    if (!text_starts(line, "t*:"))
        return false;
    text_format(&whole, "%s @", line + 3);
    bool fits = parse_heap(whole.data, out);
    text_release(&whole);
    return fits;
}

static int read_jemalloc(struct heap *h, char *text, size_t len, struct error *err)
{
    char *end = text + strcspn(text, "\n");
    const char *stack = NULL;
    struct heap_line l;
    if (!text_starts(text, "heap_v2/") || !*end)
        return source_bad(h->im.source, 0, err, "this does not begin like a profile of jemalloc");
    int rc = read_mapped(h, end + 1, len - (size_t)(end + 1 - text), err);
    *end = 0;
    use_heap_kind(h, text);
    for (char *line = end + 1; !rc && *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end)
            *end++ = 0;
        if (*line == '@') {
            stack = line + 1;
        } else if (parse_threads(line, &l)) {
            l.rest = stack;
            if (!stack)
                use_sums(h, &l);
            else
                rc = use_heap_line(h, &l, err);
        }
    }
    return rc;
}

static int heap_read_as(struct source *in, const struct import_options *options, struct profile *p,
                        const struct format *format,
                        int (*read)(struct heap *h, char *text, size_t len, struct error *err),
                        struct error *err)
{
    struct heap h = {0};
    uint8_t *data;
    size_t len;
    int rc = source_rest(in, &data, &len, err);
    if (rc)
        return rc;
    import_init(&h.im, p, in, options);
    h.in_use = import_event(&h.im, "inuse_space", UNIT_BYTES, 0);
    h.all = import_event(&h.im, "alloc_space", UNIT_BYTES, 0);
    h.thread = import_thread(&h.im, import_only_process(&h.im, 1), 1, "");
    rc = read(&h, (char *)data, len, err);
    if (!rc) {
        check_sums(&h);
        check_maps(&h.im, &h.maps);
        import_finish(&h.im, format->name);
    }
    ranges_release(&h.maps.ranges);
    import_release(&h.im);
    free(data);
    return rc;
}

static int heap_read(struct source *in, const struct import_options *options, struct profile *p,
                     struct error *err)
{
    return heap_read_as(in, options, p, &format_gperftools_heap, read_heap, err);
}

static int jemalloc_read(struct source *in, const struct import_options *options, struct profile *p,
                         struct error *err)
{
    return heap_read_as(in, options, p, &format_jemalloc_heap, read_jemalloc, err);
}

static int jemalloc_detect(const uint8_t *bytes, size_t len)
{
    return len >= 8 && !memcmp(bytes, "heap_v2/", 8) ? 100 : 0;
}

static int heap_detect(const uint8_t *bytes, size_t len)
{
    return len >= 13 && !memcmp(bytes, "heap profile:", 13) ? 100 : 0;
}

static const char *const cpu_extensions[] = {".prof", NULL};
static const char *const heap_extensions[] = {".heap", NULL};

const struct format format_gperftools_cpu = {
    .name = "gperftools-cpu",
    .description = "CPU profiles of gperftools",
    .extensions = cpu_extensions,
    .binary = true,
    .detect = cpu_detect,
    .read = cpu_read,
};

const struct format format_gperftools_heap = {
    .name = "gperftools-heap",
    .description = "heap profiles of gperftools and tcmalloc",
    .extensions = heap_extensions,
    .detect = heap_detect,
    .read = heap_read,
};

const struct format format_jemalloc_heap = {
    .name = "jemalloc-heap",
    .description = "heap profiles of jemalloc (MALLOC_CONF=prof:true)",
    .extensions = heap_extensions,
    .detect = jemalloc_detect,
    .read = jemalloc_read,
};
