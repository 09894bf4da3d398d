/* The heap's views against a profile of known truth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/curves.h"
#include "analyze/heap.h"
#include "analyze/peaks.h"
#include "heap_profile.h"

static struct heap_profile heap;
static struct selection all;
static struct report r;
static struct view v;

static int set_up(void **state)
{
    (void)state;
    struct error err = {0};
    heap_profile_init(&heap);
    heap_skip_allocators(&heap.p);
    if (selection_init(&all, &heap.p, NULL, &err))
        return -1;
    r = (struct report){.selection = &all, .file = "a.sonde", .top = 8};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    view_release(&v);
    selection_release(&all);
    profile_release(&heap.p);
    return 0;
}

static uint64_t fact(const char *section, const char *id)
{
    const struct view_section *s = view_find(&v, section);
    assert_non_null(s);
    for (size_t i = 0; i < s->facts.len; i++)
        if (!strcmp(s->facts.data[i].as.id, id))
            return s->facts.data[i].value.number;
    fail_msg("no fact %s in %s", id, section);
    return 0;
}

static size_t row_of(const char *section, const char *column, const char *text)
{
    const struct view_section *s = view_find(&v, section);
    assert_non_null(s);
    for (size_t i = 0; i < s->rows.len; i++) {
        const struct view_value *value = view_cell(s, i, column);
        if (value->known && !strcmp(value->text, text))
            return i;
    }
    fail_msg("no %s \"%s\" in %s", column, text, section);
    return 0;
}

static uint64_t cell(const char *section, size_t row, const char *column)
{
    const struct view_value *value = view_cell(view_find(&v, section), row, column);
    assert_true(value->known);
    return value->number;
}

static void test_screen(void **state)
{
    (void)state;
    report_heap(&v, &r);
    assert_int_equal(fact("heap", "peak"), 32624);
    assert_int_equal(fact("heap", "peak_time"), 410 * HEAP_MS);
    assert_int_equal(fact("heap", "peaks_sum"), 5524 + 30000);
    assert_int_equal(fact("heap", "allocated"), 5000 + 900 + 1024 + 40000);
    assert_int_equal(fact("heap", "allocations"), 64);
    assert_int_equal(fact("heap", "live"), 11624);
    assert_int_equal(fact("heap", "live_blocks"), 8);
    size_t shell = row_of("heaps", "process", "4200 ./shell \033[1m-x");
    assert_int_equal(cell("heaps", shell, "peak"), 5524);
    assert_int_equal(cell("heaps", shell, "peak_time"), 100 * HEAP_MS);
    assert_int_equal(cell("heaps", shell, "live"), 1624);
    assert_int_equal(cell("heaps", shell, "allocations"), 60);
    assert_int_equal(cell("heaps", shell, "temporary_count"), 10);
    assert_int_equal(shell, 1);
    assert_int_equal(fact("profiler", "allocations_generated"), 66);
    assert_int_equal(fact("profiler", "allocations_recorded"), 64);
    assert_int_equal(fact("profiler", "allocations_lost"), 2);
    assert_int_equal(fact("profiler", "generated"), 2);
    assert_int_equal(fact("profiler", "lost"), 0);
}

static void test_functions_are_those_that_asked(void **state)
{
    (void)state;
    report_heap(&v, &r);
    assert_int_equal(cell("functions", row_of("functions", "name", "serve"), "self"), 30000);
    assert_int_equal(cell("functions", row_of("functions", "name", "load(int)"), "self"), 1000);
    assert_int_equal(cell("functions", row_of("functions", "name", "keep"), "self"), 600);
    const struct view_section *s = view_find(&v, "functions");
    for (size_t i = 0; i < s->rows.len; i++) {
        assert_null(strstr(view_cell(s, i, "name")->text, "malloc"));
        assert_null(strstr(view_cell(s, i, "name")->text, "allocator"));
    }
}

static void test_one_process_has_its_own_peak(void **state)
{
    (void)state;
    struct error err = {0};
    selection_release(&all);
    const int32_t pid = 4200;
    assert_int_equal(selection_init(&all, &heap.p,
                                    &(struct selection_options){.pids = &pid, .pid_count = 1},
                                    &err),
                     0);
    report_heap(&v, &r);
    assert_int_equal(fact("heap", "peak"), 5524);
    assert_int_equal(cell("functions", row_of("functions", "name", "load(int)"), "self"), 4000);
    assert_string_equal(heap_peak_event(&all), "heap:peak");
}

static void test_leaks(void **state)
{
    (void)state;
    struct suppressions quiet;
    suppressions_init(&quiet);
    assert_int_equal(report_leaks(&v, &r, &quiet), 600); /* not the killed one's, not stdio's */
    assert_int_equal(fact("leaks", "blocks"), 6);
    assert_int_equal(fact("leaks", "suppressed"), 1024);
    assert_int_equal(fact("leaks", "held"), 10000);
    assert_int_equal(row_of("stacks", "stack", "keep ← main"), 0);
    assert_int_equal(view_find(&v, "stacks")->rows.len, 1);
    suppressions_release(&quiet);
}

