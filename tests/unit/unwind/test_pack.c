/* Rows for many processes: what is added is found, by who maps the file too, and nobody else adds.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "unwind/pack.h"

#define LIBRARY "/lib64/ld-linux-x86-64.so.2"

static const uint8_t id[] = {0xab, 0xcd, 0xef, 0x01}, other[] = {0xab, 0xcd, 0xef, 0x02};
static struct rows_pack *pack;
static int pack_fd;

static struct rows read_library(void)
{
    struct rows rows;
    int fd = open(LIBRARY, O_RDONLY | O_CLOEXEC);
    assert_int_equal(rows_read_elf(fd, &rows), 0);
    close(fd);
    return rows;
}

static int set_up(void **state)
{
    (void)state;
    pack_fd = rows_pack_make(&pack);
    return pack_fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    return munmap(pack, ROWS_PACK_BYTES) || close(pack_fd);
}

static void assert_same(const struct rows *a, const struct rows *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->base, b->base);
    assert_int_equal(a->wide_count, b->wide_count);
    assert_int_equal(a->expr_size, b->expr_size);
    assert_memory_equal(a->row, b->row, a->count * sizeof *a->row);
    assert_memory_equal(a->wide, b->wide, a->wide_count * sizeof *a->wide);
    assert_memory_equal(a->expr, b->expr, a->expr_size);
}

static void test_added_is_found(void **state)
{
    (void)state;
    struct rows rows = read_library(), moved = read_library(), back;
    assert_true(rows_pack_is(pack));
    assert_int_equal(rows_pack_find(pack, id, 4, &back), -ENODATA);
    rows_pack_add(pack, id, 4, &moved);
    assert_null(moved.mapping);
    assert_same(&moved, &rows);
    const struct rows_pack *seen = mmap(NULL, ROWS_PACK_BYTES, PROT_READ, MAP_SHARED, pack_fd, 0);
    assert_ptr_not_equal(seen, MAP_FAILED);
    assert_int_equal(rows_pack_find(seen, id, 4, &back), 0);
    assert_same(&back, &rows);
    rows_release(&back); /* leaves the pack alone */
    assert_int_equal(rows_pack_find(seen, id, 4, &back), 0);
    assert_int_equal(rows_pack_find(seen, id, 3, &back), -ENODATA);
    assert_int_equal(rows_pack_find(seen, other, 4, &back), -ENODATA);
    munmap((void *)seen, ROWS_PACK_BYTES);
    struct rows again = read_library();
    rows_pack_add(pack, id, 4, &again); /* there is one already */
    assert_non_null(again.mapping);
    rows_release(&again);
    rows_release(&rows);
}

static void test_sealed(void **state)
{
    (void)state;
    void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, pack_fd, 0);
    assert_ptr_equal(at, MAP_FAILED);
    assert_int_equal(pwrite(pack_fd, "x", 1, 0), -1);
    assert_int_equal(ftruncate(pack_fd, 0), -1);
    assert_int_equal(fcntl(pack_fd, F_GET_SEALS) & F_SEAL_SHRINK, F_SEAL_SHRINK);
}

static void test_full(void **state)
{
    (void)state;
    struct row row = {.kind = ROW_END};
    unsigned added = 0;
    for (uint32_t i = 0; i < 2000; i++) {
        struct rows rows = {.row = &row, .count = 1};
        rows.mapping_size = sizeof row;
        rows.mapping = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memcpy(rows.mapping, &row, sizeof row);
        rows_pack_add(pack, (const uint8_t *)&i, sizeof i, &rows);
        added += rows.mapping == NULL;
        rows_release(&rows);
    }
    assert_int_equal(added, 1024);
    struct rows back;
    uint32_t last = 1023;
    assert_int_equal(rows_pack_find(pack, (const uint8_t *)&last, sizeof last, &back), 0);
    assert_int_equal(back.row[0].kind, ROW_END);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_added_is_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sealed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_full, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
