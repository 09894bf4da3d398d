/*
 * Files of every format, cut at every byte (long ones at many): each is refused, or read with a
 * warning, or holds all that the whole file did. The few cuts that a format gives nobody a way to
 * see are those that docs/FORMATS.md names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "corpus.h"
#include "formats/format.h"

#define CUTS 3000 /* of one file, at most */

struct reader {
    const char *format, *folder;
    /* May nobody see that the file was cut here? NULL: everybody can. */
    bool (*blind)(const uint8_t *file, size_t cut);
};

static bool at_line_end(const uint8_t *file, size_t cut)
{
    return file[cut - 1] == '\n';
}

/* Behind a sample: its empty line, or its only one. */
static bool at_sample_end(const uint8_t *file, size_t cut)
{
    return at_line_end(file, cut) &&
           (cut < 2 || file[cut - 2] == '\n' || (file[cut] != '\t' && file[cut] != '\n'));
}

static const struct reader readers[] = {
    {"pprof", "pprof", NULL},
    {"perf-data", "perf_data", NULL},
    {"perf-script", "perf_script", at_sample_end},
    {"gperftools-cpu", "gperftools_cpu", NULL},
    {"gperftools-heap", "gperftools_heap", NULL},
    {"jemalloc-heap", "jemalloc_heap", NULL},
    {"folded", "folded", at_line_end},
    {"callgrind", "callgrind", NULL},
    {"speedscope", "speedscope", NULL},
    {"chrome-trace", "chrome_trace", NULL},
    {"cpuprofile", "cpuprofile", NULL},
};

static int keep(void *context, const void *data, size_t len, struct error *err)
{
    (void)err;
    text_add_len(context, data, len);
    return 0;
}

static void write_as(const struct profile *p, const char *name, struct text *out)
{
    struct export_options how = {.event = PROFILE_NONE};
    struct error err = {0};
    struct sink sink;
    sink_init(&sink, keep, out);
    int rc = format_find(name)->write(p, &how, &sink, &err);
    assert_true(rc == 0 || rc == FAULT_MISSING);
    assert_int_equal(sink_finish(&sink, &err), 0);
    sink_release(&sink);
}

/* What a file holds, and what its reader said of damage to it. */
struct outcome {
    bool refused;
    struct text said, content;
};

static void outcome_read(struct outcome *o, const struct reader *r, const uint8_t *data, size_t len)
{
    struct import_options how = {.keep_samples = true};
    struct error err = {0};
    struct source *in;
    struct profile p;
    text_clear(&o->said);
    text_clear(&o->content);
    o->refused = true;
    if (source_from_memory(data, len, "input", &in, &err))
        return;
    profile_init(&p);
    o->refused = format_find(r->format)->read(in, &how, &p, &err) != 0;
    for (size_t i = 0; i < p.notes.len; i++)
        if (p.notes.data[i].damage)
            text_add(&o->said, profile_text(&p, p.notes.data[i].text));
    if (!o->refused && !o->said.len) {
        write_as(&p, "csv", &o->content);
        write_as(&p, "perf-script", &o->content);
    }
    profile_release(&p);
    source_free(in);
}

static void outcome_release(struct outcome *o)
{
    text_release(&o->said);
    text_release(&o->content);
}

static void cut(const void *context, const char *name, const uint8_t *file, size_t len)
{
    const struct reader *r = context;
    struct outcome whole = {.said = TEXT_INIT, .content = TEXT_INIT}, part = whole;
    outcome_read(&whole, r, file, len);
    assert_false(whole.refused);
    for (size_t n = 1; n < len; n += len / CUTS + 1) {
        uint8_t *exact = memory_dup(file, n); /* so that a look behind its end is seen */
        outcome_read(&part, r, exact, n);
        free(exact);
        if (part.refused || part.said.len || (r->blind && r->blind(file, n)))
            continue;
        if (whole.said.len || strcmp(whole.content.data, part.content.data) != 0)
            fail_msg("%s: %s of %zu bytes was cut to %zu, and nobody said so", r->format, name, len,
                     n);
    }
    outcome_release(&whole);
    outcome_release(&part);
}

static void test_cuts(void **state)
{
    const struct reader *r = *state;
    corpus_each(r->folder, cut, r);
}

int main(void)
{
    struct CMUnitTest tests[sizeof readers / sizeof *readers];
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        tests[i] =
            (struct CMUnitTest){readers[i].format, test_cuts, NULL, NULL, (void *)&readers[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
