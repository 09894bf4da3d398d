/*
 * The SVG of a small profile against a golden file (style and script left out: they
 * are files of their own), and what both writers do when the reader goes away. With
 * SONDE_GOLDEN=write in the environment the golden files are written anew.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "render/flame.h"
#include "sample_profile.h"

struct drawn {
    struct sample_profile sample;
    struct selection selection;
    struct tree tree;
    struct flame flame;
    struct flame_picture picture;
};

static void sample_at(struct sample_profile *s, uint64_t ms, uint32_t event, uint32_t thread,
                      uint32_t stack, uint64_t value)
{
    struct profile_sample sample = {.time = s->p.start + ms * MS,
                                    .value = value,
                                    .event = event,
                                    .thread = thread,
                                    .stack = stack};
    samples_add(&s->p.samples, &sample);
}

static void draw(struct drawn *d, enum flame_kind kind, double min)
{
    struct error err = {0};
    sample_profile_init(&d->sample);
    struct profile *p = &d->sample.p;
    p->start = 1000 * MS;
    p->end = 1040 * MS;
    p->complete = true;
    profile_meta_set(p, "command", "app --fast <&>");
    for (uint64_t i = 1; i <= 3; i++)
        sample_at(&d->sample, i, d->sample.cpu, d->sample.thread_main, d->sample.leaf, MS);
    sample_at(&d->sample, 4, d->sample.cpu, d->sample.thread_main, d->sample.main_work, MS);
    for (uint64_t i = 10; i <= 13; i++)
        sample_at(&d->sample, i, d->sample.cpu, d->sample.thread_worker, d->sample.nameless, MS);
    sample_at(&d->sample, 20, d->sample.cpu, d->sample.thread_main, d->sample.main_work, MS);
    assert_int_equal(selection_init(&d->selection, p, NULL, &err), 0);
    tree_init(&d->tree, &d->selection, &(struct tree_options){.by_module = true});
    tree_sort(&d->tree, TREE_BY_TOTAL);
    if (kind == FLAME_CHART)
        assert_int_equal(flame_from_samples(&d->flame, &d->tree, &d->selection, min, NULL), 0);
    else
        flame_from_tree(&d->flame, &d->tree, min);
    d->picture = (struct flame_picture){.flame = &d->flame,
                                        .selection = &d->selection,
                                        .kind = kind,
                                        .width = 800,
                                        .min_percent = min};
}

static void drop(struct drawn *d)
{
    flame_release(&d->flame);
    tree_release(&d->tree);
    selection_release(&d->selection);
    profile_release(&d->sample.p);
}

static int gather(void *context, const char *data, size_t len)
{
    text_add_len(context, data, len);
    return 0;
}

/* Takes the inside of an element out. */
static void blank(struct text *t, const char *open, const char *close)
{
    char *from = strstr(t->data, open), *to = from ? strstr(from, close) : NULL;
    assert_non_null(to);
    from += strlen(open);
    memmove(from, to, strlen(to) + 1);
    t->len -= (size_t)(to - from);
}

static void compare(const char *name, const struct text *drawn)
{
    char path[512], *golden;
    size_t len;
    struct error err = {0};
    snprintf(path, sizeof path, "%s/%s", GOLDEN, name);
    if (getenv("SONDE_GOLDEN")) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        assert_true(fd >= 0);
        assert_int_equal(io_write(fd, drawn->data, drawn->len), 0);
        close(fd);
    }
    assert_int_equal(io_slurp(path, 1 << 20, &golden, &len, &err), 0);
    assert_string_equal(drawn->data, golden);
    free(golden);
}

static void golden_svg(const char *name, enum flame_kind kind, double min)
{
    struct drawn d;
    struct text out = TEXT_INIT;
    draw(&d, kind, min);
    assert_int_equal(flame_svg(&d.picture, gather, &out), 0);
    blank(&out, "<style><![CDATA[", "]]></style>");
    blank(&out, "<script><![CDATA[", "]]></script>");
    compare(name, &out);
    text_release(&out);
    drop(&d);
}

static void test_flame_svg(void **state)
{
    (void)state;
    golden_svg("flame.svg", FLAME_GRAPH, 0);
}

static void test_icicle_svg(void **state)
{
    (void)state;
    golden_svg("icicle.svg", FLAME_ICICLE, 15);
}

static void test_chart_svg(void **state)
{
    (void)state;
    golden_svg("chart.svg", FLAME_CHART, 0);
}

/* Boxes stand on each other: a child lies within its parent, siblings do not overlap. */
static void test_boxes(void **state)
{
    (void)state;
    for (int kind = FLAME_GRAPH; kind <= FLAME_CHART; kind++) {
        struct drawn d;
        const struct flame_box *under[16] = {0};
        uint64_t after[16] = {0}, self = 0;
        draw(&d, (enum flame_kind)kind, 0);
        for (size_t i = 0; i < d.flame.boxes.len; i++) {
            const struct flame_box *box = &d.flame.boxes.data[i];
            assert_true(box->depth < 15);
            if (box->depth) {
                const struct flame_box *parent = under[box->depth - 1];
                assert_true(box->start >= parent->start);
                assert_true(box->start + box->width <= parent->start + parent->width);
                assert_true(box->start >= after[box->depth]);
            }
            under[box->depth] = box;
            after[box->depth] = box->start + box->width;
            after[box->depth + 1] = 0;
            self += box->self;
        }
        assert_int_equal(self, kind == FLAME_CHART ? 9 * MS : 10 * MS);
        drop(&d);
    }
}

