/* Parts that wait on disk: in their order, as wholes, within a bound, shared by several. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/spool.h"

static char folder[] = "/tmp/sonde-spool-XXXXXX";
static struct error err;

static struct spool *open_spool(uint64_t max)
{
    struct spool *s;
    assert_int_equal(spool_open(folder, max, &s, &err), 0);
    return s;
}

static int put(struct spool *s, const char *key, const char *first, const char *second)
{
    struct spool_piece pieces[] = {{first, strlen(first)}, {second, strlen(second)}};
    return spool_put(s, key, pieces, 2, &err);
}

/* The next part after `after` has that content; its name takes the place of `after`. */
static void expect(struct spool *s, char **after, const char *content)
{
    char *name, *data;
    size_t len;
    int rc = spool_next(s, *after, &name, &data, &len, &err);
    free(*after);
    *after = NULL;
    assert_int_equal(rc, content ? 1 : 0);
    if (!content)
        return;
    assert_int_equal(len, strlen(content));
    assert_memory_equal(data, content, len);
    free(data);
    *after = name;
}

static int empty(void **state)
{
    (void)state;
    char *name, *data;
    size_t len;
    struct spool *s = open_spool(1 << 20);
    while (spool_next(s, NULL, &name, &data, &len, &err) == 1) {
        spool_remove(s, name);
        free(name);
        free(data);
    }
    spool_free(s);
    err = (struct error){0};
    return 0;
}

static void test_order(void **state)
{
    (void)state;
    struct spool *s = open_spool(1 << 20), *other = open_spool(1 << 20);
    char *at = NULL;
    uint64_t parts, bytes;
    assert_int_equal(put(s, "a", "one ", "first"), 0);
    assert_int_equal(put(other, "b", "two", ""), 0);
    assert_int_equal(put(s, "c", "three", ""), 0);
    spool_measure(s, &parts, &bytes);
    assert_int_equal(parts, 3);
    assert_int_equal(bytes, strlen("one firsttwothree"));
    expect(s, &at, "one first");
    expect(s, &at, "two");
    expect(s, &at, "three");
    assert_int_equal(put(other, "d", "four", ""), 0); /* after the folder was listed */
    expect(s, &at, "four");
    expect(s, &at, NULL);
    spool_free(s);
    spool_free(other);
}

static void test_removed_by_another(void **state)
{
    (void)state;
    struct spool *s = open_spool(1 << 20), *other = open_spool(1 << 20);
    char *at = NULL, *theirs = NULL;
    put(s, "a", "one", "");
    put(s, "b", "two", "");
    put(s, "c", "three", "");
    expect(s, &at, "one");
    expect(other, &theirs, "one");
    expect(other, &theirs, "two");
    spool_remove(other, theirs);
    expect(s, &at, "three");
    free(at);
    at = NULL;
    expect(s, &at, "one");
    spool_remove(s, at);
    free(at);
    at = NULL;
    expect(s, &at, "three");
    free(at);
    free(theirs);
    spool_free(s);
    spool_free(other);
}

static void test_bound(void **state)
{
    (void)state;
    struct spool *s = open_spool(100);
    char large[64], *at = NULL;
    memset(large, 'x', sizeof large);
    large[60] = 0;
    assert_int_equal(put(s, "a", large, ""), 0);
    assert_int_equal(put(s, "b", large, ""), FAULT_LIMIT);
    assert_non_null(strstr(err.text, "100"));
    assert_int_equal(put(s, "c", "small", ""), 0);
    expect(s, &at, large);
    spool_remove(s, at);
    free(at);
    assert_int_equal(put(s, "d", large, ""), 0); /* there is room at once */
    spool_free(s);
}

/* What a process that died had not finished is no part. */
static void test_unfinished(void **state)
{
    (void)state;
    struct spool *s = open_spool(1 << 20);
    char path[128], *at = NULL;
    snprintf(path, sizeof path, "%s/.00000000000000000001-0000000000-1-k.part", folder);
    close(open(path, O_WRONLY | O_CREAT, 0600));
    put(s, "k", "whole", "");
    expect(s, &at, "whole");
    expect(s, &at, NULL);
    unlink(path);
    spool_free(s);
}

static int remove_folder(void **state)
{
    empty(state);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_order, empty),
        cmocka_unit_test_setup(test_removed_by_another, empty),
        cmocka_unit_test_setup(test_bound, empty),
        cmocka_unit_test_setup(test_unfinished, empty),
    };
    if (!mkdtemp(folder))
        return 1;
    return cmocka_run_group_tests_name("spool", tests, NULL, remove_folder);
}
