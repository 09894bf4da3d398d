/*
 * The page's document: increments, applied to the whole that was sent before, add up to the whole
 * that is sent after; who breaks off is obeyed. What the columns mean is tested by the page itself
 * (web/test, tests/integration/test_page.py).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "render/page.h"
#include "sample_profile.h"

struct document {
    struct text bytes;
    size_t calls, fail_at;
};

static int keep(void *context, const char *data, size_t len)
{
    struct document *d = context;
    if (d->fail_at && ++d->calls == d->fail_at)
        return -7;
    text_add_len(&d->bytes, data, len);
    return 0;
}

static struct document written(struct page *g, bool delta)
{
    struct document d = {.bytes = TEXT_INIT};
    assert_int_equal(delta ? page_delta(g, keep, &d) : page_write(g, keep, &d), 0);
    assert_memory_equal(d.bytes.data, "SPD1", 4);
    return d;
}

static uint32_t head_length(const struct document *d)
{
    const uint8_t *b = (const uint8_t *)d->bytes.data + 4;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* The number after "key": in the head, from `from` on. */
static uint64_t number(const char *from, const char *key)
{
    const char *at = strstr(from, key);
    assert_non_null(at);
    return strtoull(at + strlen(key), NULL, 10);
}

/* The sum of a column whose rows are signed; 0 if it has none. */
static int64_t column_sum(const struct document *d, const char *name)
{
    struct text quoted = TEXT_INIT;
    text_format(&quoted, "\"name\":\"%s\"", name);
    char *head = strndup(d->bytes.data + 8, head_length(d));
    const char *list = strstr(head, "\"columns\":"), *mine = strstr(list, quoted.data);
    assert_non_null(mine);
    size_t at = 8 + head_length(d);
    for (const char *c = list; (c = strstr(c, "\"bytes\":")) && c < mine; c++)
        at += number(c, "\"bytes\":");
    uint64_t rows = number(mine, "\"rows\":"), shift = 0, value = 0;
    int64_t sum = 0;
    for (const uint8_t *b = (const uint8_t *)d->bytes.data + at; rows; b++) {
        value |= (uint64_t)(*b & 127) << shift;
        shift += 7;
        if (*b & 128)
            continue;
        sum += (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
        value = shift = 0;
        rows--;
    }
    free(head);
    text_release(&quoted);
    return sum;
}

static void more_samples(struct sample_profile *s, uint64_t from_ms, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        samples_add(&s->p.samples, &(struct profile_sample){.time = s->p.start + (from_ms + i) * MS,
                                                            .value = MS,
                                                            .event = s->cpu,
                                                            .thread = s->thread_main,
                                                            .stack = s->main_work});
        profile_count(&s->p, s->cpu, s->thread_main, s->main_work, 1, MS);
    }
    s->p.end = s->p.start + (from_ms + count) * MS;
}

static void deltas_add_up(void **state)
{
    (void)state;
    struct sample_profile s;
    sample_profile_init(&s);
    struct page *g = page_new(&s.p, &(struct page_options){.live = true});
    struct document first = written(g, false), base = written(g, true);
    assert_int_equal(page_sequence(g), 1);
    int64_t counted = column_sum(&first, "cell.count");
    assert_int_equal(column_sum(&base, "cell.count"), counted);
    for (unsigned round = 0; round < 3; round++) {
        more_samples(&s, 10 + round * 40000, 5);
        page_update(g);
        samples_release(&s.p.samples);
        struct document d = written(g, true);
        assert_int_equal(column_sum(&d, "cell.count"), 5);
        assert_int_equal(column_sum(&d, "time.count"), 5);
        assert_int_equal(number(d.bytes.data + 8, "\"sequence\":"), round + 2);
        assert_non_null(strstr(d.bytes.data + 8, "\"delta\":true"));
        text_release(&d.bytes);
    }
    struct document nothing = written(g, true), last = written(g, false);
    assert_int_equal(column_sum(&nothing, "cell.count"), 0);
    assert_int_equal(column_sum(&nothing, "time.count"), 0);
    assert_int_equal(column_sum(&last, "cell.count"), counted + 15);
    assert_int_equal(column_sum(&last, "time.count"), 15);
    text_release(&first.bytes);
    text_release(&base.bytes);
    text_release(&nothing.bytes);
    text_release(&last.bytes);
    page_free(g);
    profile_release(&s.p);
}

/* A frame that gets a name later is sent again; symbols keep their numbers. */
static void names_that_come_later(void **state)
{
    (void)state;
    struct sample_profile s;
    sample_profile_init(&s);
    struct page *g = page_new(&s.p, &(struct page_options){.live = true});
    struct document before = written(g, true);
    uint32_t frame = s.p.stacks.data[s.nameless].frame;
    uint32_t f =
        profile_function_add(&s.p, "late_name", "", "late.c", 3, s.p.frames.data[frame].module);
    profile_frame_locate(&s.p, frame, &(struct profile_location){f, 4}, 1);
    page_update(g);
    struct document d = written(g, true);
    assert_non_null(strstr(d.bytes.data + 8, "late_name"));
    assert_true(number(strstr(d.bytes.data + 8, "\"frame.at\""), "\"rows\":") == 1);
    assert_true(number(d.bytes.data + 8, "\"symbols\":") ==
                number(strstr(before.bytes.data + 8, "\"symbol.name\""), "\"rows\":"));
    text_release(&before.bytes);
    text_release(&d.bytes);
    page_free(g);
    profile_release(&s.p);
}

static void a_reader_that_goes_is_obeyed(void **state)
{
    (void)state;
    struct sample_profile s;
    sample_profile_init(&s);
    for (size_t at = 1; at < 40; at++) {
        struct document d = {.bytes = TEXT_INIT, .fail_at = at};
        int result = page_html(&s.p, &s.p, NULL, keep, &d);
        text_release(&d.bytes);
        if (!result) {
            assert_true(at > 5);
            profile_release(&s.p);
            return;
        }
        assert_int_equal(result, -7);
    }
    fail_msg("the page is never written to its end");
}

static void served_files(void **state)
{
    (void)state;
    const struct page_asset *html = page_asset("/"), *js = page_asset("/page.js");
    assert_non_null(strstr(html->data, "<script src=\"page.js\"></script>"));
    assert_null(strstr(html->data, "<script>"));
    assert_int_equal(js->len, strlen(js->data));
    assert_non_null(page_asset("/page.css"));
    assert_null(page_asset("/../etc/passwd"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deltas_add_up),
        cmocka_unit_test(names_that_come_later),
        cmocka_unit_test(a_reader_that_goes_is_obeyed),
        cmocka_unit_test(served_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
