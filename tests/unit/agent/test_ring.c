/*
 * The two ends of a ring, the agent's and the collector's, against each other: nothing is torn,
 * doubled or lost without being counted, whoever stops, dies or interrupts when.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <cmocka.h>

#include "agent/ring.h"
#include "capture/agents_segment.h"
#include "made_segment.h"

struct seen {
    uint64_t samples, bad, threads, ended;
    uint64_t last; /* seed */
    bool in_order;
    struct agents_thread end;
};

struct fixture {
    struct made_segment segment;
    struct agent_thread *thread;
    struct segment_view *view;
    struct agents_process process;
    struct seen seen;
};

static void on_thread(void *context, struct agents_process *p, struct agents_thread *t)
{
    (void)p;
    (void)t;
    ((struct seen *)context)->threads++;
}

static void on_sample(void *context, struct agents_process *p, struct agents_thread *t,
                      const struct agents_sample *s)
{
    struct seen *seen = context;
    (void)p;
    (void)t;
    for (size_t i = 0; i < s->count; i++)
        seen->bad += s->address[i] != MADE_ADDRESS(s->time, i);
    seen->in_order &= s->time > seen->last || seen->samples == 0;
    seen->last = s->time;
    seen->samples++;
}

static void on_thread_end(void *context, struct agents_process *p, struct agents_thread *t)
{
    struct seen *seen = context;
    (void)p;
    seen->ended++;
    seen->end = *t;
}

static const struct agents_sink sink = {
    .thread = on_thread, .sample = on_sample, .thread_end = on_thread_end};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    made_segment_init(&f->segment);
    f->thread = aligned_alloc(64, (sizeof *f->thread + 63) & ~63ul);
    memset(f->thread, 0, sizeof *f->thread);
    f->seen.in_order = true;
    if (segment_view_new(f->segment.base, f->segment.size, &f->view, NULL) != 0)
        return -1;
    made_segment_thread(&f->segment, 0, f->thread);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    segment_view_free(f->view);
    made_segment_release(&f->segment);
    free(f->thread);
    free(f);
    return 0;
}

static void drain(struct fixture *f, bool last)
{
    segment_view_drain(f->view, last, &f->process, &sink, &f->seen);
}

static void test_what_goes_in_comes_out(void **state)
{
    struct fixture *f = *state;
    for (uint64_t i = 1; i <= 10000; i++) {
        assert_true(made_segment_put(f->thread, i, (uint16_t)(1 + i % 90)));
        drain(f, false);
    }
    assert_int_equal(f->seen.samples, 10000);
    assert_int_equal(f->seen.bad, 0);
    assert_true(f->seen.in_order);
    drain(f, true);
    assert_int_equal(f->seen.ended, 1);
    assert_int_equal(f->seen.end.generated, 10000);
    assert_int_equal(f->seen.end.recorded, 10000);
    assert_int_equal(f->seen.end.lost, 0);
    assert_false(f->process.damaged);
}

static void test_overrun_is_counted_exactly(void **state)
{
    struct fixture *f = *state;
    uint64_t lost = 0;
    for (uint64_t i = 1; i <= 1000; i++) {
        lost += !made_segment_put(f->thread, i, 20);
        if (i % 100 == 0)
            drain(f, false);
    }
    assert_true(lost > 0);
    drain(f, true);
    assert_int_equal(f->seen.end.lost, lost);
    assert_int_equal(f->seen.end.recorded, 1000 - lost);
    assert_int_equal(f->seen.samples, 1000 - lost);
    assert_int_equal(f->seen.end.value, 10000);
    assert_int_equal(f->seen.end.value_lost, 10 * lost);
}

/* Its thread was killed between reserving and committing. */
static void test_an_unfinished_record_is_skipped(void **state)
{
    struct fixture *f = *state;
    made_segment_put(f->thread, 1, 5);
    struct segment_thread *s = f->thread->slot;
    s->count[0].generated++;
    s->head += 9 * SEGMENT_WORD_BYTES;
    made_segment_put(f->thread, 2, 5);
    drain(f, false);
    assert_int_equal(f->seen.samples, 1);
    drain(f, true);
    assert_int_equal(f->seen.samples, 2);
    assert_int_equal(f->seen.end.generated, 3);
    assert_int_equal(f->seen.end.lost, 1);
    assert_int_equal(f->seen.bad, 0);
}