/* main, work and its callees from 0 to 4 ms, a gap, and work again from 19 to 20 ms. */
static void test_chart_merges(void **state)
{
    (void)state;
    struct drawn d;
    struct text out = TEXT_INIT;
    draw(&d, FLAME_CHART, 0);
    for (size_t i = 0; i < d.flame.boxes.len; i++) {
        const struct flame_box *b = &d.flame.boxes.data[i];
        text_format(&out, "%u %s %llu+%llu %llu\n", b->depth, d.tree.symbols.data[b->symbol].name,
                    (unsigned long long)(b->start / MS), (unsigned long long)(b->width / MS),
                    (unsigned long long)b->total_count);
    }
    assert_string_equal(out.data, "0 app (42) › main (42) 0+20 5\n"
                                  "1 main 0+4 4\n"
                                  "2 work 0+4 4\n"
                                  "3 work 0+3 3\n"
                                  "4 leaf 0+3 3\n"
                                  "5 tiny 0+3 3\n"
                                  "1 main 19+1 1\n"
                                  "2 work 19+1 1\n"
                                  "0 app (42) › worker-1 (43) 0+20 4\n"
                                  "1 start(void*) 9+4 4\n"
                                  "2 work 9+4 4\n"
                                  "3 [libx.so] 9+4 4\n");
    text_release(&out);
    drop(&d);
}

/* Work until 2.4 ms, a lock until 12.4 ms, work until 13 ms: the first box of `main` in us. */
static void draw_wait(const char *event, uint64_t *start, uint64_t *width)
{
    struct sample_profile s;
    struct selection selection;
    struct tree tree;
    struct flame flame;
    struct error err = {0};
    sample_profile_init(&s);
    s.p.start = 1000 * MS;
    s.p.end = 1040 * MS;
    sample_at(&s, 1, s.cpu, s.thread_main, s.main_work, MS);
    sample_at(&s, 2, s.cpu, s.thread_main, s.main_work, MS);
    struct profile_sample wait = {.time = s.p.start + 2400000,
                                  .value = 10 * MS,
                                  .event = s.lock,
                                  .thread = s.thread_main,
                                  .stack = s.main_work};
    samples_add(&s.p.samples, &wait);
    sample_at(&s, 13, s.cpu, s.thread_main, s.main_work, MS);
    struct selection_options only = {.events = &event, .event_count = 1};
    assert_int_equal(selection_init(&selection, &s.p, &only, &err), 0);
    tree_init(&tree, &selection, &(struct tree_options){.by_module = true});
    assert_int_equal(flame_from_samples(&flame, &tree, &selection, 0, NULL), 0);
    assert_string_equal(tree.symbols.data[flame.boxes.data[1].symbol].name, "main");
    *start = flame.boxes.data[1].start / 1000;
    *width = flame.boxes.data[1].width / 1000;
    flame_release(&flame);
    tree_release(&tree);
    selection_release(&selection);
    profile_release(&s.p);
}

/* A wait is drawn from when it began, and the thread ran on until then. */
static void test_chart_waits(void **state)
{
    (void)state;
    uint64_t start, width;
    draw_wait("off-cpu:lock", &start, &width);
    assert_int_equal(start, 2400);
    assert_int_equal(width, 10000);
    draw_wait("wall", &start, &width);
    assert_int_equal(start, 0);
    assert_int_equal(width, 13000);
}

static void test_pruned(void **state)
{
    (void)state;
    struct drawn d;
    draw(&d, FLAME_GRAPH, 35);
    /* main > work (50 %) and start > work > libx (40 %) stay; work > leaf > tiny and no stack go.
     */
    assert_int_equal(d.flame.boxes.len, 6);
    assert_int_equal(d.flame.pruned, 4);
    drop(&d);
    /* Of 20 ms, main and work at the end are 5 %; their time still counts for the lane. */
    draw(&d, FLAME_CHART, 15);
    assert_int_equal(d.flame.boxes.len, 10);
    assert_int_equal(d.flame.pruned, 2);
    assert_int_equal(d.flame.boxes.data[0].total, 5 * MS);
    drop(&d);
}

static void test_html(void **state)
{
    (void)state;
    struct drawn d;
    struct text out = TEXT_INIT;
    draw(&d, FLAME_GRAPH, 35);
    assert_int_equal(flame_html(&d.picture, gather, &out), 0);
    assert_non_null(strstr(out.data, "<title>app --fast &lt;&amp;&gt;</title>"));
    assert_non_null(strstr(out.data, "\"title\":\"app --fast \\u003c\\u0026\\u003e\""));
    assert_non_null(strstr(out.data, "\"scale\":2000000"));
    assert_non_null(strstr(out.data, "\"depth\":[0,1,2,1,2,3]"));
    assert_non_null(strstr(out.data, "\"self\":[0,0,1,0,0,2]"));
    /* 1 ms without a stack under the root, 3 ms of leaf under work. */
    assert_non_null(strstr(out.data, "\"rest\":[0,1000000,1,2,3000000,3]"));
    text_release(&out);
    drop(&d);
}

static int refuse(void *context, const char *data, size_t len)
{
    (void)data;
    (void)len;
    return ++*(int *)context > 1 ? -7 : 0;
}

static void test_refused(void **state)
{
    (void)state;
    struct drawn d;
    int calls = 1;
    draw(&d, FLAME_GRAPH, 0);
    assert_int_equal(flame_svg(&d.picture, refuse, &calls), -7);
    calls = 0;
    assert_int_equal(flame_html(&d.picture, refuse, &calls), -7);
    drop(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flame_svg),    cmocka_unit_test(test_icicle_svg),
        cmocka_unit_test(test_chart_svg),    cmocka_unit_test(test_boxes),
        cmocka_unit_test(test_chart_merges), cmocka_unit_test(test_chart_waits),
        cmocka_unit_test(test_pruned),       cmocka_unit_test(test_html),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
