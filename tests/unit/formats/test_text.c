/* The line formats: folded stacks and perf script's text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sample.h"

static int read_text(const char *text, const struct import_options *options, struct profile *p,
                     struct error *err)
{
    profile_init(p);
    return sample_read(text, strlen(text), options, p, err);
}

static void test_folded_written(void **state)
{
    (void)state;
    struct profile p;
    struct text out = TEXT_INIT;
    sample_fill(&p, false);
    sample_write(format_find("folded"), &p, NULL, &out);
    assert_string_equal(out.data, "[unknown] 2\n"
                                  "main;ns::work(int) 60\n"
                                  "main;ns::work(int);sin 25\n"
                                  "main;ns::work(int);small:odd?name 10\n"
                                  "handle;[libm.so.6+0x2468] 4\n"
                                  "[unknown+0x7fffdead0000] 1\n");
    text_clear(&out);
    struct export_options by = {.event = PROFILE_NONE, .by_process = true, .by_thread = true};
    sample_write(format_find("folded"), &p, &by, &out);
    assert_non_null(strstr(out.data, "app-42;worker-43;main;ns::work(int);small:odd?name 10\n"));
    assert_non_null(strstr(out.data, "python3-77;thread-77;handle;[libm.so.6+0x2468] 4\n"));
    text_clear(&out);
    struct export_options bytes = {.event = profile_event_find(&p, "alloc_space")};
    sample_write(format_find("folded"), &p, &bytes, &out);
    assert_string_equal(out.data, "main;ns::work(int) 200\n"
                                  "main;ns::work(int);small:odd?name 12288\n");
    text_release(&out);
    profile_release(&p);
}

static void test_folded_round_trip(void **state)
{
    (void)state;
    struct profile a, b;
    struct error err = {0};
    struct text once = TEXT_INIT, twice = TEXT_INIT;
    sample_fill(&a, false);
    sample_write(format_find("folded"), &a, NULL, &once);
    assert_int_equal(read_text(once.data, NULL, &b, &err), 0);
    assert_int_equal(b.events.data[0].samples, 102);
    sample_write(format_find("folded"), &b, NULL, &twice);
    assert_string_equal(once.data, twice.data);
    profile_release(&a);
    profile_release(&b);
    text_release(&once);
    text_release(&twice);
}

static void test_folded_lines(void **state)
{
    (void)state;
    struct profile p;
    struct error err = {0};
    assert_int_equal(read_text("# comment\r\na;b c 3\r\na;run (x.py:12) 4\n", NULL, &p, &err), 0);
    assert_int_equal(p.events.data[0].samples, 7);
    const struct profile_frame *f = &p.frames.data[2];
    const struct profile_location *at = &p.locations.data[f->first_location];
    assert_int_equal(at->line, 12);
    assert_string_equal(profile_text(&p, p.functions.data[at->function].name), "run");
    assert_int_equal(p.modules.data[f->module].kind, CODE_PYTHON);
    profile_release(&p);
    assert_int_equal(read_text("a;b 3\na;b 3\na;c\n", NULL, &p, &err), FAULT_INPUT);
    profile_release(&p);
    /* Beyond what detection looks at. */
    struct text t = TEXT_INIT;
    for (int i = 0; i < 100; i++)
        text_add(&t, "a;b 1\n");
    text_add(&t, "a;b 12x\n");
    assert_int_equal(read_text(t.data, NULL, &p, &err), FAULT_INPUT);
    assert_string_equal(err.text,
                        "test, byte 600: a folded stack must end with a space and a whole number");
    profile_release(&p);
    text_clear(&t);
    for (int i = 0; i < 2; i++)
        text_add(&t, "a;b 9223372036854775807\n");
    assert_int_equal(read_text(t.data, NULL, &p, &err), FAULT_INPUT);
    assert_non_null(strstr(err.text, "63 bits"));
    profile_release(&p);
    text_release(&t);
}

#define SCRIPT                                                                                     \
    "# captured on : today\n"                                                                      \
    "web server  4242/4250 [001]  10.000000100:    1001001 cpu-clock:pppH: \n"                     \
    "\t            1169 small (inlined)\n"                                                         \
    "\t            1169 hot(int, char)+0x10 (/usr/bin/app (deleted))\n"                            \
    "\t    7f1200001237 [unknown] (/usr/lib/libx.so)\n"                                            \
    "\tffffffff81000000 do_irq ([kernel.kallsyms])\n"                                              \
    "\n"                                                                                           \
    "app  4242 4242/4242  10.500000:    1001001 cpu-clock:pppH: \n"                                \
    "\t            1169 main (/usr/bin/app)\n"                                                     \
    "\n"                                                                                           \
    "app  4242/4242  12.000000:          3 page-faults:u: \n"                                      \
    "\t            1169 main (/usr/bin/app)\n"                                                     \
    "\n"

