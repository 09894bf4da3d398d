/* Help, manual pages and completion made from a table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cmd/manual.h"
#include "sample.h"

static const char expected_help[] =
    "Usage: sonde sample [OPTION]... [--] COMMAND\n"
    "\n"
    "Take a sample.\n"
    "\n"
    "One.\n"
    "\n"
    ".Two 'quoted' \\ and long-dashed, which must not become a request.\n"
    "\n"
    "Sampling:\n"
    "  -r, --rate=HZ           Samples a second. Takes a whole number such as 500 or\n"
    "                          10k from 1 to 4000. Default: 99.\n"
    "  -d, --duration=TIME     Stop after this time. Takes a duration such as 500ms,\n"
    "                          10s or 2m. Default: 10s.\n"
    "  -e, --event=EVENT       Count this. May be given several times.\n"
    "\n"
    "Options:\n"
    "      --size=SIZE         Buffer a thread. Takes a size such as 512K, 64M or 1G\n"
    "                          of at least 4K.\n"
    "      --budget=PERCENT    Cost at most. Takes a percentage such as 1% from 0.1\n"
    "                          to 100. Default: 1%.\n"
    "      --factor=VALUE      Multiply by it. Takes a number.\n"
    "  -o, --output=FILE       Write to FILE.\n"
    "  -k, --kind=KIND         What to draw. Takes one of flame, tree or table.\n"
    "                          Default: tree.\n"
    "  -f, --[no-]follow       Follow forks. Default: yes.\n"
    "  -q, --quick             Be quick.\n"
    "\n"
    "Help:\n"
    "  -h, --help              Show this text.\n"
    "\n"
    "Examples:\n"
    "  sonde sample -- ./app\n"
    "      try it\n"
    "\n"
    "Exit status:\n"
    "    0  Done.\n"
    "    1  What was asked for could not be done; the reason is on standard error.\n"
    "    2  The command line or sonde.conf is wrong.\n";

static void help_is_grouped_and_fits(void **state)
{
    (void)state;
    FILE *out = tmpfile();
    manual_print_help(&sample_command, out);
    char got[8192] = {0};
    rewind(out);
    fread(got, 1, sizeof got - 1, out);
    fclose(out);
    assert_string_equal(got, expected_help);
    for (char *line = got, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = 0;
        assert_true(text_columns(line) <= 80);
    }
}

static void roff_is_inert(void **state)
{
    (void)state;
    struct text page = TEXT_INIT;
    manual_roff_command(&sample_command, &page);
    assert_non_null(strstr(page.data, "\n\\&.Two \\(aqquoted\\(aq \\e and long\\-dashed"));
    assert_non_null(strstr(page.data, "\\fB\\-r\\fR, \\fB\\-\\-rate\\fR=\\fIHZ\\fR\n"));
    assert_non_null(strstr(page.data, "\\-\\-[no\\-]follow"));
    text_release(&page);
}

static void conf_page_lists_every_key(void **state)
{
    (void)state;
    struct text page = TEXT_INIT;
    manual_roff_conf(sample_commands, &page);
    for (const struct option *o = sample_table; o->name; o++) {
        char tag[80];
        snprintf(tag, sizeof tag, "\\fB%s\\fR = ", o->name);
        assert_non_null(strstr(page.data, tag));
    }
    text_release(&page);
}

static void completion_lists_options_and_choices(void **state)
{
    (void)state;
    struct text script = TEXT_INIT;
    manual_bash(sample_commands, &script);
    assert_non_null(strstr(script.data, " --follow --no-follow --quick\""));
    assert_non_null(strstr(script.data, "sample:--kind|sample:-k)"));
    assert_non_null(strstr(script.data, "\"flame tree table\""));
    text_release(&script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_is_grouped_and_fits),
        cmocka_unit_test(roff_is_inert),
        cmocka_unit_test(conf_page_lists_every_key),
        cmocka_unit_test(completion_lists_options_and_choices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
