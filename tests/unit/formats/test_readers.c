/* Readers of other tools' files: small inputs whose sums are known, what our writers wrote, and
 * what is malformed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"

static int read_text(const char *text, struct profile *p, struct error *err)
{
    struct import_options keep = {.keep_samples = true};
    profile_init(p);
    return sample_read(text, strlen(text), &keep, p, err);
}

/* The value of a stack, "a;b", of one event; 0 if it is not there. */
static uint64_t value_of(const struct profile *p, const char *event, const char *path)
{
    uint64_t sum = 0;
    struct text at = TEXT_INIT, all = TEXT_INIT;
    for (size_t i = 0; i < p->cells.len; i++) {
        const struct profile_cell *c = &p->cells.data[i];
        text_clear(&all);
        for (uint32_t s = c->stack; s; s = p->stacks.data[s].parent) {
            const struct profile_frame *f = &p->frames.data[p->stacks.data[s].frame];
            const struct profile_location *l = &p->locations.data[f->first_location];
            text_clear(&at);
            text_format(&at, "%s%s%s",
                        f->location_count ? profile_text(p, p->functions.data[l->function].name)
                                          : "?",
                        all.len ? ";" : "", all.len ? all.data : "");
            text_clear(&all);
            text_add(&all, at.data);
        }
        if (!strcmp(profile_text(p, p->events.data[c->event].name), event) &&
            !strcmp(all.data, path))
            sum += c->value;
    }
    text_release(&at);
    text_release(&all);
    return sum;
}

static void test_speedscope(void **state)
{
    (void)state;
    struct profile p;
    struct error err = {0};
    assert_int_equal(
        read_text("{\"profiles\":[{\"type\":\"evented\",\"name\":\"t\",\"unit\":\"milliseconds\","
                  "\"startValue\":0,\"endValue\":14,\"events\":[{\"type\":\"O\",\"frame\":0,"
                  "\"at\":0},{\"type\":\"O\",\"frame\":1,\"at\":2},{\"type\":\"C\",\"frame\":1,"
                  "\"at\":6.5},{\"type\":\"C\",\"frame\":0,\"at\":14}]},{\"type\":\"sampled\","
                  "\"name\":\"u\",\"unit\":\"milliseconds\",\"startValue\":0,\"endValue\":3,"
                  "\"samples\":[[0,1],[1]],\"weights\":[1,2]}],\"shared\":{\"frames\":["
                  "{\"name\":\"a\"},{\"name\":\"b\\u00e9\",\"file\":\"x.c\",\"line\":3}]},"
                  "\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"}",
                  &p, &err),
        0);
    assert_int_equal(value_of(&p, "cpu", "a"), 9500000);
    assert_int_equal(value_of(&p, "cpu", "a;bé"), 4500000 + 1000000);
    assert_int_equal(value_of(&p, "cpu", "bé"), 2000000);
    assert_int_equal(p.threads.len, 2);
    profile_release(&p);
}

static void test_chrome_trace(void **state)
{
    (void)state;
    struct profile p;
    struct error err = {0};
    /* f from 10 to 30 with g from 12.5 to 20, written out of order; h on another thread. */
    assert_int_equal(
        read_text("[{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":30},"
                  "{\"ph\":\"B\",\"name\":\"f\",\"pid\":1,\"tid\":1,\"ts\":10},"
                  "{\"ph\":\"X\",\"name\":\"g\",\"pid\":1,\"tid\":1,\"ts\":12.5,\"dur\":7.5},"
                  "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":1,"
                  "\"args\":{\"name\":\"main\"}},"
                  "{\"ph\":\"X\",\"name\":\"h\",\"pid\":1,\"tid\":2,\"ts\":5,\"dur\":3}]",
                  &p, &err),
        0);
    assert_int_equal(value_of(&p, "wall", "f"), 12500);
    assert_int_equal(value_of(&p, "wall", "f;g"), 7500);
    assert_int_equal(value_of(&p, "wall", "h"), 3000);
    assert_int_equal(p.samples.len, 4); /* f, g, f again, h: a timeline */
    profile_release(&p);
}