static void test_script(void **state)
{
    (void)state;
    struct profile p;
    struct error err = {0};
    struct import_options keep = {.keep_samples = true};
    assert_int_equal(read_text(SCRIPT, &keep, &p, &err), 0);
    uint32_t cpu = profile_event_find(&p, "cpu"), faults = profile_event_find(&p, "page-faults");
    assert_int_equal(p.events.data[cpu].unit, UNIT_NANOSECONDS);
    assert_int_equal(p.events.data[cpu].samples, 2);
    assert_int_equal(p.events.data[cpu].value, 2002002);
    assert_int_equal(p.events.data[cpu].period, 1001001);
    assert_int_equal(p.events.data[faults].value, 3);
    assert_int_equal(p.samples.len, 3);
    assert_int_equal(p.start, 10000000100);
    assert_int_equal(p.end, 12000000000);
    char *dump = sample_dump(&p);
    assert_non_null(strstr(dump, "cpu(1,1001001) 4242 web server 4250 web server 1 1001001"
                                 " / /usr/bin/app@0[0] small||:0:0"
                                 " / /usr/bin/app@0[0] hot(int, char)||:0:0"
                                 " / /usr/lib/libx.so@7f1200001237[0]"
                                 " / [kernel.kallsyms]@0[1] do_irq||:0:0\n"));
    free(dump);
    profile_release(&p);
    struct import_options part = {.from = 400000000, .to = 1000000000};
    assert_int_equal(read_text(SCRIPT, &part, &p, &err), 0);
    assert_int_equal(p.events.data[0].samples, 1);
    profile_release(&p);
}

static void test_script_variants(void **state)
{
    (void)state;
    struct profile p;
    struct error err = {0};
    /* No call chains: the frame stands in the sample's line. */
    assert_int_equal(read_text("   hot  3890  2131.422072:   10101010 cpu-clock:      5556a4acb169 "
                               "hot+0x10 (/tmp/hot)\n"
                               "   hot  3892  2131.425975:   10101010 cpu-clock:      5556a4acb1a5 "
                               "hot+0x4c (/tmp/hot)\n",
                               NULL, &p, &err),
                     0);
    assert_int_equal(p.cells.len, 2);
    assert_int_equal(p.processes.len, 1);
    assert_int_equal(p.threads.len, 2);
    assert_int_equal(p.stacks.len, 2);
    profile_release(&p);
    /* No time, no period. */
    assert_int_equal(read_text("hot 3890 cycles: \n\t 1169 hot\n\t 1237 main\n\n"
                               "hot 3890 cycles: \n\t 1169 hot\n\t 1237 main\n\n",
                               NULL, &p, &err),
                     0);
    assert_int_equal(p.events.data[0].samples, 2);
    assert_int_equal(p.cells.len, 1);
    profile_release(&p);
    assert_int_equal(read_text(SCRIPT "this is no heading\n", NULL, &p, &err), FAULT_INPUT);
    profile_release(&p);
}

static void test_foreign(void **state)
{
    (void)state;
    struct profile p;
    struct error err = {0};
    const char *texts[] = {"hello, world\n", "",
                           "\n\n\n",         "int main(void) { return 0; }\n",
                           "{\"a\": 1}\n",   "12 13 14\n\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(read_text(texts[i], NULL, &p, &err), FAULT_INPUT);
        assert_int_equal(p.cells.len, 0);
        profile_release(&p);
    }
}

/* Every kind of code has its name in the whole JSON, and spans are in it. */
static void test_whole_json(void **state)
{
    (void)state;
    struct profile p;
    struct text out = TEXT_INIT;
    profile_init(&p);
    uint32_t process = profile_process_add(&p, 1, PROFILE_NONE, 0);
    uint32_t thread = profile_thread_add(&p, process, 1, "main", 0);
    for (int kind = 0; kind < CODE_KINDS; kind++) {
        uint32_t module = profile_module_add(&p, (enum code_kind)kind, "x", NULL, 0);
        uint32_t f = profile_function_add(&p, "work", "", "", 0, module);
        *vector_push(&p.spans) = (struct profile_span){
            .time = 5, .end = 9, .thread = thread, .frame = profile_frame_named(&p, module, f, 0)};
    }
    sample_write(format_find("json"), &p, NULL, &out);
    assert_non_null(strstr(out.data, "\"kind\":\"elf\""));
    assert_non_null(strstr(out.data, "\"kind\":\"span\""));
    assert_non_null(strstr(out.data, "\"spans\":[{\"time\":5,\"end\":9,\"thread\":0,"));
    text_release(&out);
    profile_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_json),
        cmocka_unit_test(test_folded_written),
        cmocka_unit_test(test_folded_round_trip),
        cmocka_unit_test(test_folded_lines),
        cmocka_unit_test(test_script),
        cmocka_unit_test(test_script_variants),
        cmocka_unit_test(test_foreign),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
