/* pprof, there and back, and what is wrong with a file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/proto.h"
#include "sample.h"

static const struct format *pprof(void)
{
    return format_find("pprof");
}

static void test_round_trip(void **state)
{
    (void)state;
    struct profile a, b;
    struct error err = {0};
    struct text file = TEXT_INIT;
    sample_fill(&a, false);
    sample_write(pprof(), &a, NULL, &file);
    assert_memory_equal(file.data, "\x1f\x8b", 2);
    profile_init(&b);
    assert_int_equal(sample_read(file.data, file.len, NULL, &b, &err), 0);
    char *want = sample_dump(&a), *got = sample_dump(&b);
    assert_string_equal(want, got);
    assert_int_equal(b.wall_start, a.wall_start);
    assert_int_equal(b.end - b.start, a.end - a.start);
    assert_string_equal(profile_text(&b, b.notes.data[0].text), "sampled with cpu-clock");
    assert_true(b.complete);
    free(want);
    free(got);
    profile_release(&a);
    profile_release(&b);
    text_release(&file);
}

static void test_one_event(void **state)
{
    (void)state;
    struct profile a, b;
    struct error err = {0};
    struct text file = TEXT_INIT;
    sample_fill(&a, false);
    struct export_options only = {.event = profile_event_find(&a, "page-faults")};
    sample_write(pprof(), &a, &only, &file);
    profile_init(&b);
    assert_int_equal(sample_read(file.data, file.len, NULL, &b, &err), 0);
    assert_int_equal(b.events.len, 1);
    assert_int_equal(b.events.data[0].samples, 7);
    assert_int_equal(b.cells.len, 1);
    profile_release(&a);
    profile_release(&b);
    text_release(&file);
}

/* A small file by hand: one type, one sample at one location in one function. */
struct parts {
    uint64_t location, function, values, mapping;
    const char *type, *unit;
};

static void message(struct text *out, unsigned field, struct text *body)
{
    proto_add_bytes(out, field, body->data, body->len);
    text_clear(body);
}

static void make(struct text *out, const struct parts *parts)
{
    struct text t = TEXT_INIT, line = TEXT_INIT;
    proto_add_uint(&t, 1, 1);
    proto_add_uint(&t, 2, 2);
    message(out, 1, &t);
    proto_add_uint(&t, 1, parts->location);
    for (uint64_t i = 0; i < parts->values; i++)
        proto_add_uint(&t, 2, 5);
    message(out, 2, &t);
    proto_add_uint(&t, 1, 1);
    proto_add_uint(&t, 2, parts->mapping);
    proto_add_uint(&line, 1, parts->function);
    message(&t, 4, &line);
    message(out, 4, &t);
    proto_add_uint(&t, 1, 1);
    proto_add_uint(&t, 2, 3);
    message(out, 5, &t);
    const char *strings[] = {"", parts->type, parts->unit, "f"};
    for (size_t i = 0; i < 4; i++)
        proto_add_bytes(out, 6, strings[i], strlen(strings[i]));
    text_release(&t);
    text_release(&line);
}

static int read_parts(const struct parts *parts, struct profile *p, struct error *err)
{
    struct text file = TEXT_INIT;
    make(&file, parts);
    profile_init(p);
    int rc = sample_read(file.data, file.len, NULL, p, err);
    text_release(&file);
    return rc;
}

static void test_units(void **state)
{
    (void)state;
    struct profile p;
    struct error err = {0};
    struct parts parts = {1, 1, 1, 0, "cpu", "milliseconds"};
    assert_int_equal(read_parts(&parts, &p, &err), 0);
    assert_int_equal(p.events.data[0].unit, UNIT_NANOSECONDS);
    assert_int_equal(p.events.data[0].value, 5000000);
    profile_release(&p);
    parts.type = "goroutine";
    parts.unit = "count";
    assert_int_equal(read_parts(&parts, &p, &err), 0);
    assert_int_equal(p.events.data[0].samples, 5);
    profile_release(&p);
}

static void test_refuses(void **state)
{
    (void)state;
    static const struct {
        struct parts parts;
        const char *reason;
    } cases[] = {
        {{2, 1, 1, 0, "cpu", "ns"}, "a sample names a location that is not there"},
        {{1, 2, 1, 0, "cpu", "ns"}, "a line names a function that is not there"},
        {{1, 1, 1, 3, "cpu", "ns"}, "a location names a mapping that is not there"},
        {{1, 1, 2, 0, "cpu", "ns"}, "not one value for each sample type"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct profile p;
        struct error err = {0};
        assert_int_equal(read_parts(&cases[i].parts, &p, &err), FAULT_INPUT);
        assert_non_null(strstr(err.text, cases[i].reason));
        assert_int_equal(strncmp(err.text, "test, byte ", 11), 0);
        profile_release(&p);
    }
}

/* Cut anywhere, the compressed file is refused; nothing crashes on any changed byte of the plain.
 */
static void test_damage(void **state)
{
    (void)state;
    struct profile a, p;
    struct error err = {0};
    struct text packed = TEXT_INIT, plain = TEXT_INIT;
    sample_fill(&a, false);
    sample_write(pprof(), &a, NULL, &packed);
    for (size_t cut = 0; cut < packed.len; cut++) {
        profile_init(&p);
        assert_true(sample_read(packed.data, cut, NULL, &p, &err) < 0);
        profile_release(&p);
    }
    struct source *in;
    uint8_t *data;
    size_t len, good = 0;
    assert_int_equal(source_from_memory(packed.data, packed.len, "test", &in, &err), 0);
    assert_int_equal(source_rest(in, &data, &len, &err), 0);
    source_free(in);
    for (size_t i = 0; i < len; i++) {
        data[i] ^= 0x41;
        profile_init(&p);
        good += pprof()->detect(data, len) && sample_read(data, len, NULL, &p, &err) == 0;
        profile_release(&p);
        data[i] ^= 0x41;
    }
    assert_true(good < len);
    free(data);
    profile_release(&a);
    text_release(&packed);
    text_release(&plain);
}

/* A small file that unpacks to far more than it may. */
static void test_bomb(void **state)
{
    (void)state;
    struct error err = {0};
    struct text packed = TEXT_INIT, bomb = TEXT_INIT;
    struct sink sink;
    struct gzip *gzip;
    char *zeros = calloc(1, 1 << 20);
    sink_init(&sink, sample_collect, &packed);
    assert_int_equal(gzip_new(&sink, &gzip, &err), 0);
    sink_add(gzip_sink(gzip), zeros, 1 << 20);
    assert_int_equal(gzip_free(gzip, &err), 0);
    assert_int_equal(sink_finish(&sink, &err), 0);
    for (size_t i = 0; i < SOURCE_WHOLE_MAX / (1 << 20) + 1; i++)
        text_add_len(&bomb, packed.data, packed.len);
    struct source *in;
    uint8_t *data;
    size_t len;
    assert_int_equal(source_from_memory(bomb.data, bomb.len, "bomb", &in, &err), 0);
    assert_int_equal(source_rest(in, &data, &len, &err), FAULT_LIMIT);
    source_free(in);
    sink_release(&sink);
    text_release(&packed);
    text_release(&bomb);
    free(zeros);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_one_event),
        cmocka_unit_test(test_units),      cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_damage),     cmocka_unit_test(test_bomb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