static void test_cpuprofile(void **state)
{
    (void)state;
    struct profile p;
    struct error err = {0};
    assert_int_equal(
        read_text("{\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"(root)\",\"url\":\"\","
                  "\"lineNumber\":-1},\"children\":[2,4]},{\"id\":2,\"callFrame\":"
                  "{\"functionName\":\"f\",\"url\":\"file:///x.js\",\"lineNumber\":4},"
                  "\"children\":[3]},{\"id\":3,\"callFrame\":{\"functionName\":\"g\",\"url\":"
                  "\"file:///x.js\",\"lineNumber\":9}},{\"id\":4,\"callFrame\":{\"functionName\":"
                  "\"(idle)\",\"url\":\"\",\"lineNumber\":-1}}],\"startTime\":1000,"
                  "\"endTime\":1100,\"samples\":[2,3,4,2],\"timeDeltas\":[10,20,30,15]}",
                  &p, &err),
        0);
    assert_int_equal(value_of(&p, "cpu", "f"), 20000 + 25000);
    assert_int_equal(value_of(&p, "cpu", "f;g"), 30000);
    assert_int_equal(value_of(&p, "off-cpu:other", "(idle)"), 15000);
    profile_release(&p);
}

static void test_callgrind(void **state)
{
    (void)state;
    struct profile p;
    struct error err = {0};
    /* leaf is called by a (cost 300) and b (cost 100) and has 400 of its own on two lines. */
    assert_int_equal(read_text("# callgrind format\nevents: Ir Dr\nfl=(1) x.c\nfn=(1) main\n10 5\n"
                               "cfn=(2) a\ncalls=1 20\n11 310\ncfn=(3) b\ncalls=1 30\n+1 110\n"
                               "fn=(2)\n20 10 1\ncfn=(4) leaf\ncalls=3 40\n21 300\nfn=(3)\n30 10\n"
                               "cfn=(4)\ncalls=1 40\n31 100\nfn=(4)\n40 150 7\n41 250\n",
                               &p, &err),
                     0);
    assert_int_equal(value_of(&p, "Ir", "main"), 5);
    assert_int_equal(value_of(&p, "Ir", "main;a"), 10);
    assert_int_equal(value_of(&p, "Ir", "main;a;leaf"), 300);
    assert_int_equal(value_of(&p, "Ir", "main;b;leaf"), 100);
    assert_int_equal(value_of(&p, "Dr", "a"), 1); /* its callers cost no Dr that is known */
    profile_release(&p);
}

/* As V8 wrote it until 2016: nodes in nodes, the id last, times of samples on a clock of its own.
 */
static void test_old_cpuprofile(void **state)
{
    (void)state;
    struct profile p;
    struct error err = {0};
    static const char file[] =
        "{\"head\":{\"functionName\":\"(root)\",\"url\":\"\",\"lineNumber\":0,\"hitCount\":0,"
        "\"children\":[{\"functionName\":\"main\",\"url\":\"/"
        "a.js\",\"lineNumber\":3,\"hitCount\":1,"
        "\"children\":[{\"functionName\":\"work\",\"url\":\"/a.js\",\"lineNumber\":9,"
        "\"hitCount\":2,\"children\":[],\"id\":3}],\"id\":2},{\"functionName\":\"(idle)\","
        "\"hitCount\":1,\"children\":[],\"id\":4}],\"id\":1},\"startTime\":5,\"endTime\":5.004,"
        "\"samples\":[2,3,3,4]%s}";
    static const char *const times[] = {"", ",\"timestamps\":[700,1700,2700,3700]"};
    for (int i = 0; i < 2; i++) {
        char text[sizeof file + 64];
        snprintf(text, sizeof text, file, times[i]);
        assert_int_equal(read_text(text, &p, &err), 0);
        assert_int_equal(value_of(&p, "cpu", "main"), 1000000);
        assert_int_equal(value_of(&p, "cpu", "main;work"), 2000000);
        assert_int_equal(p.events.data[profile_event_find(&p, "off-cpu:other")].value, 1000000);
        assert_int_equal(p.samples.len, 4);
        profile_release(&p);
    }
    /* Without samples the hits are left. */
    char text[sizeof file + 64];
    snprintf(text, sizeof text, file, "");
    char *samples = strstr(text, "\"samples\":[2,3,3,4]");
    memcpy(samples, "\"nothing\"", 9);
    assert_int_equal(read_text(text, &p, &err), 0);
    assert_int_equal(value_of(&p, "cpu", "main;work"), 2000000);
    profile_release(&p);
}

