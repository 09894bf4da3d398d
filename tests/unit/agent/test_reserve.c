/* Room that several threads take from one mark, to its very end: nothing is given twice. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/heap.h"

#define MOST 4000u
#define THREADS 4
#define ROUNDS 300

static uint64_t mark;
static uint8_t taken[MOST];
static uint32_t twice;
static pthread_barrier_t start;

static void take(uint64_t at, uint64_t size)
{
    for (uint64_t i = at; i < at + size; i++)
        if (__atomic_exchange_n(&taken[i], 1, __ATOMIC_RELAXED))
            __atomic_fetch_add(&twice, 1, __ATOMIC_RELAXED);
}

/* Large pieces fail long before small ones do. */
static void *take_all(void *seed)
{
    uint64_t random = (uintptr_t)seed, sum = 0;
    pthread_barrier_wait(&start);
    for (unsigned failed = 0; failed < 2000;) {
        uint64_t at, size;
        random = random * 6364136223846793005u + 1442695040888963407u;
        size = random >> 33 & 1 ? 1 : 1 + (random >> 40) % 200;
        if (heap_reserve(&mark, size, MOST, &at)) {
            take(at, size);
            sum += size;
        } else {
            failed++;
        }
    }
    return (void *)(uintptr_t)sum;
}

static void test_nothing_is_given_twice(void **state)
{
    (void)state;
    pthread_barrier_init(&start, NULL, THREADS);
    for (uintptr_t round = 0; round < ROUNDS; round++) {
        pthread_t thread[THREADS];
        uint64_t sum = 0;
        mark = 0;
        memset(taken, 0, sizeof taken);
        for (uintptr_t i = 0; i < THREADS; i++)
            assert_int_equal(
                pthread_create(&thread[i], NULL, take_all, (void *)(round * THREADS + i + 1)), 0);
        for (size_t i = 0; i < THREADS; i++) {
            void *part;
            pthread_join(thread[i], &part);
            sum += (uintptr_t)part;
        }
        assert_int_equal(twice, 0);
        assert_int_equal(sum, mark);
        assert_true(mark <= MOST);
    }
}

static void test_bounds(void **state)
{
    (void)state;
    uint64_t at, full = MOST, some = 10;
    assert_false(heap_reserve(&full, 1, MOST, &at));
    assert_true(heap_reserve(&full, 0, MOST, &at));
    assert_false(heap_reserve(&some, UINT64_MAX, MOST, &at));
    assert_true(heap_reserve(&some, MOST - 10, MOST, &at));
    assert_int_equal(at, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing_is_given_twice),
                                       cmocka_unit_test(test_bounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
