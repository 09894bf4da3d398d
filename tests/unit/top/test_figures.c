/* Figures of two moments: what has happened between them, also when names have changed meanwhile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "top/figures.h"
#include "top/panel.h"

/* A document of CPU time `total` ms, with the functions "name self total" in ms. */
static void read_moment(struct figures *f, double moment, unsigned total, const char *rows,
                        const struct figures *before)
{
    struct text json = TEXT_INIT;
    struct error err = {0};
    text_format(&json,
                "{\"command\": \"x\", \"seconds\": %.1f, \"moment\": %.1f, \"cpus\": 2, "
                "\"processes\": [{\"pid\": 7, \"name\": \"x\", \"cpu\": %ue6, \"heap\": -1}], "
                "\"threads\": [], \"cpu\": {\"sections\": {\"functions\": {\"rows\": [%s]}, "
                "\"totals\": {\"facts\": {\"value\": %ue6}}}}}",
                moment, moment, total, rows, total);
    assert_int_equal(figures_read(f, json.data, json.len, before, &err), 0);
    text_release(&json);
}

#define ROW(name, self, total)                                                                     \
    "{\"name\": \"" name "\", \"module\": \"m\", \"self\": " #self "e6, \"total\": " #total "e6}"

static void assert_recent(const struct figures *f, const char *name, uint64_t self, uint64_t total)
{
    for (size_t i = 0; i < f->functions.len; i++)
        if (!strcmp(f->functions.data[i].name, name)) {
            assert_int_equal(f->functions.data[i].recent, self * 1000000);
            assert_int_equal(f->functions.data[i].recent_total, total * 1000000);
            return;
        }
    fail_msg("%s is not there", name);
}

static void test_what_has_happened_since(void **state)
{
    (void)state;
    struct figures a, b, c;
    read_moment(&a, 1, 1000, ROW("main", 0, 1000) ", " ROW("[lib]", 900, 900), NULL);
    assert_recent(&a, "[lib]", 900, 900);
    /* 100 ms went by; most of what had no name has got one, and a function has come into the list.
     */
    read_moment(&b, 2, 1100,
                ROW("main", 0, 1100) ", " ROW("[lib]", 100, 950) ", " ROW("named", 850, 850), &a);
    assert_int_equal(b.recent_total, 100000000);
    assert_recent(&b, "main", 0, 100);
    assert_recent(&b, "[lib]", 0, 50);
    assert_recent(&b, "named", 100, 100);
    /* Less than before: another recording, so all of it is new. */
    read_moment(&c, 1, 30, ROW("main", 10, 30), &b);
    assert_int_equal(c.recent_total, 30000000);
    assert_recent(&c, "main", 10, 30);
    figures_release(&a);
    figures_release(&b);
    figures_release(&c);
}

static void test_a_stack_leads_to_the_python_code(void **state)
{
    (void)state;
    static const char *const json =
        "{\"heap\": {\"bytes\": 100, \"blocks\": 2, \"stacks\": ["
        "{\"pid\": 7, \"bytes\": 60, \"blocks\": 1, \"python\": 3,"
        " \"frames\": [\"arena\", \"pool\", \"new\", \"handle\", \"main\"]},"
        "{\"pid\": 7, \"bytes\": 30, \"blocks\": 1, \"python\": 2,"
        " \"frames\": [\"PyBytes_FromStringAndSize\", \"[python3.11+0x5afc40]\", \"parse\"]},"
        "{\"pid\": 7, \"bytes\": 10, \"blocks\": 1, \"python\": 99,"
        " \"frames\": [\"malloc\", \"f\"]}]}}";
    struct figures f;
    struct error err = {0};
    struct panel r = {0};
    struct panel_options o = {.pane = PANE_HEAP, .filter = "", .width = 100};
    assert_int_equal(figures_read(&f, json, strlen(json), NULL, &err), 0);
    panel_lower(&r, &f, &o);
    assert_int_equal(r.len, 3);
    assert_non_null(strstr(r.data[0].text, "+ arena < … < handle < main"));
    assert_non_null(
        strstr(r.data[1].text, "+ PyBytes_FromStringAndSize < [python3.11+0x5afc40] < parse"));
    assert_non_null(strstr(r.data[2].text, "+ malloc < f"));
    panel_release(&r);
    r = (struct panel){0};
    o.width = 80;
    panel_lower(&r, &f, &o);
    assert_non_null(strstr(r.data[1].text, "+ PyBytes_FromStringAndSize < … < parse"));
    panel_release(&r);
    figures_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_has_happened_since),
                                       cmocka_unit_test(test_a_stack_leads_to_the_python_code)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
