/*
 * Spans in windows: nothing is lost however few boxes may be, what is wide stands for itself, a
 * window has what reaches into it, and an index that grows is the same as one that is made at once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "analyze/spans.h"

#define CALLS 20000
#define LONG 1000000u /* ns of every outer span */
#define SHORT 900u    /* of the inner ones */

/* Two threads: outer spans that follow each other, in each ten short ones, and a mark in every
 * hundredth. */
static void add_call(struct profile *p, uint32_t thread, uint64_t n)
{
    uint64_t time = p->start + n * LONG;
    *vector_push(&p->spans) = (struct profile_span){
        .time = time, .end = time + LONG - 1000, .thread = thread, .frame = 1};
    for (uint64_t i = 0; i < 10; i++)
        *vector_push(&p->spans) = (struct profile_span){.time = time + 1000 + i * 1000,
                                                        .end = time + 1000 + i * 1000 + SHORT,
                                                        .thread = thread,
                                                        .frame = 2,
                                                        .depth = 1};
    if (n % 100 == 0)
        *vector_push(&p->spans) = (struct profile_span){.time = time + 500000,
                                                        .end = time + 500000,
                                                        .thread = thread,
                                                        .frame = 3,
                                                        .depth = 1,
                                                        .mark = 1};
    p->end = time + LONG;
}

static void make(struct profile *p)
{
    profile_init(p);
    p->start = 5000000;
    for (uint64_t n = 0; n < CALLS; n++) {
        add_call(p, 0, n);
        add_call(p, 3, n);
    }
}

static uint64_t stood_for(const struct spans_boxes *b)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < b->all.len; i++)
        sum += b->all.data[i].count ? b->all.data[i].count : 1;
    return sum;
}

static void in_order(const struct spans_boxes *b)
{
    uint64_t after[4][2] = {{0}};
    for (size_t i = 0; i < b->all.len; i++) {
        const struct spans_box *x = &b->all.data[i];
        assert_true(x->thread < 4 && x->depth < 2 && x->start <= x->end);
        assert_true(x->start >= after[x->thread][x->depth]);
        after[x->thread][x->depth] = x->end;
    }
}

static void test_bounded(void **state)
{
    (void)state;
    struct profile p;
    struct spans s;
    struct spans_boxes b;
    make(&p);
    spans_init(&s, &p);
    for (size_t limit = 1000; limit <= 1000000; limit *= 10) {
        struct spans_window w = {.to = p.end - p.start, .depth_max = 64, .limit = limit};
        spans_show(&s, &w, &b);
        assert_true(b.all.len <= limit);
        assert_int_equal(stood_for(&b), p.spans.len);
        assert_true(limit < 1000000 || (b.all.len == p.spans.len && b.least == 0));
        in_order(&b);
        vector_release(&b.all);
    }
    spans_release(&s);
    profile_release(&p);
}

static void test_window(void **state)
{
    (void)state;
    static const uint8_t only[] = {0, 0, 0, 1};
    struct profile p;
    struct spans s;
    struct spans_boxes b;
    make(&p);
    spans_init(&s, &p);
    /* From the middle of call 100 to that of 101. */
    struct spans_window w = {.from = 100 * LONG + LONG / 2,
                             .to = 101 * LONG + LONG / 2,
                             .chosen = only,
                             .depth_max = 64,
                             .limit = 1000};
    spans_show(&s, &w, &b);
    assert_int_equal(b.all.len, 2 + 1 + 10); /* the mark of call 100 stands at its middle */
    assert_int_equal(b.all.data[0].start, 100 * LONG);
    for (size_t i = 0; i < b.all.len; i++)
        assert_int_equal(b.all.data[i].thread, 3);
    vector_release(&b.all);
    /* What is narrower than 2 us stands together, by the frame of the longest. */
    w.least = 2000;
    spans_show(&s, &w, &b);
    assert_int_equal(b.all.len, 2 + 1 + 1);
    assert_int_equal(stood_for(&b), 13);
    vector_release(&b.all);
    w.depth_max = 1;
    spans_show(&s, &w, &b);
    assert_int_equal(b.all.len, 2);
    vector_release(&b.all);
    spans_release(&s);
    profile_release(&p);
}

/* One that goes on lasts to the end of what is known, until its end is. */
static void test_growing(void **state)
{
    (void)state;
    struct profile p;
    struct spans s;
    struct spans_boxes b;
    profile_init(&p);
    p.start = 100;
    spans_init(&s, &p);
    for (uint64_t n = 0; n < 2000; n++) {
        add_call(&p, 1, n);
        if (n % 7 == 0)
            spans_update(&s);
    }
    *vector_push(&p.spans) = (struct profile_span){.time = p.end, .thread = 1, .frame = 4};
    p.end += LONG;
    spans_update(&s);
    struct spans_window w = {
        .from = p.end - p.start - 10, .to = p.end - p.start, .depth_max = 64, .limit = 1000};
    spans_show(&s, &w, &b);
    assert_int_equal(b.all.len, 1);
    assert_int_equal(b.all.data[0].end, p.end - p.start);
    vector_release(&b.all);
    p.spans.data[p.spans.len - 1].end = p.end - 100;
    spans_update(&s);
    spans_show(&s, &w, &b);
    assert_int_equal(b.all.len, 0);
    vector_release(&b.all);
    w.from = 0;
    w.limit = 1000000;
    spans_show(&s, &w, &b);
    assert_int_equal(stood_for(&b), p.spans.len);
    vector_release(&b.all);
    spans_release(&s);
    profile_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bounded),
                                       cmocka_unit_test(test_window),
                                       cmocka_unit_test(test_growing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
