/* The report's tables against profiles of known truth, and against counting by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/report.h"
#include "sample_profile.h"

static struct sample_profile sample;

/* A report over all of a selection; `top` and the like may be set before a view is made. */
struct desk {
    struct selection selection;
    struct tree tree;
    struct report r;
    struct view v;
};

static void desk_init(struct desk *d, const struct profile *p, const struct selection_options *o)
{
    struct error err = {0};
    *d = (struct desk){0};
    assert_int_equal(selection_init(&d->selection, p, o, &err), 0);
    tree_init(&d->tree, &d->selection, &(struct tree_options){.by_module = true});
    tree_sort(&d->tree, TREE_BY_TOTAL);
    d->r = (struct report){.selection = &d->selection, .tree = &d->tree, .file = "app.sonde"};
}

static void desk_release(struct desk *d)
{
    view_release(&d->v);
    tree_release(&d->tree);
    selection_release(&d->selection);
}

static size_t row_of(const struct view_section *s, const char *column, const char *text)
{
    for (size_t i = 0; i < s->rows.len; i++) {
        const struct view_value *v = view_cell(s, i, column);
        if (v->known && !strcmp(v->text, text))
            return i;
    }
    fail_msg("no row with %s = %s", column, text);
    return 0;
}

static void expect_cost(const struct view *v, const char *section, const char *column,
                        const char *name, uint64_t self_ms, uint64_t total_ms)
{
    const struct view_section *s = view_find(v, section);
    assert_non_null(s);
    size_t row = row_of(s, column, name);
    assert_int_equal(view_cell(s, row, "self")->number, self_ms * MS);
    assert_int_equal(view_cell(s, row, "total")->number, total_ms * MS);
}

static uint64_t sum_of(const struct view_section *s, const char *column)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < s->rows.len; i++)
        sum += view_cell(s, i, column)->number;
    return sum;
}

static void test_functions_count_once_a_sample(void **state)
{
    (void)state;
    struct desk d;
    desk_init(&d, &sample.p, NULL);
    report_functions(&d.v, &d.r);
    expect_cost(&d.v, "functions", "name", "work", 2, 9);
    expect_cost(&d.v, "functions", "name", "main", 0, 5);
    expect_cost(&d.v, "functions", "name", "start(void*)", 0, 4);
    expect_cost(&d.v, "functions", "name", "leaf", 0, 3);
    expect_cost(&d.v, "functions", "name", "tiny", 3, 3);
    expect_cost(&d.v, "functions", "name", "[libx.so]", 4, 4);
    expect_cost(&d.v, "functions", "name", "[no stack]", 1, 1);
    const struct view_section *s = view_find(&d.v, "functions");
    assert_int_equal(s->rows.len, 7);
    assert_int_equal(sum_of(s, "self"), 10 * MS);
    assert_int_equal(sum_of(s, "self_samples"), 10);
    assert_true(view_cell(s, 0, "self_percent")->percent == 40.0);
    assert_string_equal(view_cell(s, 0, "module")->text, "libx.so");
    desk_release(&d);
}

static void test_functions_without_inlining(void **state)
{
    (void)state;
    struct desk d;
    desk_init(&d, &sample.p, &(struct selection_options){.no_inline = true});
    report_functions(&d.v, &d.r);
    expect_cost(&d.v, "functions", "name", "leaf", 3, 3);
    assert_int_equal(view_find(&d.v, "functions")->rows.len, 6);
    desk_release(&d);
}

static void test_a_limit_keeps_the_sum(void **state)
{
    (void)state;
    for (uint64_t top = 1; top < 9; top++) {
        struct desk d;
        desk_init(&d, &sample.p, NULL);
        d.r.top = top;
        report_functions(&d.v, &d.r);
        const struct view_section *s = view_find(&d.v, "functions");
        assert_int_equal(sum_of(s, "self"), 10 * MS);
        assert_int_equal(s->omitted, top < 7 ? 7 - top : 0);
        assert_int_equal(s->rows.len, top < 7 ? top + 1 : 7);
        if (top < 7)
            assert_int_equal(s->rows.data[top].emphasis, VIEW_REST);
        desk_release(&d);
    }
}