/* A trace of ours: counted by what its spans say, also where times cannot tell them apart. */
static void test_own_trace(void **state)
{
    (void)state;
    struct profile p;
    struct error err = {0};
#define SPAN(name, arguments)                                                                      \
    "{\"ph\":\"X\",\"name\":\"" name                                                               \
    "\",\"pid\":1,\"tid\":1,\"ts\":5,\"dur\":0,\"args\":{" arguments "}}"
    static const char head[] =
        "{\"otherData\":{\"exporter\":\"sonde\",\"event\":\"page-faults\",\"unit\":0,\"period\":1},"
        "\"traceEvents\":[";
    static const char spans[] =
        SPAN("b", "\"order\":2,\"depth\":1,\"samples\":3,\"value\":7") "," SPAN(
            "c",
            "\"order\":3,"
            "\"depth\":1,"
            "\"samples\":"
            "1,\"value\":"
            "1") "," SPAN("d",
                          "\"order\":4,\"depth\":2,\"samples\":2,\"value\":2") "," SPAN("a",
                                                                                        "\"order\":"
                                                                                        "1,"
                                                                                        "\"depth\":"
                                                                                        "0") "]}";
    static const char deep[] = SPAN("a", "\"order\":1,\"depth\":1") "]}";
#undef SPAN
    struct text t = TEXT_INIT;
    text_format(&t, "%s%s", head, spans);
    assert_int_equal(read_text(t.data, &p, &err), 0);
    assert_int_equal(value_of(&p, "page-faults", "a;b"), 7);
    assert_int_equal(value_of(&p, "page-faults", "a;c"), 1);
    assert_int_equal(value_of(&p, "page-faults", "a;c;d"), 2);
    assert_int_equal(p.events.data[profile_event_find(&p, "page-faults")].samples, 6);
    profile_release(&p);
    text_clear(&t);
    text_format(&t, "%s%s", head, deep);
    assert_int_equal(read_text(t.data, &p, &err), FAULT_INPUT);
    assert_non_null(strstr(err.text, "deeper"));
    profile_release(&p);
    text_release(&t);
}

static void test_heap(void **state)
{
    (void)state;
    struct profile p;
    struct error err = {0};
    assert_int_equal(read_text("heap profile: 3: 300 [ 5: 500] @ heapprofile\n"
                               "  2: 200 [ 4: 400] @ 0x1001 0x2001\n"
                               "  1: 100 [ 1: 100] @ 0x1001\n\nMAPPED_LIBRARIES:\n"
                               "00001000-00002000 r-xp 00000000 00:00 0 /nowhere/app\n",
                               &p, &err),
                     0);
    uint32_t live = profile_event_find(&p, "inuse_space"),
             all = profile_event_find(&p, "alloc_space");
    assert_int_equal(p.events.data[live].value, 300);
    assert_int_equal(p.events.data[live].samples, 3);
    assert_int_equal(p.events.data[all].value, 500);
    profile_release(&p);
    /* A sampled heap: 1 object of 524,288 bytes stands for 1 / (1 - e^-1). */
    assert_int_equal(read_text("heap profile: 1: 524288 [ 1: 524288] @ heap_v2/524288\n"
                               " 1: 524288 [ 1: 524288] @ 0x1001\n",
                               &p, &err),
                     0);
    assert_in_range(p.events.data[profile_event_find(&p, "inuse_space")].value, 829410, 829412);
    profile_release(&p);
}

static void test_gperftools_cpu(void **state)
{
    (void)state;
    static const uint64_t words[] = {0,      3, 0, 10000,  0, 7, 2, 0x1010,
                                     0x1021, 2, 1, 0x1010, 0, 1, 0};
    static const char maps[] = "00001000-00002000 r-xp 00000000 00:00 0 /nowhere/app\n";
    char file[sizeof words + sizeof maps];
    struct profile p;
    struct error err = {0};
    memcpy(file, words, sizeof words);
    memcpy(file + sizeof words, maps, sizeof maps);
    profile_init(&p);
    assert_int_equal(sample_read(file, sizeof file - 1, NULL, &p, &err), 0);
    assert_int_equal(p.events.data[0].samples, 9);
    assert_int_equal(p.events.data[0].value, 90000000);
    assert_string_equal(profile_module_name(&p, p.frames.data[0].module), "app");
    assert_int_equal(p.frames.data[0].address, 0x20); /* the caller, one back into its call */
    profile_release(&p);
    for (size_t cut = 41; cut < sizeof words; cut += 8) {
        profile_init(&p);
        assert_int_equal(sample_read(file, cut, NULL, &p, &err), FAULT_INPUT);
        profile_release(&p);
    }
}

