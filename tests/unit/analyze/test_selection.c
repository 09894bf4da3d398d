/* What a selection lets through, and what it says when nothing can. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/selection.h"
#include "sample_profile.h"

static struct sample_profile sample;

/* The sums of a selection, or the fault; *err holds the sentence. */
static int sums(const struct selection_options *o, uint64_t *value, uint64_t *count,
                struct error *err)
{
    struct selection s;
    int result = selection_init(&s, &sample.p, o, err);
    *value = s.value;
    *count = s.count;
    selection_release(&s);
    return result;
}

static void expect(const struct selection_options *o, uint64_t value, uint64_t count)
{
    uint64_t v, n;
    struct error err = {0};
    assert_int_equal(sums(o, &v, &n, &err), 0);
    assert_int_equal(v, value);
    assert_int_equal(n, count);
}

static void expect_fault(const struct selection_options *o, int fault, const char *sentence)
{
    uint64_t v, n;
    struct error err = {0};
    assert_int_equal(sums(o, &v, &n, &err), fault);
    assert_string_equal(err.text, sentence);
}

#define EVENTS(...)                                                                                \
    .events = (const char *[]){__VA_ARGS__},                                                       \
    .event_count = sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)
#define THREADS(...)                                                                               \
    .threads = (const char *[]){__VA_ARGS__},                                                      \
    .thread_count = sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)

static void test_events(void **state)
{
    (void)state;
    expect(NULL, 10 * MS, 10);
    expect(&(struct selection_options){EVENTS("page-faults")}, 7, 7);
    expect(&(struct selection_options){EVENTS("wall")}, 40 * MS, 12);
    expect(&(struct selection_options){EVENTS("off-cpu:*")}, 30 * MS, 2);
    expect(&(struct selection_options){EVENTS("cpu", "off-cpu:io")}, 30 * MS, 11);
    expect_fault(&(struct selection_options){EVENTS("cycles")}, FAULT_MISSING,
                 "no event \"cycles\" in this recording; its events: cpu, off-cpu:lock, "
                 "off-cpu:io, page-faults");
    expect_fault(&(struct selection_options){EVENTS("cpu", "page-faults")}, FAULT_USAGE,
                 "events \"cpu\" and \"page-faults\" cannot be added up: they have different "
                 "units; choose one with --event");
}

static void test_labels(void **state)
{
    (void)state;
    struct selection s;
    struct error err = {0};
    const struct {
        struct selection_options o;
        const char *label;
        bool waits;
    } cases[] = {{{0}, "cpu", false},
                 {{EVENTS("wall")}, "wall", true},
                 {{EVENTS("cpu", "off-cpu:io")}, "cpu, off-cpu:io", true},
                 {{EVENTS("off-cpu:*")}, "off-cpu:lock, off-cpu:io", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(selection_init(&s, &sample.p, &cases[i].o, &err), 0);
        assert_string_equal(s.label.data, cases[i].label);
        assert_int_equal(s.waits, cases[i].waits);
        selection_release(&s);
    }
}

static void test_processes_and_threads(void **state)
{
    (void)state;
    int32_t app = 42, tool = 50, none = 7;
    expect(&(struct selection_options){.pids = &app, .pid_count = 1}, 9 * MS, 9);
    expect(&(struct selection_options){.pids = &tool, .pid_count = 1}, 1 * MS, 1);
    expect(&(struct selection_options){THREADS("worker-*")}, 4 * MS, 4);
    expect(&(struct selection_options){THREADS("43", "tool")}, 5 * MS, 5);
    expect_fault(&(struct selection_options){.pids = &none, .pid_count = 1}, FAULT_MISSING,
                 "no process 7 in this recording; its processes: 42 (app), 50 (tool)");
    expect_fault(&(struct selection_options){.pids = &app, .pid_count = 1, THREADS("tool")},
                 FAULT_MISSING,
                 "no thread \"tool\" among those chosen; there are: 42 (main), 43 (worker-1)");
}

static void test_functions(void **state)
{
    (void)state;
    expect(&(struct selection_options){.function = "main"}, 5 * MS, 5);
    expect(&(struct selection_options){.function = "work"}, 9 * MS, 9);
    expect(&(struct selection_options){.function = "^(leaf|start)"}, 7 * MS, 7);
    /* An inlined function is found, unless inlining is to be ignored. */
    expect(&(struct selection_options){.function = "tiny"}, 3 * MS, 3);
    expect_fault(&(struct selection_options){.function = "tiny", .no_inline = true}, FAULT_MISSING,
                 "no stack contains a function that matches \"tiny\"; `sonde report` lists the "
                 "functions there are");
    /* What is no regular expression, or no safe one, is taken as it stands. */
    expect(&(struct selection_options){.function = "start(void*"}, 4 * MS, 4);
    expect_fault(&(struct selection_options){.function = "(w{1,250}){1,250}"}, FAULT_MISSING,
                 "no stack contains a function that matches \"(w{1,250}){1,250}\"; `sonde report` "
                 "lists the functions there are");
    expect_fault(&(struct selection_options){.function = "(w)\\1"}, FAULT_MISSING,
                 "no stack contains a function that matches \"(w)\\1\"; `sonde report` lists the "
                 "functions there are");
}

static void test_modules(void **state)
{
    (void)state;
    expect(&(struct selection_options){.module = "libx.so"}, 4 * MS, 4);
    expect(&(struct selection_options){.module = "lib*.so"}, 4 * MS, 4);
    expect(&(struct selection_options){.module = "/opt/app"}, 9 * MS, 9);
    /* Both on one frame. */
    expect(&(struct selection_options){.module = "app", .function = "start"}, 4 * MS, 4);
    expect_fault(&(struct selection_options){.module = "libx.so", .function = "start"},
                 FAULT_MISSING,
                 "no stack contains a function that matches \"start\" in a module \"libx.so\"; "
                 "`sonde report` lists the functions there are");
}

static void test_empty(void **state)
{
    (void)state;
    struct profile empty;
    struct selection s;
    struct error err = {0};
    profile_init(&empty);
    assert_int_equal(selection_init(&s, &empty, NULL, &err), 0);
    assert_int_equal(s.count, 0);
    selection_release(&s);
    assert_int_equal(selection_init(&s, &empty, &(struct selection_options){EVENTS("wall")}, &err),
                     FAULT_MISSING);
    selection_release(&s);
    profile_release(&empty);
}

int main(void)
{
    sample_profile_init(&sample);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_processes_and_threads),
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_modules),
        cmocka_unit_test(test_empty),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    profile_release(&sample.p);
    return failed;
}
