/* Any file through one door; saving and loading again; merging. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "formats/open.h"
#include "profile/merge.h"
#include "recording/save.h"
#include "sample.h"

static char folder[] = "/tmp/sonde-test-XXXXXX";
static char path[sizeof folder + 16];

static void save(const struct profile *p)
{
    struct error err = {0};
    struct writer *w;
    assert_int_equal(writer_new(path, true, &w, &err), 0);
    assert_int_equal(recording_save(p, w, &err), 0);
    assert_int_equal(writer_free(w, true, p->end, &err), 0);
}

static void put_file(const void *data, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(io_write(fd, data, len), 0);
    close(fd);
}

static void check_same(const struct profile *a, const struct profile *b)
{
    char *want = sample_dump(a), *got = sample_dump(b);
    assert_string_equal(want, got);
    free(want);
    free(got);
}

static void test_save(void **state)
{
    (void)state;
    for (int times = 0; times < 2; times++) {
        struct profile a, b;
        struct error err = {0};
        struct load_options keep = {.keep_samples = true};
        sample_fill(&a, times);
        save(&a);
        profile_init(&b);
        assert_int_equal(profile_open(path, &keep, &b, &err), 0);
        check_same(&a, &b);
        assert_true(b.complete && b.symbolized);
        assert_int_equal(b.notes.len, 1);
        assert_int_equal(b.start, a.start);
        assert_int_equal(b.end, a.end);
        assert_int_equal(b.wall_start, a.wall_start);
        assert_int_equal(b.processes.data[1].parent, 0);
        assert_int_equal(b.samples.len, times ? 114 : 0);
        struct samples_cursor of_a, of_b;
        struct profile_sample x, y;
        samples_begin(&of_a, &a.samples, SAMPLES_ALL, SAMPLES_ALL);
        samples_begin(&of_b, &b.samples, SAMPLES_ALL, SAMPLES_ALL);
        while (samples_next(&of_a, &x)) {
            assert_true(samples_next(&of_b, &y));
            assert_int_equal(x.time, y.time);
            assert_int_equal(x.thread, y.thread);
        }
        assert_false(samples_next(&of_b, &y));
        samples_end(&of_a, NULL);
        samples_end(&of_b, NULL);
        for (uint32_t i = 0; i < a.frames.len; i++)
            assert_int_equal(profile_frame_is_named(&a, i), profile_frame_is_named(&b, i));
        profile_release(&a);
        profile_release(&b);
    }
}

static void test_open_any(void **state)
{
    (void)state;
    static const char *const names[] = {"pprof", "folded"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct profile a, b;
        struct error err = {0};
        struct text file = TEXT_INIT;
        sample_fill(&a, false);
        sample_write(format_find(names[i]), &a, NULL, &file);
        put_file(file.data, file.len);
        profile_init(&b);
        assert_int_equal(profile_open(path, NULL, &b, &err), 0);
        assert_int_equal(b.events.data[0].samples, 102);
        profile_release(&a);
        profile_release(&b);
        text_release(&file);
    }
}

static void test_failure_leaves_profile(void **state)
{
    (void)state;
    struct profile p;
    struct error err = {0};
    struct text t = TEXT_INIT;
    for (int i = 0; i < 100; i++)
        text_add(&t, "a;b 1\n");
    text_add(&t, "broken\n");
    put_file(t.data, t.len);
    profile_init(&p);
    assert_int_equal(profile_open(path, NULL, &p, &err), FAULT_INPUT);
    assert_int_equal(p.cells.len + p.stacks.len + p.processes.len, 1);
    assert_int_equal(profile_open("/nonexistent/file", NULL, &p, &err), FAULT_MISSING);
    assert_int_equal(profile_open(folder, NULL, &p, &err), FAULT_INPUT);
    profile_release(&p);
    text_release(&t);
}

static void test_pipe(void **state)
{
    (void)state;
    struct profile a, b;
    struct error err = {0};
    char *data, name[32];
    size_t len;
    int ends[2];
    sample_fill(&a, false);
    save(&a);
    assert_int_equal(io_slurp(path, 1 << 20, &data, &len, &err), 0);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(io_write(ends[1], data, len), 0); /* less than a pipe holds */
    close(ends[1]);
    snprintf(name, sizeof name, "/proc/self/fd/%d", ends[0]);
    profile_init(&b);
    assert_int_equal(profile_open(name, NULL, &b, &err), 0);
    close(ends[0]);
    check_same(&a, &b);
    free(data);
    profile_release(&a);
    profile_release(&b);
}

static void test_merge(void **state)
{
    (void)state;
    struct profile a, b;
    struct error err = {0};
    sample_fill(&a, true);
    sample_fill(&b, true);
    b.wall_start += 5000000000ull; /* another machine, five seconds later */
    size_t stacks = a.stacks.len, frames = a.frames.len;
    assert_int_equal(profile_merge(&a, &b, &err), 0);
    assert_int_equal(a.stacks.len, stacks);
    assert_int_equal(a.frames.len, frames);
    assert_int_equal(a.modules.len, 5);
    assert_int_equal(a.processes.len, 4);
    assert_int_equal(a.threads.len, 6);
    assert_int_equal(a.processes.data[3].parent, 2);
    assert_int_equal(a.events.data[0].samples, 204);
    assert_int_equal(a.samples.len, 228);
    assert_int_equal(a.end, b.end + 5000000000ull);
    b.events.data[0].unit = UNIT_BYTES;
    assert_int_equal(profile_merge(&a, &b, &err), FAULT_INPUT);
    assert_int_equal(a.events.data[0].samples, 204);
    profile_release(&a);
    profile_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_save),
        cmocka_unit_test(test_open_any),
        cmocka_unit_test(test_failure_leaves_profile),
        cmocka_unit_test(test_pipe),
        cmocka_unit_test(test_merge),
    };
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/file", folder);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return rmdir(folder) ? 1 : rc;
}
