/*
 * Views as people and programs get them, against golden files. With SONDE_GOLDEN=write in
 * the environment the files are written anew, to be read before they are committed.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "analyze/heap.h"
#include "analyze/report.h"
#include "base/io.h"
#include "render/curves.h"
#include "render/csv.h"
#include "render/excerpt.h"
#include "render/terminal.h"
#include "render/view_json.h"
#include "heap_profile.h"
#include "render_sample.h"

static struct profile sample;
static struct selection selection;
static struct tree tree;

static void compare(const char *name, const struct text *got)
{
    char path[4096];
    struct error err = {0};
    snprintf(path, sizeof path, "%s/%s", GOLDEN, name);
    if (getenv("SONDE_GOLDEN")) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        assert_true(fd >= 0);
        assert_int_equal(io_write(fd, got->data, got->len), 0);
        close(fd);
        return;
    }
    char *want;
    if (io_slurp(path, 1 << 20, &want, NULL, &err))
        fail_msg("%s", err.text);
    assert_string_equal(got->data, want);
    free(want);
}

/* No byte of a name may act on a terminal; only our own colours may. */
static void expect_harmless(const struct text *out, bool colour)
{
    for (const char *c = out->data; *c; c++) {
        unsigned char byte = (unsigned char)*c;
        if (byte == 0x1b) {
            assert_true(colour && c[1] == '[');
            size_t len = strspn(c + 2, "0123456789;");
            assert_true(len <= 4 && c[2 + len] == 'm');
        } else {
            assert_true(byte == '\n' || byte >= 0x20);
            assert_true(byte != 0x7f);
        }
    }
}

static void expect_width(const struct text *out, size_t width)
{
    struct text line = TEXT_INIT;
    for (const char *at = out->data; *at;) {
        size_t len = strcspn(at, "\n");
        text_clear(&line);
        text_add_len(&line, at, len);
        /* Commands are never cut. */
        if (!text_starts(line.data, "  sonde ") && text_columns(line.data) > width)
            fail_msg("over %zu columns: %s", width, line.data);
        assert_true(!len || at[len - 1] != ' ');
        at += len + (at[len] == '\n');
    }
    text_release(&line);
}

static struct report report(void)
{
    return (struct report){
        .selection = &selection, .tree = &tree, .file = "app.sonde", .top = 8, .min = 0.5};
}

static void at_every_width(const struct view *v)
{
    struct text out = TEXT_INIT;
    for (unsigned width = 40; width < 300; width++) {
        text_clear(&out);
        terminal_write(v, (struct terminal_style){.width = width, .colour = true}, &out);
        expect_harmless(&out, true);
        text_clear(&out);
        terminal_write(v, (struct terminal_style){.width = width}, &out);
        expect_width(&out, width < TERMINAL_WIDTH_MIN ? TERMINAL_WIDTH_MIN : width);
    }
    text_release(&out);
}

static void on_terminal(const struct view *v, const char *golden, unsigned width)
{
    struct text out = TEXT_INIT;
    terminal_write(v, (struct terminal_style){.width = width}, &out);
    expect_harmless(&out, false);
    expect_width(&out, width);
    compare(golden, &out);
    text_release(&out);
    at_every_width(v);
}

static void test_overview_on_terminals(void **state)
{
    (void)state;
    struct view v;
    struct report r = report();
    report_overview(&v, &r);
    on_terminal(&v, "overview-80.txt", 80);
    on_terminal(&v, "overview-160.txt", 160);
    view_release(&v);
}

static void test_tables_on_terminals(void **state)
{
    (void)state;
    struct report r = report();
    struct error err = {0};
    struct view v;
    report_tree(&v, &r);
    on_terminal(&v, "tree-80.txt", 80);
    on_terminal(&v, "tree-160.txt", 160);
    view_release(&v);
    report_threads(&v, &r);
    on_terminal(&v, "threads-80.txt", 80);
    view_release(&v);
    report_modules(&v, &r);
    on_terminal(&v, "modules-160.txt", 160);
    view_release(&v);
    assert_int_equal(report_callers(&v, &r, "server::serve", &err), 0);
    on_terminal(&v, "callers-80.txt", 80);
    view_release(&v);
    assert_int_equal(report_lines(&v, &r, NULL, &err), 0);
    on_terminal(&v, "lines-80.txt", 80);
    view_release(&v);
    report_notes(&v, &r);
    on_terminal(&v, "notes-80.txt", 80);
    view_release(&v);
}