static void test_orders(void **state)
{
    (void)state;
    static const struct {
        enum report_sort sort;
        const char *first[3];
    } cases[] = {
        {REPORT_BY_SELF, {"[libx.so]", "tiny", "work"}},
        {REPORT_BY_TOTAL, {"work", "main", "[libx.so]"}},
        {REPORT_BY_NAME, {"[libx.so]", "[no stack]", "leaf"}},
        {REPORT_BY_SAMPLES, {"[libx.so]", "tiny", "work"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct desk d;
        desk_init(&d, &sample.p, NULL);
        d.r.sort = cases[i].sort;
        report_functions(&d.v, &d.r);
        for (size_t k = 0; k < 3; k++)
            assert_string_equal(view_cell(view_find(&d.v, "functions"), k, "name")->text,
                                cases[i].first[k]);
        desk_release(&d);
    }
}

static void test_modules(void **state)
{
    (void)state;
    struct desk d;
    desk_init(&d, &sample.p, NULL);
    report_modules(&d.v, &d.r);
    expect_cost(&d.v, "modules", "name", "app", 5, 9);
    expect_cost(&d.v, "modules", "name", "libx.so", 4, 4);
    expect_cost(&d.v, "modules", "name", "[unknown]", 1, 1);
    desk_release(&d);
}

static void test_processes(void **state)
{
    (void)state;
    struct desk d;
    desk_init(&d, &sample.p, NULL);
    report_processes(&d.v, &d.r);
    const struct view_section *s = view_find(&d.v, "processes");
    assert_int_equal(s->rows.len, 2);
    assert_string_equal(view_cell(s, 0, "process")->text, "42 app --fast");
    assert_int_equal(view_cell(s, 0, "self")->number, 9 * MS);
    assert_int_equal(s->rows.data[0].depth, 0);
    assert_string_equal(view_cell(s, 1, "process")->text, "50 tool");
    assert_int_equal(s->rows.data[1].depth, 1);
    assert_int_equal(view_cell(s, 1, "parent_pid")->number, 42);
    assert_int_equal(sum_of(s, "self"), 10 * MS);
    desk_release(&d);
}

/* A hundred children: the dear ones stay, with their ancestors, and the sum holds. */
static void test_many_processes(void **state)
{
    (void)state;
    struct profile p;
    profile_init(&p);
    uint32_t cpu = profile_event_add(&p, "cpu", UNIT_NANOSECONDS, MS);
    for (uint32_t i = 0; i < 100; i++) {
        uint32_t parent = i ? (i == 99 ? 98 : 0) : PROFILE_NONE;
        uint32_t process = profile_process_add(&p, (int32_t)(100 + i), parent, 0);
        uint32_t thread = profile_thread_add(&p, process, (int32_t)(100 + i), "t", 0);
        profile_count(&p, cpu, thread, 0, i, i * MS);
    }
    struct desk d;
    desk_init(&d, &p, NULL);
    d.r.top = 4;
    report_processes(&d.v, &d.r);
    const struct view_section *s = view_find(&d.v, "processes");
    static const uint64_t pids[] = {100, 197, 198, 199};
    assert_int_equal(s->rows.len, 5);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(view_cell(s, i, "pid")->number, pids[i]);
    assert_int_equal(s->rows.data[3].depth, 2);
    assert_int_equal(s->omitted, 96);
    assert_int_equal(sum_of(s, "self"), d.selection.value);
    desk_release(&d);
    profile_release(&p);
}

static void test_filters_leave_out_processes(void **state)
{
    (void)state;
    struct desk d;
    const int32_t pid = 42;
    desk_init(&d, &sample.p, &(struct selection_options){.pids = &pid, .pid_count = 1});
    report_overview(&d.v, &d.r);
    const struct view_section *s = view_find(&d.v, "processes");
    assert_int_equal(s->rows.len, 1);
    assert_int_equal(sum_of(s, "self"), 9 * MS);
    const struct view_section *totals = view_find(&d.v, "totals");
    bool seen = false;
    for (size_t i = 0; i < totals->facts.len; i++) {
        const struct view_fact *f = &totals->facts.data[i];
        if (strcmp(f->as.id, "value_recorded"))
            continue;
        seen = true;
        assert_int_equal(f->value.number, 10 * MS);
        assert_false(f->hidden);
    }
    assert_true(seen);
    desk_release(&d);
}

static void test_threads(void **state)
{
    (void)state;
    struct desk d;
    sample.p.threads.data[sample.thread_worker].cpu = 5 * MS;
    desk_init(&d, &sample.p, NULL);
    report_threads(&d.v, &d.r);
    const struct view_section *s = view_find(&d.v, "threads");
    assert_int_equal(s->rows.len, 3);
    size_t worker = row_of(s, "name", "worker-1"), tool = row_of(s, "name", "tool");
    assert_int_equal(view_cell(s, worker, "self")->number, 4 * MS);
    assert_int_equal(view_cell(s, worker, "cpu_counted")->number, 5 * MS);
    assert_false(view_cell(s, tool, "cpu_counted")->known);
    assert_int_equal(sum_of(s, "self"), 10 * MS);
    sample.p.threads.data[sample.thread_worker].cpu = 0;
    desk_release(&d);
}

/* Rows as "depth name total self". */
static void expect_rows(const struct view *v, const char *section, const char *const *rows)
{
    const struct view_section *s = view_find(v, section);
    assert_non_null(s);
    struct text line = TEXT_INIT;
    size_t i = 0;
    for (; rows[i]; i++) {
        assert_true(i < s->rows.len);
        text_clear(&line);
        const struct view_value *self = view_cell(s, i, "self");
        text_format(&line, "%u %s %llu", s->rows.data[i].depth, view_cell(s, i, "name")->text,
                    (unsigned long long)(view_cell(s, i, "total")->number / MS));
        if (self->known)
            text_format(&line, " %llu", (unsigned long long)(self->number / MS));
        assert_string_equal(line.data, rows[i]);
    }
    assert_int_equal(s->rows.len, i);
    text_release(&line);
}

static void test_callers_take_the_outermost_call(void **state)
{
    (void)state;
    struct desk d;
    struct error err = {0};
    desk_init(&d, &sample.p, NULL);
    assert_int_equal(report_callers(&d.v, &d.r, "work", &err), 0);
    static const char *const rows[] = {"0 work 9 2", "1 main 5 0", "1 start(void*) 4 0", NULL};
    expect_rows(&d.v, "callers", rows);
    desk_release(&d);
}

static void test_callees(void **state)
{
    (void)state;
    struct desk d;
    struct error err = {0};
    desk_init(&d, &sample.p, NULL);
    assert_int_equal(report_callees(&d.v, &d.r, "work", &err), 0);
    static const char *const rows[] = {"0 work 9 2", "1 [libx.so] 4 4", "1 work 3 0",
                                       "2 leaf 3 0", "3 tiny 3 3",      NULL};
    expect_rows(&d.v, "callees", rows);
    desk_release(&d);
}

static void test_functions_are_found_as_people_name_them(void **state)
{
    (void)state;
    static const struct {
        const char *asked;
        uint64_t roots;
    } cases[] = {{"start", 1}, {"start(void*)", 1}, {"in", 2}, {"tiny", 1}};
    struct error err = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct desk d;
        desk_init(&d, &sample.p, NULL);
        assert_int_equal(report_callers(&d.v, &d.r, cases[i].asked, &err), 0);
        const struct view_section *s = view_find(&d.v, "callers");
        uint64_t roots = 0;
        for (size_t row = 0; row < s->rows.len; row++)
            roots += s->rows.data[row].depth == 0;
        assert_int_equal(roots, cases[i].roots);
        desk_release(&d);
    }
    struct desk d;
    desk_init(&d, &sample.p, NULL);
    assert_int_equal(report_callers(&d.v, &d.r, "absent", &err), FAULT_MISSING);
    view_release(&d.v);
    assert_int_equal(report_callees(&d.v, &d.r, "", &err), FAULT_MISSING);
    view_release(&d.v);
    assert_int_equal(report_lines(&d.v, &d.r, "absent", &err), FAULT_MISSING);
    desk_release(&d);
}

static void test_call_tree_gathers_up_small_branches(void **state)
{
    (void)state;
    struct desk d;
    desk_init(&d, &sample.p, NULL);
    d.r.min = 41;
    report_tree(&d.v, &d.r);
    static const char *const rows[] = {"0 main 5 0", "1 work 5 2", "0 … 2 below 41% 5", NULL};
    expect_rows(&d.v, "tree", rows);
    desk_release(&d);
    desk_init(&d, &sample.p, NULL);
    d.r.depth = 2;
    report_tree(&d.v, &d.r);
    static const char *const flat[] = {"0 main 5 0", "1 work 5 2",       "0 start(void*) 4 0",
                                       "1 work 4 0", "0 [no stack] 1 1", NULL};
    expect_rows(&d.v, "tree", flat);
    desk_release(&d);
}

static void test_wall_has_waits_as_leaves(void **state)
{
    (void)state;
    struct desk d;
    const char *wall = "wall";
    desk_init(&d, &sample.p, &(struct selection_options){.events = &wall, .event_count = 1});
    report_tree(&d.v, &d.r);
    const struct view_section *s = view_find(&d.v, "tree");
    assert_int_equal(view_cell(s, row_of(s, "name", "off-cpu:io"), "self")->number, 20 * MS);
    assert_string_equal(view_cell(s, row_of(s, "name", "off-cpu:io"), "kind")->text, "wait");
    assert_int_equal(sum_of(s, "self"), 40 * MS);
    desk_release(&d);
}

static void test_overview(void **state)
{
    (void)state;
    struct desk d;
    desk_init(&d, &sample.p, NULL);
    report_overview(&d.v, &d.r);
    static const char *const path[] = {"0 main 5 0", "0 work 5 2", "0 work 3 0",
                                       "0 leaf 3 0", "0 tiny 3 3", NULL};
    expect_rows(&d.v, "hottest_path", path);
    const struct view_section *w = view_find(&d.v, "waits");
    assert_int_equal(w->rows.len, 2);
    assert_string_equal(view_cell(w, 0, "cause")->text, "io");
    assert_int_equal(view_cell(w, 0, "value")->number, 20 * MS);
    assert_string_equal(view_cell(w, 1, "cause")->text, "lock");
    assert_string_equal(view_cell(w, 1, "stack")->text, "main › work");
    assert_string_equal(d.v.title, "app --fast");
    const struct view_section *next = view_find(&d.v, "next");
    assert_true(next->commands.len >= 2);
    desk_release(&d);
}

static const char *fake_source(void *context, const char *file, uint32_t line)
{
    static char text[64];
    (void)context;
    if (strcmp(file, "work.c"))
        return NULL;
    snprintf(text, sizeof text, "\tline %u", line);
    return text;
}

static void test_lines(void **state)
{
    (void)state;
    struct desk d;
    struct error err = {0};
    desk_init(&d, &sample.p, NULL);
    d.r.source = fake_source;
    assert_int_equal(report_lines(&d.v, &d.r, NULL, &err), 0);
    expect_cost(&d.v, "lines", "place", "work.c:20", 2, 9);
    expect_cost(&d.v, "lines", "place", "work.c:25", 0, 3);
    expect_cost(&d.v, "lines", "place", "work.c:55", 0, 3);
    expect_cost(&d.v, "lines", "place", "tiny.h:4", 3, 3);
    expect_cost(&d.v, "lines", "place", "app.c:10", 0, 5);
    expect_cost(&d.v, "lines", "place", "app.c:90", 0, 4);
    const struct view_section *s = view_find(&d.v, "lines");
    assert_int_equal(view_cell(s, row_of(s, "place", "no line known"), "self")->number, 5 * MS);
    assert_int_equal(sum_of(s, "self"), 10 * MS);
    assert_string_equal(view_cell(s, row_of(s, "place", "work.c:20"), "source")->text, "line 20");
    assert_false(view_cell(s, row_of(s, "place", "tiny.h:4"), "source")->known);
    desk_release(&d);
}

static void test_listing_of_a_function(void **state)
{
    (void)state;
    struct desk d;
    struct error err = {0};
    desk_init(&d, &sample.p, NULL);
    d.r.source = fake_source;
    assert_int_equal(report_lines(&d.v, &d.r, "work", &err), 0);
    const struct view_section *s = view_find(&d.v, "lines");
    assert_int_equal(view_cell(s, 0, "self")->number, 2 * MS);
    assert_int_equal(view_cell(s, 0, "total")->number, 9 * MS);
    /* Two lines before the first, all up to the last, two after. */
    assert_int_equal(s->rows.len, 1 + 10);
    for (size_t i = 1; i < s->rows.len; i++) {
        uint64_t line = view_cell(s, i, "line")->number;
        assert_int_equal(line, 17 + i);
        assert_int_equal(view_cell(s, i, "self")->known, line == 20 || line == 25);
    }
    desk_release(&d);
}

static void test_nothing_recorded(void **state)
{
    (void)state;
    struct profile p;
    profile_init(&p);
    struct desk d;
    desk_init(&d, &p, NULL);
    report_overview(&d.v, &d.r);
    const struct view_section *notes = view_find(&d.v, "notes");
    assert_int_equal(notes->notes.len, 1);
    assert_non_null(strstr(notes->notes.data[0].text, "no samples"));
    assert_int_equal(view_find(&d.v, "functions")->rows.len, 0);
    desk_release(&d);
    profile_release(&p);
}

/* Functions on a random stack, innermost first, by counting every sample by itself. */
static void count_by_hand(const struct profile *p, uint64_t *self, uint64_t *total)
{
    for (size_t i = 0; i < p->cells.len; i++) {
        const struct profile_cell *c = &p->cells.data[i];
        bool seen[64] = {false}, leaf = true;
        for (uint32_t s = c->stack; s; s = p->stacks.data[s].parent) {
            const struct profile_frame *f = &p->frames.data[p->stacks.data[s].frame];
            for (uint32_t k = 0; k < f->location_count; k++) {
                uint32_t function = p->locations.data[f->first_location + k].function;
                self[function] += leaf ? c->value : 0;
                total[function] += seen[function] ? 0 : c->value;
                seen[function] = true;
                leaf = false;
            }
        }
    }
}

static void make_random(struct profile *p)
{
    uint32_t module = profile_module_add(p, CODE_ELF, "/bin/random", NULL, 0);
    uint32_t cpu = profile_event_add(p, "cpu", UNIT_NANOSECONDS, 0);
    uint32_t thread = profile_thread_add(p, profile_process_add(p, 1, PROFILE_NONE, 0), 1, "t", 0);
    uint32_t functions[40], frames[80], stacks[3000] = {0};
    char name[32];
    for (uint32_t i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "f%u", i);
        functions[i] = profile_function_add(p, name, "", "random.c", i * 100, module);
    }
    for (uint32_t i = 0; i < 80; i++) {
        struct profile_location at[2] = {{functions[i % 40], i + 1},
                                         {functions[(uint32_t)rand() % 40], 7}};
        frames[i] = profile_frame_add(p, module, i);
        profile_frame_locate(p, frames[i], at, 1 + i % 3 / 2);
    }
    for (uint32_t i = 1; i < 3000; i++)
        stacks[i] = profile_stack_add(p, stacks[(uint32_t)rand() % i], frames[rand() % 80]);
    for (uint32_t i = 0; i < 20000; i++)
        profile_count(p, cpu, thread, stacks[1 + rand() % 2999], 1, (uint64_t)rand() % 1000);
}

