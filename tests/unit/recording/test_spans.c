/* Spans written, read back, saved again: nesting, marks, cuts, what was left open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "recording/loader.h"
#include "recording/save.h"
#include "recording/writer.h"

struct made {
    struct writer *w;
    int fd;
    char path[64];
    uint32_t thread[2], frame[3];
};

static void begin(struct made *m)
{
    struct error err = {0};
    m->fd = memfd_create("spans", 0);
    assert_true(m->fd >= 0);
    snprintf(m->path, sizeof m->path, "/proc/self/fd/%d", m->fd);
    assert_int_equal(writer_new_fd(dup(m->fd), &m->w, &err), 0);
    writer_meta(m->w, "start", "1000");
    uint32_t p = writer_process(m->w, 42, WRITER_NONE, 1000);
    uint32_t module = writer_module(m->w, CODE_PYTHON, "a.py", NULL, 0);
    for (uint32_t i = 0; i < 2; i++)
        m->thread[i] = writer_thread(m->w, p, 42 + (int32_t)i, 1000);
    for (uint32_t i = 0; i < 3; i++) {
        char name[2] = {(char)('a' + i), 0};
        uint32_t f = writer_function(m->w, name, "", "a.py", i + 1, module);
        m->frame[i] = writer_frame_named(m->w, module, f, i + 1);
    }
}

static void finish(struct made *m, const struct load_options *how, struct profile *p)
{
    struct error err = {0};
    assert_int_equal(writer_free(m->w, true, 9000, &err), 0);
    profile_init(p);
    assert_int_equal(recording_load(m->path, how, p, &err), 0);
    assert_int_equal(p->notes.len, 0);
    close(m->fd);
}

static const struct load_options keep = {.keep_spans = true};

static void is_span(const struct profile *p, size_t i, uint64_t time, uint64_t end, uint32_t frame,
                    uint32_t depth)
{
    const struct profile_span *s = &p->spans.data[i];
    assert_int_equal(s->time, time);
    assert_int_equal(s->end, end);
    assert_int_equal(s->frame, frame);
    assert_int_equal(s->depth, depth);
}

/* Two threads by turns, over several blocks. */
static void write_nested(struct made *m)
{
    begin(m);
    struct writer *w = m->w;
    writer_span_begin(w, m->thread[0], 2000, m->frame[0]);
    writer_span_begin(w, m->thread[1], 2100, m->frame[2]);
    writer_span_begin(w, m->thread[0], 2200, m->frame[1]);
    writer_flush(w, NULL);
    writer_span_mark(w, m->thread[0], 2300, m->frame[2]);
    writer_span_end(w, m->thread[0], 2400);
    writer_span_end(w, m->thread[1], 2500);
    writer_span_end(w, m->thread[0], 3000);
}

static void check_nested(const struct profile *p)
{
    assert_int_equal(p->span_count, 4);
    assert_int_equal(p->spans.len, 4);
    size_t seen = 0;
    for (size_t i = 0; i < p->spans.len; i++) {
        const struct profile_span *s = &p->spans.data[i];
        if (s->thread == 1)
            is_span(p, i, 2100, 2500, 2, 0);
        else if (seen++ == 0)
            is_span(p, i, 2000, 3000, 0, 0);
        else if (seen == 2)
            is_span(p, i, 2200, 2400, 1, 1);
        else
            assert_true(s->mark && s->time == 2300 && s->end == 2300 && s->depth == 2);
        assert_false(s->cut_end);
    }
    assert_int_equal(seen, 3);
}

static void test_nested(void **state)
{
    (void)state;
    struct made m;
    struct profile p;
    write_nested(&m);
    finish(&m, &keep, &p);
    check_nested(&p);
    profile_release(&p);
}

static void test_saved_again(void **state)
{
    (void)state;
    struct made m;
    struct profile p, again;
    struct error err = {0};
    write_nested(&m);
    finish(&m, &keep, &p);
    m.fd = memfd_create("again", 0);
    snprintf(m.path, sizeof m.path, "/proc/self/fd/%d", m.fd);
    assert_int_equal(writer_new_fd(dup(m.fd), &m.w, &err), 0);
    assert_int_equal(recording_save(&p, m.w, &err), 0);
    finish(&m, &keep, &again);
    check_nested(&again);
    profile_release(&again);
    profile_release(&p);
}

/* What is open at a cut ends there, what is open at the end lasts until then. */
static void test_cut_and_open(void **state)
{
    (void)state;
    struct made m;
    struct profile p;
    begin(&m);
    writer_span_begin(m.w, m.thread[0], 2000, m.frame[0]);
    writer_span_cut(m.w, m.thread[0], 2500, 7);
    writer_span_end(m.w, m.thread[0], 2600); /* of one whose beginning was lost */
    writer_span_begin(m.w, m.thread[0], 4000, m.frame[1]);
    finish(&m, &keep, &p);
    assert_int_equal(p.spans.len, 2);
    is_span(&p, 0, 2000, 2500, 0, 0);
    is_span(&p, 1, 4000, 9000, 1, 0);
    assert_true(p.spans.data[0].cut_end && p.spans.data[1].cut_end);
    profile_release(&p);
}

static void test_range_and_count(void **state)
{
    (void)state;
    struct made m;
    struct profile p;
    write_nested(&m);
    struct load_options range = {.keep_spans = true, .from = 1450, .to = 9000};
    finish(&m, &range, &p);
    assert_int_equal(p.spans.len, 2); /* both that last beyond 2450 */
    profile_release(&p);
    write_nested(&m);
    finish(&m, NULL, &p);
    assert_int_equal(p.spans.len, 0);
    assert_int_equal(p.span_count, 4);
    profile_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_saved_again),
        cmocka_unit_test(test_cut_and_open),
        cmocka_unit_test(test_range_and_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