/* What our writers make of a profile, read again: the same sums by function. */
static void test_round_trips(void **state)
{
    (void)state;
    static const char *const names[] = {"speedscope", "callgrind"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct profile p, back;
        struct error err = {0};
        struct text out = TEXT_INIT, again = TEXT_INIT;
        sample_fill(&p, true);
        uint32_t event = format_main_event(&p);
        struct export_options options = {.event = event, .weight = WEIGHT_VALUE};
        sample_write(format_find(names[i]), &p, &options, &out);
        profile_init(&back);
        assert_int_equal(sample_read(out.data, out.len, NULL, &back, &err), 0);
        uint32_t same = format_main_event(&back);
        assert_int_equal(back.events.data[same].value, p.events.data[event].value);
        assert_int_equal(back.events.data[same].unit, p.events.data[event].unit);
        options.event = same;
        if (!strcmp(names[i], "speedscope")) { /* keeps whole stacks: a fixed point */
            sample_write(format_find("folded"), &back, &options, &again);
            options.event = event;
            text_clear(&out);
            sample_write(format_find("folded"), &p, &options, &out);
            assert_string_equal(again.data, out.data);
        }
        profile_release(&p);
        profile_release(&back);
        text_release(&out);
        text_release(&again);
    }
}

static void test_malformed(void **state)
{
    (void)state;
    static const char *const files[] = {
        "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"profiles\":[{",
        "{\"shared\":{\"frames\":[]},\"profiles\":[{\"samples\":[[7]],\"weights\":[1]}]}",
        "{\"shared\":{\"frames\":[]},\"profiles\":[{\"samples\":[],\"weights\":[1]}]}",
        "[{\"ph\":\"X\",\"ts\":1,\"dur\":}]",
        "{\"traceEvents\":5}",
        "[{\"ph\":\"X\",\"ts\":1e999}]",
        "{\"nodes\":[{\"id\":1,\"callFrame\":{}}],\"samples\":[9],\"timeDeltas\":[1]}",
        "# callgrind format\nevents: Ir\n16 400\n",
        "# callgrind format\nevents: Ir\nfn=(3)\n",
        "# callgrind format\nevents: Ir\nfn=a\n1 2 3\n",
        "# callgrind format\nfn=a\nwhat is this\n",
        "heap profile: 1: 2 [ 3: 4] @ heapprofile\nnonsense\n",
        "heap profile: x\n",
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct profile p;
        struct error err = {0};
        assert_int_equal(read_text(files[i], &p, &err), FAULT_INPUT);
        assert_non_null(strstr(err.text, ", byte "));
        profile_release(&p);
    }
    struct text deep = TEXT_INIT;
    text_add(&deep, "{\"traceEvents\":[{\"args\":");
    text_add_repeat(&deep, '[', 100000);
    struct profile p;
    struct error err = {0};
    assert_int_equal(read_text(deep.data, &p, &err), FAULT_INPUT);
    assert_non_null(strstr(err.text, "nested"));
    profile_release(&p);
    text_release(&deep);
}

/* Whatever a file makes a reader do, there is an end to it. */
static void test_time_is_bounded(void **state)
{
    (void)state;
    static const char *const files[] = {
        "a;b 1\nb;c 2\n",
        "{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":5,\"pid\":1,\"tid\":1}]}",
        "# callgrind format\nevents: Ir\nfn=a\n1 2\n",
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct import_options options = {.deadline = 1}; /* long ago */
        struct profile p;
        struct error err = {0};
        profile_init(&p);
        assert_int_equal(sample_read(files[i], strlen(files[i]), &options, &p, &err), FAULT_LIMIT);
        assert_non_null(strstr(err.text, "test, byte "));
        profile_release(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_old_cpuprofile),
        cmocka_unit_test(test_own_trace),
        cmocka_unit_test(test_speedscope),
        cmocka_unit_test(test_chrome_trace),
        cmocka_unit_test(test_cpuprofile),
        cmocka_unit_test(test_callgrind),
        cmocka_unit_test(test_heap),
        cmocka_unit_test(test_gperftools_cpu),
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_time_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
