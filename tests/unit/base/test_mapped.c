/* Files as memory, and what becomes of those that shrink while they are looked at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mapped.h"

#define PAGE 4096

static int make_file(size_t size)
{
    char path[] = "/tmp/sonde-mapped-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    unlink(path);
    char page[PAGE];
    memset(page, 'x', sizeof page);
    for (size_t at = 0; at < size; at += sizeof page)
        assert_int_equal(write(fd, page, size - at < PAGE ? size - at : PAGE),
                         size - at < PAGE ? size - at : PAGE);
    return fd;
}

static void test_reads(void **state)
{
    (void)state;
    struct mapped m;
    int fd = make_file(3 * PAGE + 5);
    assert_true(mapped_open(&m, fd, 3 * PAGE + 5));
    mapped_pass(&m, 2 * PAGE); /* of a small file, nothing comes of it */
    assert_int_equal(m.data[0], 'x');
    assert_int_equal(m.data[3 * PAGE + 4], 'x');
    assert_false(mapped_was_cut(&m));
    mapped_close(&m);
    mapped_close(&m);
    assert_false(mapped_open(&m, fd, 0));
    close(fd);
}

static void test_what_was_passed_can_be_read_again(void **state)
{
    (void)state;
    struct mapped m;
    size_t size = (size_t)80 << 20;
    int fd = make_file(size);
    assert_true(mapped_open(&m, fd, size));
    for (size_t at = 0; at < size; at += PAGE)
        assert_int_equal(m.data[at], 'x');
    for (size_t at = 0; at < size; at += (size_t)1 << 20)
        mapped_pass(&m, at);
    assert_int_equal(m.data[17], 'x');
    mapped_close(&m);
    close(fd);
}

/* Zeros beyond the new end, and it is told; another file is none the wiser. */
static void test_a_file_is_cut(void **state)
{
    (void)state;
    struct mapped cut, other;
    struct sigaction before, now;
    assert_int_equal(sigaction(SIGBUS, NULL, &before), 0);
    int a = make_file(8 * PAGE), b = make_file(2 * PAGE);
    assert_true(mapped_open(&cut, a, 8 * PAGE));
    assert_true(mapped_open(&other, b, 2 * PAGE));
    assert_int_equal(ftruncate(a, PAGE), 0);
    assert_int_equal(cut.data[PAGE - 1], 'x');
    assert_int_equal(cut.data[5 * PAGE], 0);
    assert_int_equal(cut.data[2 * PAGE], 0);
    assert_int_equal(cut.data[8 * PAGE - 1], 0);
    assert_true(mapped_was_cut(&cut));
    assert_false(mapped_was_cut(&other));
    mapped_close(&cut);
    assert_int_equal(other.data[0], 'x');
    mapped_close(&other);
    close(a);
    close(b);
    assert_int_equal(sigaction(SIGBUS, NULL, &now), 0);
    assert_ptr_equal(now.sa_sigaction, before.sa_sigaction);
}

static void test_many_at_once(void **state)
{
    (void)state;
    struct mapped m[20];
    int fd = make_file(PAGE), had = 0;
    for (int i = 0; i < 20; i++)
        had += mapped_open(&m[i], fd, PAGE);
    assert_int_equal(had, 16); /* the others are read in the ordinary way */
    for (int i = 0; i < 20; i++)
        mapped_close(&m[i]);
    assert_true(mapped_open(&m[0], fd, PAGE));
    mapped_close(&m[0]);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_what_was_passed_can_be_read_again),
        cmocka_unit_test(test_a_file_is_cut),
        cmocka_unit_test(test_many_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
