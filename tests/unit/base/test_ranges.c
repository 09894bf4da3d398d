/* Ranges that replace, cut and split one another, against a plain array of the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/ranges.h"

#define SPACE 256

static void check_same(const struct ranges *r, const uint32_t *truth)
{
    for (uint64_t at = 0; at < SPACE; at++) {
        const struct range *found = ranges_find(r, at);
        assert_int_equal(found ? found->number : 0, truth[at]);
        if (found)
            assert_true(found->start <= at && at < found->end);
    }
    for (size_t i = 1; i < r->all.len; i++)
        assert_true(r->all.data[i - 1].end <= r->all.data[i].start);
}

static void test_like_mmap(void **state)
{
    (void)state;
    struct ranges r = {0}, copy = {0};
    uint32_t truth[SPACE] = {0};
    uint64_t random = 88172645463325252ull;
    for (uint32_t i = 1; i <= 2000; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        uint64_t start = random % SPACE, len = random / SPACE % 40;
        uint64_t end = start + len < SPACE ? start + len : SPACE;
        ranges_put(&r, &(struct range){.start = start, .end = end, .number = i});
        for (uint64_t at = start; at < end; at++)
            truth[at] = i;
        check_same(&r, truth);
    }
    ranges_copy(&copy, &r);
    check_same(&copy, truth);
    ranges_put(&copy, &(struct range){.start = 0, .end = SPACE, .number = 7});
    assert_int_equal(copy.all.len, 1);
    check_same(&r, truth);
    ranges_release(&r);
    ranges_release(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_like_mmap)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