/* Bytes of the lap before stand in the gap, whole records of it included. */
static void test_an_old_lap_passes_for_nothing(void **state)
{
    struct fixture *f = *state;
    uint64_t seed = 1;
    for (; f->thread->slot->head < 2 * MADE_RING; seed++) {
        made_segment_put(f->thread, seed, 12);
        drain(f, false);
    }
    uint64_t before = f->seen.samples;
    f->thread->slot->head += MADE_RING / 2;
    drain(f, true);
    assert_int_equal(f->seen.samples, before);
}

static void test_a_slot_serves_the_next_thread(void **state)
{
    struct fixture *f = *state;
    for (uint64_t round = 0; round < 50; round++) {
        for (uint64_t i = 1; i <= 7; i++)
            assert_true(made_segment_put(f->thread, round * 10 + i, 30));
        __atomic_store_n(&f->thread->slot->state, SLOT_ENDED, __ATOMIC_RELEASE);
        drain(f, false);
        assert_int_equal(f->thread->slot->state, SLOT_FREE);
        assert_int_equal(f->seen.end.recorded, 7);
        made_segment_thread(&f->segment, 0, f->thread);
    }
    assert_int_equal(f->seen.ended, 50);
    assert_int_equal(f->seen.samples, 350);
    assert_int_equal(f->seen.bad, 0);
    assert_false(f->process.damaged);
}

static atomic_bool finished;

static void *produce(void *context)
{
    for (uint64_t i = 1; i <= 300000; i++)
        if (!made_segment_put(context, i, (uint16_t)(1 + i % 60)))
            sched_yield(); /* gives the reader its share of a single CPU */
    atomic_store(&finished, true);
    return NULL;
}

static void test_both_ends_at_once(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;
    atomic_store(&finished, false);
    assert_int_equal(pthread_create(&thread, NULL, produce, f->thread), 0);
    while (!atomic_load(&finished))
        drain(f, false);
    pthread_join(thread, NULL);
    drain(f, true);
    assert_int_equal(f->seen.end.generated, 300000);
    assert_int_equal(f->seen.end.recorded + f->seen.end.lost, 300000);
    assert_int_equal(f->seen.samples, f->seen.end.recorded);
    assert_true(f->seen.samples > 100);
    assert_int_equal(f->seen.bad, 0);
    assert_true(f->seen.in_order);
    assert_false(f->process.damaged);
}

static struct agent_thread *interrupted;
static volatile sig_atomic_t interruptions;

static void on_alarm(int number)
{
    (void)number;
    made_segment_put(interrupted, 1u << 30 | (uint64_t)interruptions, 3);
    interruptions = interruptions + 1;
}

static void test_a_handler_may_interrupt_a_producer(void **state)
{
    struct fixture *f = *state;
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    interrupted = f->thread;
    interruptions = 0;
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &often, NULL);
    uint64_t i = 0;
    while (interruptions < 500) {
        i++;
        made_segment_put(f->thread, i, (uint16_t)(1 + i % 50));
        drain(f, false);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    uint64_t all = i + (uint64_t)interruptions;
    drain(f, true);
    assert_int_equal(f->seen.end.generated, all);
    assert_int_equal(f->seen.samples + f->seen.end.lost, all);
    assert_int_equal(f->seen.bad, 0);
    assert_false(f->process.damaged);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_goes_in_comes_out, setup, teardown),
        cmocka_unit_test_setup_teardown(test_overrun_is_counted_exactly, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_unfinished_record_is_skipped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_old_lap_passes_for_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_slot_serves_the_next_thread, setup, teardown),
        cmocka_unit_test_setup_teardown(test_both_ends_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_handler_may_interrupt_a_producer, setup, teardown),
    };
    return cmocka_run_group_tests_name("agent ring", tests, NULL, NULL);
}
