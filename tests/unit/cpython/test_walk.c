/* Walks of memory made by hand: chains that cannot be, that end nowhere, that change meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "image.h"

#define MAX 64

static struct image image;
static struct cpython_ahead ahead;
static struct cpython_frame frame[MAX];
static struct cpython_end end;

static size_t walk(size_t max)
{
    return cpython_walk(&image.py, &image.memory, IMAGE_THREAD, frame, max, &end);
}

/* Three frames, 0 the outermost. */
static void make_three(unsigned minor)
{
    image_init(&image, minor);
    image_outermost(&image, 0);
    image_frame(&image, 1, image_frame_at(0));
    image_frame(&image, 2, image_frame_at(1));
    image_top(&image, 2);
}

/* Runs `check` on every version, frame by frame and in bulk. */
static void each_way(void (*check)(unsigned minor))
{
    for (unsigned minor = LAYOUT_MINOR_FIRST; minor <= LAYOUT_MINOR_LAST; minor++) {
        make_three(minor);
        check(minor);
        make_three(minor);
        memset(&ahead, 0, sizeof(ahead));
        image.memory.ahead = &ahead;
        check(minor);
        make_three(minor);
        image.memory.ahead = &ahead; /* with what the last walk knew */
        check(minor);
    }
}

static void check_plain(unsigned minor)
{
    assert_int_equal(walk(MAX), 3);
    assert_int_equal(end.reason, CPYTHON_COMPLETE);
    unsigned scale = minor == 10 ? 2 : 1;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(frame[i].code, IMAGE_CODE + 0x100 * (2 - i));
        assert_int_equal(frame[i].lasti, 2 * (2 - i) * (int)scale);
        assert_int_equal(frame[i].flags, minor <= 10 || i == 2 ? CPYTHON_FRAME_ENTRY : 0);
    }
    assert_int_equal(walk(2), 2);
    assert_int_equal(end.reason, CPYTHON_DEPTH);
    assert_int_equal(walk(0), 0);
    assert_int_equal(end.reason, CPYTHON_DEPTH);
    assert_int_equal(cpython_walk(&image.py, &image.memory, IMAGE_THREAD, frame, MAX, NULL), 3);
    image_leave(&image); /* a thread that is not in Python */
    assert_int_equal(walk(MAX), 0);
    assert_int_equal(end.reason, CPYTHON_COMPLETE);
}

static void test_plain(void **state)
{
    (void)state;
    each_way(check_plain);
}

static void check_cycle(unsigned minor)
{
    (void)minor;
    for (unsigned to = 0; to < 3; to++) {
        image_frame(&image, 0, image_frame_at(to));
        assert_true(walk(MAX) < 12); /* a few times around, no more */
        assert_int_equal(end.reason, CPYTHON_CYCLE);
    }
}

static void test_cycle(void **state)
{
    (void)state;
    each_way(check_cycle);
}

/* Shims are not counted, so that nothing but the check for cycles ends this. */
static void test_shims(void **state)
{
    (void)state;
    for (unsigned minor = 12; minor <= 13; minor++) {
        make_three(minor);
        image_shim(&image, 0, image_frame_at(1));
        image_shim(&image, 1, image_frame_at(0));
        assert_int_equal(walk(MAX), 1);
        assert_int_equal(end.reason, CPYTHON_CYCLE);
        make_three(minor);
        image_shim(&image, 1, image_frame_at(0));
        assert_int_equal(walk(MAX), 2);
        assert_int_equal(end.reason, CPYTHON_COMPLETE);
        assert_int_equal(frame[0].flags, CPYTHON_FRAME_ENTRY);
        image_top(&image, 1); /* the loop has begun, its frame is not there yet */
        assert_int_equal(walk(MAX), 1);
    }
    make_three(11);
    image_shim(&image, 1, image_frame_at(0));
    assert_int_equal(walk(MAX), 1);
    assert_int_equal(end.reason, CPYTHON_IMPOSSIBLE); /* 3.11 has no such thing */
}

