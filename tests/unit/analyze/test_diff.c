/* Two builds of one program with known costs: what matches, what is new, what may be chance. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "analyze/diff.h"

struct build {
    const char *module;
    uint64_t address; /* of all code: builds differ in it */
    uint32_t shift;   /* lines added above every function */
    uint64_t period;
    const char *mode, *event;
};

static const struct build old = {"/a/bin/app", 0x1000, 0, 10, "run", "cpu"};
static const struct build new = {"/b/bin/app", 0x9000, 7, 10, "run", "cpu"};

struct row {
    const char *function;
    uint64_t count;
};

/* main calls each function; each has its line 3 sampled. */
static void fill(struct profile *p, const struct build *b, const struct row *rows)
{
    profile_init(p);
    profile_meta_set(p, "mode", b->mode);
    p->start = 1000;
    p->end = 1000 + 1000000000ull;
    uint32_t event = profile_event_add(p, b->event, UNIT_NANOSECONDS, b->period);
    uint32_t process = profile_process_add(p, 7, PROFILE_NONE, 0);
    uint32_t thread = profile_thread_add(p, process, 7, "app", 0);
    uint32_t module = profile_module_add(p, CODE_ELF, b->module, NULL, 0);
    uint32_t frame = profile_frame_add(p, module, b->address);
    uint32_t main = profile_function_add(p, "main", "", "/x/app.c", 100 + b->shift, module);
    profile_frame_locate(p, frame, &(struct profile_location){main, 105 + b->shift}, 1);
    uint32_t root = profile_stack_add(p, 0, frame);
    for (uint32_t i = 0; rows[i].function; i++) {
        uint32_t line = 10 * (i + 1) + b->shift;
        uint32_t f = profile_function_add(p, rows[i].function, "", "/x/app.c", line, module);
        frame = profile_frame_add(p, module, b->address + 16 * (i + 1));
        profile_frame_locate(p, frame, &(struct profile_location){f, line + 3}, 1);
        profile_count(p, event, thread, profile_stack_add(p, root, frame), rows[i].count,
                      rows[i].count * b->period);
    }
}

struct pair {
    struct profile p[2];
    struct selection chosen[2];
    struct diff d;
    struct error err;
};

static int compare(struct pair *x, const struct build *a, const struct row *before,
                   const struct build *b, const struct row *after, struct diff_options o)
{
    *x = (struct pair){0};
    fill(&x->p[0], a, before);
    fill(&x->p[1], b, after);
    for (int i = 0; i < 2; i++)
        assert_int_equal(selection_init(&x->chosen[i], &x->p[i], NULL, &x->err), 0);
    o.file[0] = "A";
    o.file[1] = "B";
    const struct selection *chosen[2] = {&x->chosen[0], &x->chosen[1]};
    return diff_init(&x->d, &x->p[0], &x->p[1], chosen, &o, &x->err);
}

static void release(struct pair *x)
{
    diff_release(&x->d);
    for (int i = 0; i < 2; i++) {
        selection_release(&x->chosen[i]);
        profile_release(&x->p[i]);
    }
}

static size_t row_of(const struct view_section *s, const char *name)
{
    for (size_t i = 0; i < s->rows.len; i++)
        if (!strcmp(view_cell(s, i, "name")->text, name))
            return i;
    fail_msg("no row %s", name);
    return 0;
}

static const struct row before[] = {{"hot", 600}, {"cold", 300}, {"old", 100}, {0}};
static const struct row after[] = {{"hot", 900}, {"cold", 60}, {"fresh", 40}, {0}};

static void test_functions_of_two_builds(void **state)
{
    (void)state;
    struct pair x;
    struct view v;
    assert_int_equal(compare(&x, &old, before, &new, after, (struct diff_options){0}), 0);
    assert_int_equal(x.d.per, DIFF_PER_RUN);
    diff_functions(&v, &x.d, 0, DIFF_BY_SELF);
    const struct view_section *s = view_find(&v, "functions");
    assert_int_equal(s->rows.len, 5);
    assert_string_equal(view_cell(s, 0, "name")->text, "hot");
    assert_int_equal(view_cell(s, 0, "self_before")->number, 6000);
    assert_int_equal(view_cell(s, 0, "self_change")->change, 3000);
    assert_false(view_cell(s, 0, "self_change")->faint);
    assert_float_equal(view_cell(s, 0, "self_relative")->percent, 50, 1e-9);
    assert_string_equal(view_cell(s, row_of(s, "old"), "state")->text, "gone");
    assert_string_equal(view_cell(s, row_of(s, "fresh"), "state")->text, "new");
    assert_false(view_cell(s, row_of(s, "fresh"), "self_relative")->known);
    assert_int_equal(view_cell(s, row_of(s, "main"), "total_change")->change, 0);
    view_release(&v);
    release(&x);
}

static void test_lines_move_with_their_function(void **state)
{
    (void)state;
    struct pair x;
    struct view v;
    assert_int_equal(compare(&x, &old, before, &new, after, (struct diff_options){0}), 0);
    diff_lines(&v, &x.d, 0, DIFF_BY_SELF);
    const struct view_section *s = view_find(&v, "lines");
    size_t hot = row_of(s, "app.c:20 hot"); /* as it stands in B */
    assert_int_equal(view_cell(s, hot, "self_before")->number, 6000);
    assert_int_equal(view_cell(s, hot, "self_after")->number, 9000);
    view_release(&v);
    release(&x);
}

