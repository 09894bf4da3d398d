/* The merged call tree against a profile whose truth is known, and against a large one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/tree.h"
#include "base/clock.h"
#include "sample_profile.h"

static struct sample_profile sample;

static void draw_node(const struct tree *t, uint32_t node, struct text *out)
{
    const struct tree_node *n = &t->nodes.data[node];
    text_add_repeat(out, ' ', n->depth);
    text_format(out, "%s %llu/%llu %llu/%llu%s\n", tree_symbol(t, node)->name,
                (unsigned long long)n->self / MS, (unsigned long long)n->total / MS,
                (unsigned long long)n->self_count, (unsigned long long)n->total_count,
                n->inlined ? " inlined" : "");
    for (uint32_t c = n->first_child; c != TREE_NONE; c = t->nodes.data[c].next)
        draw_node(t, c, out);
}

/* The tree as indented lines: name, self/total in ms, samples self/total. */
static void expect(const struct selection_options *so, const struct tree_options *to,
                   enum tree_order order, const char *drawing)
{
    struct selection s;
    struct tree t;
    struct error err = {0};
    struct text out = TEXT_INIT;
    assert_int_equal(selection_init(&s, &sample.p, so, &err), 0);
    tree_init(&t, &s, to);
    tree_sort(&t, order);
    draw_node(&t, 0, &out);
    assert_string_equal(out.data, drawing);
    assert_int_equal(t.nodes.data[0].total, s.value);
    assert_int_equal(t.nodes.data[0].total_count, s.count);
    text_release(&out);
    tree_release(&t);
    selection_release(&s);
}

static void test_top_down(void **state)
{
    (void)state;
    expect(NULL, NULL, TREE_BY_TOTAL,
           "all 0/10 0/10\n"
           " main 0/5 0/5\n"
           "  work 2/5 2/5\n"
           "   work 0/3 0/3\n"
           "    leaf 0/3 0/3\n"
           "     tiny 3/3 3/3 inlined\n"
           " start(void*) 0/4 0/4\n"
           "  work 0/4 0/4\n"
           "   [libx.so+0x10] 0/4 0/4\n"
           "    [libx.so+0x20] 4/4 4/4\n"
           " [no stack] 1/1 1/1\n");
}

static void test_grouped_without_inlines(void **state)
{
    (void)state;
    expect(&(struct selection_options){.no_inline = true},
           &(struct tree_options){.by_module = true}, TREE_BY_NAME,
           "all 0/10 0/10\n"
           " [no stack] 1/1 1/1\n"
           " main 0/5 0/5\n"
           "  work 2/5 2/5\n"
           "   work 0/3 0/3\n"
           "    leaf 3/3 3/3\n"
           " start(void*) 0/4 0/4\n"
           "  work 0/4 0/4\n"
           "   [libx.so] 4/4 4/4\n");
}

static void test_callers(void **state)
{
    (void)state;
    const char *function = "work";
    expect(&(struct selection_options){.function = function},
           &(struct tree_options){.callers = true, .by_module = true}, TREE_BY_TOTAL,
           "all 0/9 0/9\n"
           " [libx.so] 0/4 0/4\n"
           "  work 0/4 0/4\n"
           "   start(void*) 4/4 4/4\n"
           " tiny 0/3 0/3 inlined\n"
           "  leaf 0/3 0/3\n"
           "   work 0/3 0/3\n"
           "    work 0/3 0/3\n"
           "     main 3/3 3/3\n"
           " work 0/2 0/2\n"
           "  main 2/2 2/2\n");
}

static void test_depth(void **state)
{
    (void)state;
    expect(NULL, &(struct tree_options){.depth = 2, .by_process = true}, TREE_BY_TOTAL,
           "all 0/10 0/10\n"
           " app (42) 0/9 0/9\n"
           "  main 0/5 0/5\n"
           "   work 5/5 5/5\n"
           "  start(void*) 0/4 0/4\n"
           "   work 4/4 4/4\n"
           " tool (50) 0/1 0/1\n"
           "  [no stack] 1/1 1/1\n");
}

static void test_levels_and_waits(void **state)
{
    (void)state;
    const char *wall = "wall";
    expect(&(struct selection_options){.events = &wall, .event_count = 1, .module = "app"},
           &(struct tree_options){
               .by_process = true, .by_thread = true, .by_module = true, .waits = true},
           TREE_BY_TOTAL,
           "all 0/39 0/11\n"
           " tool (50) 0/20 0/1\n"
           "  tool (50) 0/20 0/1\n"
           "   main 0/20 0/1\n"
           "    off-cpu:io 20/20 1/1\n"
           " app (42) 0/19 0/10\n"
           "  main (42) 0/15 0/6\n"
           "   main 0/15 0/6\n"
           "    work 2/15 2/6\n"
           "     off-cpu:lock 10/10 1/1\n"
           "     work 0/3 0/3\n"
           "      leaf 0/3 0/3\n"
           "       tiny 3/3 3/3 inlined\n"
           "  worker-1 (43) 0/4 0/4\n"
           "   start(void*) 0/4 0/4\n"
           "    work 0/4 0/4\n"
           "     [libx.so] 4/4 4/4\n");
}

