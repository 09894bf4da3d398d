/* Samples come back whole and in order, from memory and from the file behind it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka wants these before it. */
#include <cmocka.h>

#include "profile/profile.h"

#define MANY 3000000u /* more than stay in memory */

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Two events, seven threads; each thread's times rise, those of all together do not. */
static struct profile_sample make(uint64_t *state, uint64_t i)
{
    uint32_t thread = (uint32_t)(next_random(state) % 7), event = (uint32_t)(i % 5 == 0);
    return (struct profile_sample){.time = i * 1000 + (event ? 0 : thread * 1000000),
                                   .value = next_random(state) % 3 ? 1000 : next_random(state),
                                   .event = event,
                                   .thread = thread,
                                   .stack = (uint32_t)next_random(state)};
}

static void check_many(bool filed)
{
    struct samples s = {0};
    uint64_t random = 1, sum = 0, got = 0, count = 0, last = 0;
    for (uint64_t i = 0; i < MANY; i++) {
        struct profile_sample x = make(&random, i);
        samples_add(&s, &x);
        sum += x.time ^ x.value << 8 ^ (uint64_t)x.stack << 16 ^ x.event << 3 ^ x.thread;
    }
    assert_int_equal(s.len, MANY);
    assert_int_equal(samples_of_event(&s, 1), MANY / 5);
    assert_true(filed ? s.aside.filed > 0 : !s.aside.filed);
    struct samples_cursor c;
    struct profile_sample x;
    samples_begin(&c, &s, SAMPLES_ALL, SAMPLES_ALL);
    for (; samples_next(&c, &x); count++) {
        assert_true(x.time >= last);
        last = x.time;
        got += x.time ^ x.value << 8 ^ (uint64_t)x.stack << 16 ^ x.event << 3 ^ x.thread;
    }
    assert_int_equal(samples_end(&c, NULL), 0);
    assert_int_equal(count, MANY);
    assert_int_equal(got, sum);
    samples_release(&s);
}

static void test_many(void **state)
{
    (void)state;
    check_many(true);
}

static void test_one_list(void **state)
{
    (void)state;
    struct samples s = {0};
    struct samples_cursor c;
    struct profile_sample x;
    uint64_t random = 1, want = 0, got = 0;
    for (uint64_t i = 0; i < 10000; i++) {
        x = make(&random, i);
        samples_add(&s, &x);
        want += x.event == 0 && x.thread == 3;
    }
    samples_begin(&c, &s, 0, 3);
    for (; samples_next(&c, &x); got++)
        assert_true(x.event == 0 && x.thread == 3);
    samples_end(&c, NULL);
    assert_int_equal(got, want);
    samples_begin(&c, &s, 9, SAMPLES_ALL);
    assert_false(samples_next(&c, &x));
    samples_end(&c, NULL);
    samples_release(&s);
}

static void test_disorder(void **state)
{
    (void)state;
    struct samples s = {0};
    struct samples_cursor c;
    struct profile_sample x;
    uint64_t random = 7, last = 0, count = 0;
    for (uint64_t i = 0; i < 5000; i++)
        samples_add(&s,
                    &(struct profile_sample){.time = next_random(&random), .value = UINT64_MAX});
    samples_begin(&c, &s, SAMPLES_ALL, SAMPLES_ALL);
    for (; samples_next(&c, &x); count++, last = x.time)
        assert_true(x.time >= last && x.value == UINT64_MAX);
    samples_end(&c, NULL);
    assert_int_equal(count, 5000);
    samples_release(&s);
}

/* Where no file can be made, memory holds it all. */
static void test_no_disk(void **state)
{
    (void)state;
    setenv("TMPDIR", "/nowhere", 1);
    check_many(false);
    unsetenv("TMPDIR");
}

static void test_apart(void **state)
{
    (void)state;
    struct profile p;
    profile_init(&p);
    p.samples_apart = true;
    uint32_t timed = profile_event_add(&p, "cpu", UNIT_NANOSECONDS, 1);
    uint32_t mixed = profile_event_add(&p, "faults", UNIT_COUNT, 1);
    for (uint64_t i = 0; i < 10; i++) {
        profile_sample_add(&p, &(struct profile_sample){i, 2, timed, 0, 0});
        profile_sample_add(&p, &(struct profile_sample){i, 3, mixed, 0, 0});
    }
    profile_count(&p, mixed, 0, 0, 1, 5);
    assert_int_equal(p.cells.len, 1);
    assert_true(profile_is_timed(&p, timed) && !profile_is_timed(&p, mixed));
    assert_int_equal(profile_settle(&p, NULL), 0);
    assert_int_equal(p.cells.len, 1);
    assert_int_equal(p.cells.data[0].count, 11);
    assert_int_equal(p.cells.data[0].value, 35);
    assert_int_equal(p.events.data[mixed].value, 35);
    assert_int_equal(p.events.data[timed].value, 20);
    profile_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many),     cmocka_unit_test(test_one_list),
        cmocka_unit_test(test_disorder), cmocka_unit_test(test_no_disk),
        cmocka_unit_test(test_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