static void test_against_counting_by_hand(void **state)
{
    (void)state;
    struct profile p;
    struct desk d;
    srand(7);
    profile_init(&p);
    make_random(&p);
    uint64_t *self = calloc(p.functions.len, sizeof *self);
    uint64_t *total = calloc(p.functions.len, sizeof *total);
    count_by_hand(&p, self, total);
    desk_init(&d, &p, NULL);
    report_functions(&d.v, &d.r);
    const struct view_section *s = view_find(&d.v, "functions");
    assert_int_equal(s->rows.len, 40);
    for (uint32_t i = 0; i < p.functions.len; i++) {
        size_t row = row_of(s, "name", profile_text(&p, p.functions.data[i].name));
        assert_int_equal(view_cell(s, row, "self")->number, self[i]);
        assert_int_equal(view_cell(s, row, "total")->number, total[i]);
    }
    assert_int_equal(sum_of(s, "self"), p.events.data[0].value);
    view_release(&d.v);
    struct error err = {0};
    assert_int_equal(report_lines(&d.v, &d.r, NULL, &err), 0);
    assert_int_equal(sum_of(view_find(&d.v, "lines"), "self"), p.events.data[0].value);
    for (uint32_t i = 0; i < 40; i++) {
        view_release(&d.v);
        assert_int_equal(
            report_callers(&d.v, &d.r, profile_text(&p, p.functions.data[i].name), &err), 0);
        s = view_find(&d.v, "callers");
        assert_int_equal(view_cell(s, 0, "total")->number, total[i]);
        assert_int_equal(view_cell(s, 0, "self")->number, self[i]);
    }
    free(self);
    free(total);
    desk_release(&d);
    profile_release(&p);
}

static int set_up(void **state)
{
    (void)state;
    sample_profile_init(&sample);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    profile_release(&sample.p);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions_count_once_a_sample),
        cmocka_unit_test(test_functions_without_inlining),
        cmocka_unit_test(test_a_limit_keeps_the_sum),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_modules),
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_many_processes),
        cmocka_unit_test(test_filters_leave_out_processes),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_callers_take_the_outermost_call),
        cmocka_unit_test(test_callees),
        cmocka_unit_test(test_functions_are_found_as_people_name_them),
        cmocka_unit_test(test_call_tree_gathers_up_small_branches),
        cmocka_unit_test(test_wall_has_waits_as_leaves),
        cmocka_unit_test(test_overview),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_listing_of_a_function),
        cmocka_unit_test(test_nothing_recorded),
        cmocka_unit_test(test_against_counting_by_hand),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