static void test_places(void **state)
{
    (void)state;
    struct selection s;
    struct tree t;
    struct error err = {0};
    struct text place = TEXT_INIT;
    assert_int_equal(selection_init(&s, &sample.p, NULL, &err), 0);
    tree_init(&t, &s, NULL);
    uint32_t tiny = tree_node_of(&t, sample.cpu, sample.leaf), leaf = t.nodes.data[tiny].parent;
    assert_string_equal(tree_symbol(&t, leaf)->name, "leaf");
    tree_place(&t, tiny, &place);
    tree_place(&t, leaf, &place);
    tree_place(&t, tree_node_of(&t, sample.cpu, sample.nameless), &place);
    assert_string_equal(place.data, "tiny.h:4work.c:55");
    tree_release(&t);
    selection_release(&s);
    text_release(&place);
}

/* Two call sites of one function under one caller give one node, whose line is then unknown. */
static void test_lines_merge(void **state)
{
    (void)state;
    struct profile p;
    struct selection s;
    struct tree t;
    struct error err = {0};
    struct text place = TEXT_INIT;
    profile_init(&p);
    uint32_t cpu = profile_event_add(&p, "cpu", UNIT_NANOSECONDS, 1);
    uint32_t thread = profile_thread_add(&p, profile_process_add(&p, 1, PROFILE_NONE, 0), 1, "", 0);
    uint32_t m = profile_module_add(&p, CODE_PYTHON, "a.py", NULL, 0);
    uint32_t f = profile_function_add(&p, "f", "", "a.py", 7, m);
    uint32_t a = profile_stack_add(&p, 0, profile_frame_named(&p, m, f, 8));
    uint32_t b = profile_stack_add(&p, 0, profile_frame_named(&p, m, f, 9));
    profile_count(&p, cpu, thread, a, 1, 1);
    profile_count(&p, cpu, thread, b, 1, 1);
    assert_int_equal(selection_init(&s, &p, NULL, &err), 0);
    tree_init(&t, &s, NULL);
    assert_int_equal(t.nodes.len, 2);
    tree_place(&t, 1, &place);
    assert_string_equal(place.data, "a.py:7");
    text_release(&place);
    tree_release(&t);
    selection_release(&s);
    profile_release(&p);
}

/* A million stack nodes in a tree of 2,000 functions, and one stack 100,000 deep. */
static void test_large(void **state)
{
    (void)state;
    struct profile p;
    struct selection s;
    struct tree t;
    struct error err = {0};
    profile_init(&p);
    uint32_t cpu = profile_event_add(&p, "cpu", UNIT_NANOSECONDS, 1);
    uint32_t thread = profile_thread_add(&p, profile_process_add(&p, 1, PROFILE_NONE, 0), 1, "", 0);
    uint32_t m = profile_module_add(&p, CODE_ELF, "/bin/x", NULL, 0);
    char name[32];
    for (uint32_t i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, "f%u", i);
        sample_frame(&p, m, i, name, "x.c", i);
    }
    uint64_t seed = 1, total = 0;
    for (uint32_t deep = 0; p.stacks.len < 1000000;) {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        uint32_t from = p.stacks.len < 100000 ? deep : (uint32_t)((seed >> 33) % p.stacks.len);
        deep = profile_stack_add(&p, from, (uint32_t)(seed >> 50) % 2000);
        profile_count(&p, cpu, thread, deep, 1, 1);
        total++;
    }
    assert_int_equal(selection_init(&s, &p, NULL, &err), 0);
    uint64_t start = clock_now();
    tree_init(&t, &s, NULL);
    uint64_t spent = clock_now() - start;
    print_message("1,000,000 stack nodes: %llu ms\n", (unsigned long long)(spent / 1000000));
    assert_int_equal(t.nodes.data[0].total, total);
    assert_int_equal(t.nodes.len, p.stacks.len);
    assert_true(t.depth >= 99999);
    tree_sort(&t, TREE_BY_TOTAL);
    tree_release(&t);
    selection_release(&s);
    profile_release(&p);
}

int main(void)
{
    sample_profile_init(&sample);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_top_down),    cmocka_unit_test(test_grouped_without_inlines),
        cmocka_unit_test(test_callers),     cmocka_unit_test(test_depth),
        cmocka_unit_test(test_places),      cmocka_unit_test(test_levels_and_waits),
        cmocka_unit_test(test_lines_merge), cmocka_unit_test(test_large),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    profile_release(&sample.p);
    return failed;
}
