/* A recording written, read back, cut at every byte and damaged at every byte. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "recording/loader.h"
#include "recording/writer.h"

#define SAMPLES 500

static char folder[] = "/tmp/sonde-test-XXXXXX";
static char path[sizeof folder + 16];

static void write_recording(const char *to)
{
    struct error err = {0};
    struct writer *w;
    assert_int_equal(writer_new(to, true, &w, &err), 0);
    writer_meta(w, "start", "1000");
    uint32_t cpu = writer_event(w, "cpu", UNIT_NANOSECONDS, 1000000);
    uint32_t p = writer_process(w, 42, WRITER_NONE, 1000);
    writer_exec(w, p, 1000, "app", "/bin/app", "app --fast");
    uint32_t t = writer_thread(w, p, 42, 1000);
    writer_thread_name(w, t, "main");
    uint32_t m = writer_module(w, CODE_ELF, "/bin/app", (const uint8_t *)"\1\2\3", 3);
    uint32_t leaf = 0;
    for (uint32_t i = 0; i < SAMPLES; i++) {
        uint32_t root = writer_stack(w, 0, writer_frame(w, m, 0x1000));
        leaf = writer_stack(w, root, writer_frame(w, m, 0x2000 + i % 7 * 16));
        writer_sample(w, cpu, 2000 + i * 1000, t, leaf, 1000000);
        if (i % 50 == 0)
            assert_int_equal(writer_flush(w, &err), 0);
    }
    uint32_t f = writer_function(w, "main", "", "app.c", 3, m);
    struct writer_location at = {.function = f, .line = 7};
    writer_symbol(w, 0, &at, 1);
    writer_process_end(w, p, 900000, 0, 4096);
    writer_loss(w, LOSS_RING_FULL, cpu, t, 5);
    assert_int_equal(writer_free(w, true, 900000, &err), 0);
}

static uint64_t load_samples(const char *from, bool *complete, size_t *notes)
{
    struct profile p;
    struct error err = {0};
    profile_init(&p);
    uint64_t samples = 0;
    if (recording_load(from, NULL, &p, &err) == 0 && p.events.len)
        samples = p.events.data[0].samples;
    *complete = p.complete;
    *notes = p.notes.len;
    profile_release(&p);
    return samples;
}

static void test_round_trip(void **state)
{
    (void)state;
    struct profile p;
    struct error err = {0};
    write_recording(path);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    profile_init(&p);
    assert_int_equal(recording_load(path, NULL, &p, &err), 0);
    assert_true(p.complete);
    assert_int_equal(p.notes.len, 0);
    assert_int_equal(p.events.data[0].samples, SAMPLES);
    assert_int_equal(p.events.data[0].value, SAMPLES * 1000000ull);
    assert_int_equal(p.cells.len, 7);
    assert_int_equal(p.stacks.len, 1 + 1 + 7);
    assert_int_equal(p.processes.data[0].pid, 42);
    assert_true(p.processes.data[0].ended);
    assert_int_equal(p.processes.data[0].status, 0);
    assert_string_equal(profile_process_name(&p, 0), "app");
    assert_string_equal(profile_text(&p, p.threads.data[0].name), "main");
    const struct profile_location *at = &p.locations.data[p.frames.data[0].first_location];
    assert_int_equal(at->line, 7);
    assert_string_equal(profile_text(&p, p.functions.data[at->function].file), "app.c");
    assert_int_equal(profile_lost(&p), 5);
    profile_release(&p);
}

static void test_time_range(void **state)
{
    (void)state;
    struct profile p;
    struct error err = {0};
    write_recording(path);
    profile_init(&p);
    struct load_options o = {.from = 1000, .to = 101000, .keep_samples = true};
    assert_int_equal(recording_load(path, &o, &p, &err), 0);
    assert_int_equal(p.events.data[0].samples, 100);
    assert_int_equal(p.samples.len, 100);
    profile_release(&p);
}

static void put_file(const char *to, const char *data, size_t len)
{
    int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(io_write(fd, data, len), 0);
    close(fd);
}

static void test_cut_at_every_byte(void **state)
{
    (void)state;
    char *data, other[sizeof path + 8];
    size_t len, notes;
    bool complete;
    write_recording(path);
    assert_int_equal(io_slurp(path, 1 << 20, &data, &len, NULL), 0);
    snprintf(other, sizeof other, "%s.cut", path);
    uint64_t before = 0;
    for (size_t cut = 16; cut < len; cut++) {
        put_file(other, data, cut);
        uint64_t samples = load_samples(other, &complete, &notes);
        assert_true(samples >= before && samples <= SAMPLES);
        assert_false(complete);
        assert_int_equal(notes, 1);
        before = samples;
    }
    assert_true(before >= SAMPLES - 50);
    free(data);
}

static void test_flip_every_byte(void **state)
{
    (void)state;
    char *data, other[sizeof path + 8];
    size_t len, notes;
    bool complete;
    write_recording(path);
    assert_int_equal(io_slurp(path, 1 << 20, &data, &len, NULL), 0);
    snprintf(other, sizeof other, "%s.flip", path);
    for (size_t at = 16; at < len; at++) {
        data[at] ^= 0x55;
        put_file(other, data, len);
        uint64_t samples = load_samples(other, &complete, &notes);
        assert_true(samples <= SAMPLES);
        assert_true(notes > 0);
        data[at] ^= 0x55;
    }
    free(data);
}

static void test_refuses(void **state)
{
    (void)state;
    struct profile p;
    struct error err = {0};
    struct writer *w;
    write_recording(path);
    assert_int_equal(writer_new(path, false, &w, &err), FAULT_SYSTEM);
    assert_non_null(strstr(err.text, "exists already"));
    put_file(path, "SONDE\r\n\x1a\x09\0\0\0\0\0\0\0", 16);
    profile_init(&p);
    assert_int_equal(recording_load(path, NULL, &p, &err), FAULT_INPUT);
    assert_non_null(strstr(err.text, "newer sonde"));
    put_file(path, "hello, world, this is text", 26);
    assert_int_equal(recording_load(path, NULL, &p, &err), FAULT_INPUT);
    profile_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),        cmocka_unit_test(test_time_range),
        cmocka_unit_test(test_cut_at_every_byte), cmocka_unit_test(test_flip_every_byte),
        cmocka_unit_test(test_refuses),
    };
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/a.sonde", folder);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) ? 1 : rc;
}
