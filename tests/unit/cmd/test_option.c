/* Options from a table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "sample.h"

#define WORDS_MAX 16

struct parsed {
    struct sample_options values;
    struct option_set set;
    char *argv[WORDS_MAX + 1];
    int operands;
    bool help;
    struct error err;
    int result;
};

static void parse(struct parsed *p, int operands_end, ...)
{
    memset(p, 0, sizeof *p);
    p->values = sample_defaults;
    option_set_init(&p->set, sample_table, &p->values);
    va_list words;
    va_start(words, operands_end);
    int argc = 0;
    for (char *word; (word = va_arg(words, char *)) != NULL;)
        p->argv[argc++] = word;
    va_end(words);
    p->result = option_parse(&p->set, argc, p->argv, operands_end, &p->operands, &p->help, &p->err);
}

static void every_kind_is_stored(void **state)
{
    (void)state;
    struct parsed p;
    parse(&p, false, "--rate=2k", "-d", "500ms", "--size", "1M", "--budget=2.5%", "--factor=-1.5",
          "-oout", "-e", "cycles", "--event=misses", "-ktable", "--no-follow", "-q", "file", NULL);
    assert_int_equal(p.result, 0);
    assert_int_equal(p.values.rate, 2000);
    assert_int_equal(p.values.duration, 500000000);
    assert_int_equal(p.values.size, 1 << 20);
    assert_true(p.values.budget == 2.5 && p.values.factor == -1.5);
    assert_string_equal(p.values.output, "out");
    assert_int_equal(p.values.events.len, 2);
    assert_string_equal(p.values.events.data[1], "misses");
    assert_int_equal(p.values.kind, 2);
    assert_false(p.values.follow);
    assert_true(p.values.quick);
    assert_int_equal(p.operands, 1);
    assert_string_equal(p.argv[0], "file");
    assert_true(option_given(&p.set, "rate"));
    option_set_release(&p.set);
}

static void defaults_stay(void **state)
{
    (void)state;
    struct parsed p;
    parse(&p, false, NULL);
    assert_int_equal(p.values.rate, 99);
    assert_true(p.values.follow);
    assert_false(option_given(&p.set, "rate"));
    option_set_release(&p.set);
}

static void operands_and_dashes(void **state)
{
    (void)state;
    struct parsed p;
    parse(&p, false, "a", "-q", "-", "b", "--", "-r", "--rate", NULL);
    assert_int_equal(p.result, 0);
    assert_int_equal(p.operands, 5);
    assert_string_equal(p.argv[1], "-");
    assert_string_equal(p.argv[4], "--rate");
    option_set_release(&p.set);

    parse(&p, true, "-q", "ls", "-r", "--nonsense", "--", "x", NULL);
    assert_int_equal(p.result, 0);
    assert_int_equal(p.operands, 5);
    assert_string_equal(p.argv[0], "ls");
    assert_string_equal(p.argv[3], "--");
    option_set_release(&p.set);
}

static void help_is_seen(void **state)
{
    (void)state;
    struct parsed p;
    parse(&p, false, "--help", "--nonsense", NULL);
    assert_true(p.help);
    option_set_release(&p.set);
    parse(&p, false, "-qh", NULL);
    assert_true(p.help);
    option_set_release(&p.set);
    parse(&p, true, "ls", "--help", NULL);
    assert_false(p.help);
    option_set_release(&p.set);
}

static void expect_refusal(const char *a, const char *b, const char *sentence)
{
    struct parsed p;
    parse(&p, false, a, b, NULL);
    assert_int_equal(p.result, FAULT_USAGE);
    assert_string_equal(p.err.text, sentence);
    option_set_release(&p.set);
}

static void switches_with_a_word(void **state)
{
    (void)state;
    struct parsed p;
    parse(&p, false, "--follow=no", "file", NULL);
    assert_int_equal(p.result, 0);
    assert_false(p.values.follow);
    option_set_release(&p.set);
    parse(&p, false, "--no-follow", "--follow=yes", "file", NULL);
    assert_true(p.values.follow);
    option_set_release(&p.set);
    expect_refusal("--follow=maybe", NULL, "--follow is a switch and takes no value, not 'maybe'");
    expect_refusal("--no-follow=yes", NULL, "--follow is a switch and takes no value, not 'yes'");
}

static void refusals_say_what_is_allowed(void **state)
{
    (void)state;
    const char *rate = "takes a whole number such as 500 or 10k from 1 to 4000, not";
    char sentence[200];
    snprintf(sentence, sizeof sentence, "--rate %s 'abc'", rate);
    expect_refusal("--rate=abc", NULL, sentence);
    snprintf(sentence, sizeof sentence, "-r %s '0'", rate);
    expect_refusal("-r0", NULL, sentence);
    snprintf(sentence, sizeof sentence, "--rate %s '4001'", rate);
    expect_refusal("--rate", "4001", sentence);
    expect_refusal("--raet=5", NULL, "unknown option '--raet'; did you mean --rate?");
    expect_refusal("--xyzzy", NULL, "unknown option '--xyzzy'; --help lists those there are");
    expect_refusal("-qz", NULL, "unknown option '-z' in '-qz'; --help lists those there are");
    expect_refusal("--quick=1", NULL, "--quick is a switch and takes no value, not '1'");
    expect_refusal("--no-quick", NULL, "unknown option '--no-quick'; did you mean --quick?");
    expect_refusal("--kind=pie", NULL, "--kind takes one of flame, tree or table, not 'pie'");
    expect_refusal("--size=1K", NULL,
                   "--size takes a size such as 512K, 64M or 1G of at least 4K, not '1K'");
    expect_refusal("--budget=200%", NULL,
                   "--budget takes a percentage such as 1% from 0.1 to 100, not '200%'");
    expect_refusal("-d", NULL, "-d needs a value: a duration such as 500ms, 10s or 2m");
}

static void command_line_wins(void **state)
{
    (void)state;
    struct parsed p;
    parse(&p, false, NULL);
    struct error err = {0};
    const char *pairs[][2] = {{"rate", "10"}, {"follow", "no"},   {"event", "a"},
                              {"event", "b"}, {"output", "conf"}, {"kind", "flame"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const struct option *o = option_find(sample_table, pairs[i][0], strlen(pairs[i][0]));
        assert_int_equal(option_configure(&p.set, o, pairs[i][1], &err), 0);
    }
    assert_int_equal(p.values.events.len, 2);
    char *argv[] = {"--rate=20", "-e", "c", NULL};
    assert_int_equal(option_parse(&p.set, 3, argv, false, &p.operands, &p.help, &err), 0);
    assert_int_equal(p.values.rate, 20);
    assert_int_equal(p.values.events.len, 1);
    assert_string_equal(p.values.events.data[0], "c");
    assert_string_equal(p.values.output, "conf");
    assert_false(p.values.follow);
    assert_int_equal(p.values.kind, 0);
    option_set_release(&p.set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_stored), cmocka_unit_test(switches_with_a_word),
        cmocka_unit_test(defaults_stay),        cmocka_unit_test(operands_and_dashes),
        cmocka_unit_test(help_is_seen),         cmocka_unit_test(refusals_say_what_is_allowed),
        cmocka_unit_test(command_line_wins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