static void test_stacks_and_boxes(void **state)
{
    (void)state;
    struct pair x;
    struct view v;
    struct tree t;
    struct flame f;
    assert_int_equal(compare(&x, &old, before, &new, after, (struct diff_options){0}), 0);
    diff_stacks(&v, &x.d, 2, DIFF_BY_SELF);
    const struct view_section *s = view_find(&v, "stacks");
    assert_int_equal(s->rows.len, 3);
    assert_int_equal(s->omitted, 2);
    assert_string_equal(view_cell(s, 0, "name")->text, "main;hot");
    assert_int_equal(view_cell(s, 2, "self_change")->change, -1000 + 400);
    view_release(&v);
    diff_flame(&x.d, 0, &t, &f);
    assert_true(f.compares);
    assert_int_equal(f.boxes.len, 6);
    assert_int_equal(f.boxes.data[0].before, 10000);
    assert_int_equal(f.boxes.data[0].after, 10000);
    /* As wide as the larger of the two at each place. */
    assert_int_equal(f.extent, 9000 + 3000 + 1000 + 400);
    flame_release(&f);
    tree_release(&t);
    release(&x);
}

static void test_other_totals_are_normalised(void **state)
{
    (void)state;
    static const struct row twice[] = {{"hot", 1200}, {"cold", 600}, {"old", 200}, {0}};
    struct pair x;
    struct text worst = TEXT_INIT;
    struct view v;
    assert_int_equal(compare(&x, &old, before, &new, twice, (struct diff_options){0}), 0);
    assert_int_equal(x.d.per, DIFF_PER_SHARE);
    assert_true(x.d.chosen);
    diff_functions(&v, &x.d, 0, DIFF_BY_SELF);
    const struct view_section *s = view_find(&v, "functions");
    for (size_t i = 0; i < s->rows.len; i++)
        assert_float_equal(view_cell(s, i, "self_change")->percent, 0, 1e-9);
    assert_non_null(strstr(view_find(&v, "notes")->notes.data[0].text, "totals differ"));
    assert_int_equal(diff_grown(&x.d, 0, &worst), 0);
    view_release(&v);
    release(&x);
    assert_int_equal(
        compare(&x, &old, before, &new, twice, (struct diff_options){.per = DIFF_PER_SECOND}), 0);
    diff_functions(&v, &x.d, 0, DIFF_BY_SELF);
    assert_int_equal(view_cell(view_find(&v, "functions"), 0, "self_change")->change, 6000);
    view_release(&v);
    release(&x);
    text_release(&worst);
}

static void test_refuses_what_does_not_compare(void **state)
{
    (void)state;
    static const struct build builds[] = {
        {"/b/app", 1, 0, 10, "attach", "cpu"},
        {"/b/app", 1, 0, 20, "run", "cpu"},
        {"/b/app", 1, 0, 10, "run", "off-cpu:io"},
    };
    static const char *const reasons[] = {"sonde attach", "a sample every", "off-cpu:io"};
    for (int i = 0; i < 3; i++) {
        struct pair x;
        assert_int_equal(compare(&x, &old, before, &builds[i], after, (struct diff_options){0}),
                         FAULT_INPUT);
        assert_non_null(strstr(x.err.text, reasons[i]));
        assert_non_null(strstr(x.err.text, "--anyway"));
        release(&x);
        assert_int_equal(
            compare(&x, &old, before, &builds[i], after, (struct diff_options){.anyway = true}), 0);
        assert_non_null(strstr(x.d.warnings.data, reasons[i]));
        release(&x);
    }
}

static void test_growth_beyond_chance(void **state)
{
    (void)state;
    static const struct row luck[] = {{"hot", 620}, {"cold", 290}, {"old", 90}, {0}};
    struct pair x;
    struct text worst = TEXT_INIT;
    assert_int_equal(compare(&x, &old, before, &new, luck, (struct diff_options){0}), 0);
    assert_int_equal(diff_grown(&x.d, 0, &worst), 0);
    release(&x);
    assert_int_equal(compare(&x, &old, before, &new, after, (struct diff_options){0}), 0);
    assert_int_equal(diff_grown(&x.d, 10, &worst), 1);
    assert_non_null(strstr(worst.data, "hot grew by 30.0 points"));
    assert_int_equal(diff_grown(&x.d, 29, &worst), 0); /* chance explains more than 1 */
    release(&x);
    text_release(&worst);
    /* 4 standard errors of 1/2 in 10,000 and 10,000: 4 * sqrt(2 * 0.25 / 10,000). */
    assert_float_equal(diff_noise(5000, 10000, 5000, 10000), 2.83, 0.01);
    assert_true(diff_noise(0, 100, 0, 100) > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions_of_two_builds),
        cmocka_unit_test(test_lines_move_with_their_function),
        cmocka_unit_test(test_stacks_and_boxes),
        cmocka_unit_test(test_other_totals_are_normalised),
        cmocka_unit_test(test_refuses_what_does_not_compare),
        cmocka_unit_test(test_growth_beyond_chance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