static void check_impossible(unsigned minor)
{
    const struct layout *l = &image.py.layout;
    uint64_t one = image_frame_at(1);
    static const uint64_t nowhere[] = {8, 0x7ffffff0, UINT64_MAX - 7, IMAGE_BASE + IMAGE_SIZE - 16};
    for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
        image_frame(&image, 1, nowhere[i]);
        assert_int_equal(walk(MAX), 2);
        assert_true(end.reason == CPYTHON_UNREAD || end.reason == CPYTHON_IMPOSSIBLE);
        assert_true(end.address == nowhere[i]);
    }
    image_frame(&image, 1, image_frame_at(0) + 4);
    assert_int_equal(walk(MAX), 2);
    assert_int_equal(end.reason, CPYTHON_IMPOSSIBLE);
    image_frame(&image, 1, image_frame_at(0));
    image_put(&image, one + l->frame_code, 0);
    assert_int_equal(walk(MAX), 1);
    assert_int_equal(end.reason, CPYTHON_IMPOSSIBLE);
    image_frame(&image, 1, image_frame_at(0));
    if (minor <= 10)
        image_put(&image, one + l->frame_type, IMAGE_CODE);
    else
        image_put(&image, one + l->frame_instr, IMAGE_CODE - 0x1000);
    assert_int_equal(walk(MAX), 1);
    assert_int_equal(end.reason, CPYTHON_IMPOSSIBLE);
    assert_true(end.address == one);
}

static void test_impossible(void **state)
{
    (void)state;
    each_way(check_impossible);
}

static size_t moves_at;

/* An outermost frame that no call of the loop begins with: its caller is not written yet. */
static void check_half_written(unsigned minor)
{
    image_frame(&image, 0, 0);
    walk(MAX);
    assert_int_equal(end.reason, minor <= 10 ? CPYTHON_COMPLETE : CPYTHON_MOVED);
}

static void test_half_written(void **state)
{
    (void)state;
    each_way(check_half_written);
}

static void return_from_top(struct image *i)
{
    if (i->reads == moves_at)
        image_top(i, 1);
}

/* The thread returns from its innermost frame just before the last read. */
static void check_moved(unsigned minor)
{
    (void)minor;
    walk(MAX);
    image.reads = 0;
    walk(MAX);
    moves_at = image.reads;
    image.reads = 0;
    image.meanwhile = return_from_top;
    walk(MAX);
    assert_int_equal(end.reason, CPYTHON_MOVED);
    image.meanwhile = NULL;
    assert_int_equal(walk(MAX), 2);
    assert_int_equal(end.reason, CPYTHON_COMPLETE);
}

static void test_moved(void **state)
{
    (void)state;
    each_way(check_moved);
}

/* What the last walk knew is where frames are, never what they hold. */
static void test_ahead(void **state)
{
    (void)state;
    for (unsigned minor = LAYOUT_MINOR_FIRST; minor <= LAYOUT_MINOR_LAST; minor++) {
        make_three(minor);
        memset(&ahead, 0, sizeof(ahead));
        image.memory.ahead = &ahead;
        assert_int_equal(walk(MAX), 3);
        image.reads = 0;
        assert_int_equal(walk(MAX), 3);
        assert_int_equal(image.reads, minor <= 10 ? 2 : 3);
        image_frame(&image, 3, image_frame_at(0));
        image_top(&image, 3);
        assert_int_equal(walk(MAX), 2);
        assert_int_equal(frame[0].code, IMAGE_CODE + 0x300);
        assert_int_equal(end.reason, CPYTHON_COMPLETE);
    }
}

static void test_threads(void **state)
{
    (void)state;
    struct cpython_thread thread[8];
    for (unsigned minor = LAYOUT_MINOR_FIRST; minor <= LAYOUT_MINOR_LAST; minor++) {
        make_three(minor);
        const struct layout *l = &image.py.layout;
        assert_int_equal(cpython_threads(&image.py, &image.memory, 1, thread, 8), 1);
        assert_int_equal(thread[0].state, IMAGE_THREAD);
        image_put(&image, IMAGE_THREAD + l->thread_next, IMAGE_THREAD);
        assert_int_equal(cpython_threads(&image.py, &image.memory, 1, thread, 8), CPYTHON_DAMAGED);
        image_put(&image, IMAGE_THREAD + l->thread_next, 0x10);
        assert_int_equal(cpython_threads(&image.py, &image.memory, 1, thread, 8), CPYTHON_DAMAGED);
        image_put(&image, IMAGE_THREAD + l->thread_next, 0);
        image_put(&image, IMAGE_INTERP + l->interp_next, IMAGE_INTERP);
        assert_int_equal(cpython_threads(&image.py, &image.memory, 1, thread, 8), CPYTHON_DAMAGED);
        image_put(&image, IMAGE_INTERP + l->interp_next, 0x7ffffff8);
        assert_int_equal(cpython_threads(&image.py, &image.memory, 1, thread, 8),
                         CPYTHON_UNREADABLE);
        image_put(&image, IMAGE_RUNTIME, 0);
        assert_int_equal(cpython_threads(&image.py, &image.memory, 1, thread, 8), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain), cmocka_unit_test(test_cycle),
        cmocka_unit_test(test_shims), cmocka_unit_test(test_impossible),
        cmocka_unit_test(test_moved), cmocka_unit_test(test_half_written),
        cmocka_unit_test(test_ahead), cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