static uint64_t leaked_with(const char *text)
{
    struct suppressions quiet;
    view_release(&v);
    suppressions_init(&quiet);
    suppressions_add(&quiet, text);
    uint64_t leaked = report_leaks(&v, &r, &quiet);
    suppressions_release(&quiet);
    return leaked;
}

static void test_suppressions(void **state)
{
    (void)state;
    assert_int_equal(leaked_with("# keep\n\n  \n"), 600);
    assert_int_equal(leaked_with("ke*\n"), 0);
    assert_int_equal(leaked_with("  keep \r\n"), 0);
    assert_int_equal(leaked_with("load\nserve"), 600);
    assert_int_equal(leaked_with("main"), 0);  /* a function anywhere on the stack */
    assert_int_equal(leaked_with("shell"), 0); /* the module that asked */
    assert_int_equal(leaked_with("libc.so*"), 600);
}

static void test_overview_tells_of_the_heap(void **state)
{
    (void)state;
    struct tree tree;
    tree_init(&tree, &all, &(struct tree_options){.by_module = true});
    tree_sort(&tree, TREE_BY_TOTAL);
    r.tree = &tree;
    report_overview(&v, &r);
    assert_int_equal(fact("totals", "heap_peak"), 32624);
    const struct view_section *next = view_find(&v, "next");
    bool found = false;
    for (size_t i = 0; i < next->commands.len; i++)
        found |= !strcmp(next->commands.data[i].line, "sonde report a.sonde --heap");
    assert_true(found);
    assert_false(heap_alone(&heap.p));
    tree_release(&tree);
}

/* Values without a count are something. */
static void test_peak_event_in_ordinary_tables(void **state)
{
    (void)state;
    struct error err = {0};
    struct tree tree;
    const char *event = "heap:peak";
    selection_release(&all);
    assert_int_equal(selection_init(&all, &heap.p,
                                    &(struct selection_options){.events = &event, .event_count = 1},
                                    &err),
                     0);
    assert_false(selection_empty(&all));
    assert_int_equal(all.value, 35524);
    assert_string_equal(selection_noun(&all), "blocks");
    tree_init(&tree, &all, &(struct tree_options){.by_module = true});
    tree_sort(&tree, TREE_BY_TOTAL);
    r.tree = &tree;
    report_functions(&v, &r);
    assert_int_equal(cell("functions", row_of("functions", "name", "serve"), "self"), 30000);
    view_release(&v);
    assert_int_equal(report_lines(&v, &r, NULL, &err), 0);
    assert_int_equal(cell("lines", row_of("lines", "place", "app.cc:44"), "self"), 500);
    view_release(&v);
    report_overview(&v, &r);
    for (size_t i = 0; i < view_find(&v, "notes")->notes.len; i++)
        assert_null(strstr(view_find(&v, "notes")->notes.data[i].text, "nothing"));
    tree_release(&tree);
}

/* The ticks add up to 3000, 15000, 3624, 3624, 22624, 22624, 11624; 32624 at 410 ms; then the ends.
 */
static void test_curve_of_all(void **state)
{
    (void)state;
    struct curve total;
    struct peaks peaks;
    curve_total(&total, &all);
    assert_int_equal(total.highest, 32624);
    assert_int_equal(total.highest_time, 410 * HEAP_MS);
    assert_int_equal(curve_at(&total, 120 * HEAP_MS), 15000);
    assert_int_equal(curve_at(&total, 299 * HEAP_MS), 22624);
    assert_int_equal(curve_at(&total, 420 * HEAP_MS), 32624);
    assert_int_equal(curve_at(&total, 500 * HEAP_MS), 11624);
    assert_int_equal(curve_at(&total, 850 * HEAP_MS), 1624);
    assert_int_equal(curve_at(&total, 950 * HEAP_MS), 0);
    peaks_init(&peaks, &total, &(struct peaks_options){0});
    assert_int_equal(peaks.all.len, 3);
    assert_int_equal(peaks.all.data[0].value, 15000);
    assert_int_equal(peaks.all.data[1].value, 22624);
    assert_int_equal(peaks.all.data[1].rise, 22624 - 3624);
    assert_int_equal(peaks.all.data[2].value, 32624);
    peaks_release(&peaks);
    peaks_init(&peaks, &total, &(struct peaks_options){.size = 16000});
    assert_int_equal(peaks.all.len, 2);
    peaks_release(&peaks);
    peaks_init(&peaks, &total, &(struct peaks_options){.delta = 11200});
    assert_int_equal(peaks.all.len, 2);
    assert_int_equal(peaks.all.data[0].value, 15000);
    peaks_release(&peaks);
    peaks_init(&peaks, &total, &(struct peaks_options){.gap = 155 * HEAP_MS});
    assert_int_equal(peaks.all.len, 2);
    assert_int_equal(peaks.all.data[0].value, 22624);
    peaks_release(&peaks);
    curve_release(&total);
    report_peaks(&v, &r, &(struct peaks_options){0});
    assert_int_equal(cell("peaks", 0, "largest"), 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_screen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_functions_are_those_that_asked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_process_has_its_own_peak, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_leaks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_suppressions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_overview_tells_of_the_heap, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_peak_event_in_ordinary_tables, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_curve_of_all, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
