/* Pushes as text: what is written is read back; what is wrong is refused with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/batch.h"
#include "store/spool.h"

static struct error err;

static int parse(const char *text, struct batch *b)
{
    *b = (struct batch){0};
    err = (struct error){0};
    return batch_parse(b, text, strlen(text), &err);
}

static void test_round_trip(void **state)
{
    (void)state;
    struct batch b = {.key = "k-1", .host = "web1", .recording_name = "a.sonde"};
    batch_count(&b, COUNT_NODE, "cpu", "app", "parse \"x\"", 12);
    batch_count(&b, COUNT_NODE, "cache-misses", "app", "parse \"x\"", 3);
    batch_count(&b, COUNT_NODE, "cpu", "app", "<main>", 1);
    batch_count(&b, COUNT_STACK, "cpu", "app", "main;parse", 12);
    *vector_push(&b.bench) = (struct batch_bench){"app", "{\"real\":1.5}"};
    b.recording_size = 5;
    struct text out = TEXT_INIT;
    batch_write(&b, &out);
    text_add_len(&out, "a\0b\nc", 5);
    struct batch read = {0};
    assert_int_equal(batch_parse(&read, out.data, out.len, &err), 0);
    assert_string_equal(read.key, "k-1");
    assert_string_equal(read.host, "web1");
    assert_int_equal(read.counts.len, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(read.counts.data[i].kind, b.counts.data[i].kind);
        assert_string_equal(read.counts.data[i].name, b.counts.data[i].name);
        assert_string_equal(read.counts.data[i].event, b.counts.data[i].event);
        assert_int_equal(read.counts.data[i].value, b.counts.data[i].value);
    }
    assert_string_equal(read.bench.data[0].json, "{\"real\":1.5}");
    assert_string_equal(read.recording_name, "a.sonde");
    assert_int_equal(read.recording_size, 5);
    assert_memory_equal(read.recording, "a\0b\nc", 5);
    text_release(&out);
    batch_release(&b);
    batch_release(&read);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"", "no JSON"},
        {"[]", "object"},
        {"{}", "\"key\""},
        {"{\"key\": \"a b\"}", "letters"},
        {"{\"key\": \"k\", \"counts\": {}}", "list"},
        {"{\"key\": \"k\", \"counts\": [{\"function\": \"\", \"events\": {}}]}", "counts[0]"},
        {"{\"key\": \"k\", \"counts\": [{\"function\": \"f\"}]}", "\"events\""},
        {"{\"key\": \"k\", \"counts\": [{\"function\": \"f\", \"events\": {\"cpu\": -1}}]}", "cpu"},
        {"{\"key\": \"k\", \"counts\": [{\"function\": \"f\", \"events\": {\"cpu\": 1e300}}]}",
         "2^53"},
        {"{\"key\": \"k\", \"counts\": [{\"function\": \"f\", \"events\": {\"\": 1}}]}", "event"},
        {"{\"key\": \"k\", \"counts\": [{\"function\": 7, \"events\": {}}]}", "text"},
        {"{\"key\": \"k\", \"bench\": [{\"name\": \"a\", \"run\": 1}]}", "\"run\""},
        {"{\"key\": \"k\"} trailing", "announces"},
        {"{\"key\": \"k\", \"recording\": {\"name\": \"a\", \"size\": 3}}\nab", "size"},
        {"{\"key\": \"k\", \"key\": \"l\"}", "no JSON"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct batch b;
        if (parse(wrong[i].text, &b) >= 0)
            fail_msg("accepted: %s", wrong[i].text);
        if (!strstr(err.text, wrong[i].says))
            fail_msg("%s: %s", wrong[i].text, err.text);
        batch_release(&b);
    }
}

static void test_keys_differ(void **state)
{
    (void)state;
    char a[BATCH_KEY_MAX + 1], b[BATCH_KEY_MAX + 1];
    batch_key_make(a);
    batch_key_make(b);
    assert_true(batch_key_valid(a));
    assert_string_not_equal(a, b);
}

static void test_profile(void **state)
{
    (void)state;
    struct profile p;
    struct batch b = {.key = "k"};
    profile_init(&p);
    uint32_t process = profile_process_add(&p, 1, PROFILE_NONE, 0);
    *vector_push(&p.processes.data[process].execs) = (struct profile_exec){
        .comm = profile_string(&p, "comm"), .exe = profile_string(&p, "/usr/bin/app")};
    uint32_t thread = profile_thread_add(&p, process, 1, "main", 0);
    uint32_t module = profile_module_add(&p, CODE_ELF, "/usr/bin/app", NULL, 0);
    uint32_t cpu = profile_event_add(&p, "cpu", UNIT_NANOSECONDS, 10);
    uint32_t frame_main =
        profile_frame_named(&p, module, profile_function_add(&p, "main", "", "", 0, module), 1);
    uint32_t frame_a =
        profile_frame_named(&p, module, profile_function_add(&p, "a;b", "", "", 0, module), 1);
    uint32_t root = profile_stack_add(&p, 0, frame_main);
    uint32_t leaf = profile_stack_add(&p, root, frame_a);
    uint32_t bare = profile_stack_add(&p, root, profile_frame_add(&p, module, 0x1234));
    profile_count(&p, cpu, thread, root, 1, 10);
    profile_count(&p, cpu, thread, leaf, 3, 30);
    profile_count(&p, cpu, thread, bare, 1, 7);
    batch_add_profile(&b, &p, true);
    struct text seen = TEXT_INIT;
    for (size_t i = 0; i < b.counts.len; i++)
        text_format(&seen, "%d %s %s %s %lld\n", b.counts.data[i].kind, b.counts.data[i].event,
                    b.counts.data[i].executable, b.counts.data[i].name,
                    (long long)b.counts.data[i].value);
    assert_string_equal(seen.data, "0 cpu app main 10\n0 cpu app a;b 30\n0 cpu app [app] 7\n"
                                   "1 cpu app main 10\n1 cpu app main;a:b 30\n"
                                   "1 cpu app main;[app] 7\n");
    text_release(&seen);
    batch_release(&b);
    profile_release(&p);
}

static void test_spool(void **state)
{
    (void)state;
    char folder[] = "/tmp/sonde-test-XXXXXX";
    struct text path = TEXT_INIT;
    struct spool *s;
    char *name, *data;
    size_t len;
    text_format(&path, "%s/a/b", mkdtemp(folder));
    assert_int_equal(spool_open(path.data, 20, &s, &err), 0);
    const struct spool_piece first[] = {{"one", 3}, {"\0two", 4}}, second = {"three", 5};
    assert_int_equal(spool_put(s, "k1", first, 2, &err), 0);
    assert_int_equal(spool_put(s, "k2", &second, 1, &err), 0);
    assert_int_equal(spool_put(s, "k3", &(struct spool_piece){"0123456789", 10}, 1, &err),
                     FAULT_LIMIT);
    assert_int_equal(spool_next(s, NULL, &name, &data, &len, &err), 1);
    assert_int_equal(len, 7);
    assert_memory_equal(data, "one\0two", 7);
    free(data);
    spool_remove(s, name);
    free(name);
    spool_free(s);
    assert_int_equal(spool_open(path.data, 20, &s, &err), 0); /* it outlives its maker */
    assert_int_equal(spool_next(s, NULL, &name, &data, &len, &err), 1);
    assert_int_equal(len, 5);
    free(data);
    char *last = name;
    assert_int_equal(spool_next(s, last, &name, &data, &len, &err), 0);
    spool_remove(s, last);
    free(last);
    assert_int_equal(spool_next(s, NULL, &name, &data, &len, &err), 0);
    spool_free(s);
    text_release(&path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_keys_differ), cmocka_unit_test(test_profile),
        cmocka_unit_test(test_spool),
    };
    return cmocka_run_group_tests_name("batch", tests, NULL, NULL);
}