static void test_heap_on_terminals(void **state)
{
    (void)state;
    struct heap_profile heap;
    struct selection all;
    struct suppressions quiet;
    struct error err = {0};
    struct view v;
    heap_profile_init(&heap);
    heap_skip_allocators(&heap.p);
    assert_int_equal(selection_init(&all, &heap.p, NULL, &err), 0);
    struct report r = {.selection = &all, .file = "app.sonde", .top = 8};
    report_heap(&v, &r);
    on_terminal(&v, "heap-80.txt", 80);
    on_terminal(&v, "heap-160.txt", 160);
    view_release(&v);
    suppressions_init(&quiet);
    assert_int_equal(report_leaks(&v, &r, &quiet), 600);
    on_terminal(&v, "leaks-80.txt", 80);
    suppressions_release(&quiet);
    view_release(&v);
    report_peaks(&v, &r, &(struct peaks_options){0});
    on_terminal(&v, "peaks-80.txt", 80);
    view_release(&v);
    selection_release(&all);
    profile_release(&heap.p);
}

static void test_curves(void **state)
{
    (void)state;
    struct heap_profile heap;
    struct selection all;
    struct curves curves;
    struct error err = {0};
    struct text out = TEXT_INIT;
    heap_profile_init(&heap);
    heap_skip_allocators(&heap.p);
    assert_int_equal(selection_init(&all, &heap.p, NULL, &err), 0);
    curves_init(&curves, &all);
    curves_rank(&curves);
    assert_int_equal(curves.all.len, 2);
    assert_int_equal(curves.all.data[0].process, heap.server);
    curves_svg(&(struct curves_picture){&curves, &heap.p, "a <b> & \"c\"", 900}, false, &out);
    compare("curves.svg", &out);
    text_clear(&out);
    curves_legend(&curves, &all, CURVES_SHOWN, &out);
    assert_string_equal(out.data, "1: server>src/app.cc:60:serve=>30000\n"
                                  "2: shell>src/app.cc:20:load(int)=>4000\n"
                                  "2: shell>src/app.cc:400:_IO_file_doallocate=>1024\n"
                                  "2: shell>src/app.cc:44:keep=>500\n");
    text_release(&out);
    curves_release(&curves);
    selection_release(&all);
    profile_release(&heap.p);
}

static void write_json(const struct view *v, struct text *out)
{
    struct json j;
    json_init(&j, NULL, NULL);
    j.pretty = true;
    view_json(v, &j);
    assert_int_equal(json_finish(&j), 0);
    text_add_len(out, j.out.data, j.out.len);
    text_add_char(out, '\n');
    json_release(&j);
}

static void test_json(void **state)
{
    (void)state;
    struct view v;
    struct text out = TEXT_INIT;
    struct report r = report();
    r.top = 0;
    report_overview(&v, &r);
    write_json(&v, &out);
    compare("overview.json", &out);
    for (const char *c = out.data; *c; c++)
        assert_true(*c != '<' && *c != '>' && *c != '&' && *c != 0x1b);
    text_release(&out);
    view_release(&v);
}

static void test_csv(void **state)
{
    (void)state;
    struct view v;
    struct text out = TEXT_INIT;
    struct report r = report();
    r.top = 0;
    report_overview(&v, &r);
    csv_write(&v, &out);
    compare("functions.csv", &out);
    assert_non_null(strstr(out.data, ",\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\","));
    assert_null(strchr(out.data, 0x1b));
    text_release(&out);
    view_release(&v);
}

static void test_source_lines(void **state)
{
    (void)state;
    char path[] = "/tmp/sonde-source-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(io_write(fd, "one\r\ntwo\n\nfour", 14), 0);
    close(fd);
    struct excerpt *s = excerpt_new();
    assert_string_equal(excerpt_line(s, path, 1), "one");
    assert_string_equal(excerpt_line(s, path, 2), "two");
    assert_string_equal(excerpt_line(s, path, 3), "");
    assert_string_equal(excerpt_line(s, path, 4), "four");
    assert_null(excerpt_line(s, path, 5));
    assert_null(excerpt_line(s, path, 0));
    assert_null(excerpt_line(s, path, UINT32_MAX));
    assert_null(excerpt_line(s, "/dev/zero", 1));
    assert_null(excerpt_line(s, "/absent", 1));
    assert_null(excerpt_line(s, "", 1));
    char name[32];
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "/absent/%d", i);
        assert_null(excerpt_line(s, name, 1));
    }
    excerpt_free(s);
    unlink(path);
}

static int set_up(void **state)
{
    (void)state;
    struct error err = {0};
    render_sample_init(&sample);
    if (selection_init(&selection, &sample, NULL, &err))
        return -1;
    tree_init(&tree, &selection, &(struct tree_options){.by_module = true});
    tree_sort(&tree, TREE_BY_TOTAL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tree_release(&tree);
    selection_release(&selection);
    profile_release(&sample);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overview_on_terminals),
        cmocka_unit_test(test_tables_on_terminals),
        cmocka_unit_test(test_heap_on_terminals),
        cmocka_unit_test(test_curves),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_source_lines),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
