/* Rows on disk: what is stored comes back, and nothing else does. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "unwind/rows.h"

#define LIBRARY "/lib64/ld-linux-x86-64.so.2"

static char dir[] = "/tmp/sonde-rows-XXXXXX";
static char cache[64], path[128];
static const uint8_t id[] = {0xab, 0xcd, 0xef, 0x01};
static struct rows rows;

static int set_up(void **state)
{
    (void)state;
    int fd = open(LIBRARY, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || !mkdtemp(dir) || rows_read_elf(fd, &rows))
        return -1;
    close(fd);
    snprintf(cache, sizeof(cache), "%s/rows", dir);
    snprintf(path, sizeof(path), "%s/ab/cdef01.rows", cache);
    return 0;
}

static int remove_cache(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    rows_release(&rows);
    return system(command);
}

static void test_round_trip(void **state)
{
    (void)state;
    struct rows back;
    struct stat st;
    assert_int_equal(rows_cache_load(cache, id, 4, &back), -ENODATA);
    assert_int_equal(rows_cache_store(cache, id, 4, &rows), 0);
    assert_int_equal(rows_cache_load(cache, id, 4, &back), 0);
    assert_int_equal(back.count, rows.count);
    assert_int_equal(back.base, rows.base);
    assert_memory_equal(back.mapping, rows.mapping, rows.mapping_size);
    rows_release(&back);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(stat(cache, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    const uint8_t other[] = {0xab, 0xcd, 0xef, 0x02};
    assert_int_equal(rows_cache_load(cache, other, 4, &back), -ENODATA);
    assert_int_equal(rows_cache_load(cache, id, 0, &back), -EINVAL);
    assert_int_equal(rows_cache_load(cache, id, 65, &back), -EINVAL);
}

/* Damage the file at `offset`, expect a refusal, repair it. */
static void check_damage(off_t offset)
{
    struct rows back;
    uint8_t byte, wrong;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pread(fd, &byte, 1, offset), 1);
    wrong = byte ^ 0x10;
    assert_int_equal(pwrite(fd, &wrong, 1, offset), 1);
    assert_int_equal(rows_cache_load(cache, id, 4, &back), -EBADMSG);
    assert_null(back.mapping);
    assert_int_equal(pwrite(fd, &byte, 1, offset), 1);
    close(fd);
}

static void test_damage(void **state)
{
    (void)state;
    struct rows back;
    struct stat st;
    assert_int_equal(rows_cache_store(cache, id, 4, &rows), 0);
    stat(path, &st);
    for (off_t offset = 0; offset < 16; offset++)
        check_damage(offset);
    for (off_t offset = 24; offset < 36; offset++)
        check_damage(offset);
    for (off_t offset = 128; offset < st.st_size; offset += 4099)
        check_damage(offset);
    check_damage(st.st_size - 1);
    assert_int_equal(truncate(path, st.st_size - 1), 0);
    assert_int_equal(rows_cache_load(cache, id, 4, &back), -EBADMSG);
    assert_int_equal(truncate(path, 20), 0);
    assert_int_equal(rows_cache_load(cache, id, 4, &back), -EBADMSG);
    assert_int_equal(rows_cache_store(cache, id, 4, &rows), 0);
    assert_int_equal(rows_cache_load(cache, id, 4, &back), 0);
    rows_release(&back);
}

static void test_others_files(void **state)
{
    (void)state;
    struct rows back;
    char elsewhere[80];
    assert_int_equal(rows_cache_store(cache, id, 4, &rows), 0);
    chmod(path, 0622);
    assert_int_equal(rows_cache_load(cache, id, 4, &back), -EPERM);
    chmod(path, 0600);
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 12345, 12345), 0);
        assert_int_equal(rows_cache_load(cache, id, 4, &back), -EPERM);
        assert_int_equal(chown(path, 0, 0), 0);
    }
    snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", dir);
    assert_int_equal(rename(path, elsewhere), 0);
    assert_int_equal(symlink(elsewhere, path), 0);
    assert_int_equal(rows_cache_load(cache, id, 4, &back), -ELOOP);
    assert_int_equal(rows_cache_store(cache, id, 4, &rows), 0); /* replaces the link itself */
    assert_int_equal(rows_cache_load(cache, id, 4, &back), 0);
    rows_release(&back);
}

/* A file and its build-id: compiled at first, loaded afterwards. */
static void test_open(void **state)
{
    (void)state;
    struct rows first, second;
    uint8_t build_id[ROWS_BUILD_ID_MAX];
    int fd = open(LIBRARY, O_RDONLY | O_CLOEXEC);
    int len = rows_read_build_id(fd, build_id);
    assert_int_equal(len, 20);
    assert_int_equal(rows_open(fd, NULL, &first), 0);
    rows_release(&first);
    assert_int_equal(rows_cache_load(cache, build_id, 20, &second), -ENODATA);
    assert_int_equal(rows_open(fd, cache, &first), 0);
    assert_int_equal(rows_cache_load(cache, build_id, 20, &second), 0);
    rows_release(&second);
    assert_int_equal(rows_open(fd, cache, &second), 0);
    assert_memory_equal(first.mapping, second.mapping, first.mapping_size);
    rows_release(&first);
    rows_release(&second);
    assert_int_equal(rows_open(fd, "/proc/no/such", &first), 0); /* a cache that cannot be */
    rows_release(&first);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_others_files),
        cmocka_unit_test(test_open),
    };
    return cmocka_run_group_tests(tests, set_up, remove_cache);
}
