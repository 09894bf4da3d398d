/* sonde.conf. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/io.h"
#include "cmd/conf.h"
#include "sample.h"

struct read_back {
    struct sample_options values;
    struct option_set set;
    struct error err;
    int result;
};

static void read_text(struct read_back *r, const void *text, size_t len)
{
    char path[] = "test_conf.XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, len), len);
    close(fd);
    memset(r, 0, sizeof *r);
    r->values = sample_defaults;
    option_set_init(&r->set, sample_table, &r->values);
    r->result = conf_read(path, sample_commands, &sample_command, &r->set, &r->err);
    unlink(path);
}

static void keys_are_stored(void **state)
{
    (void)state;
    static const char text[] = "# comment\n[sample]\nrate = 20 ; inline\n   follow = off\n"
                               "event=a\nevent = b\noutput = a file\n";
    struct read_back r;
    read_text(&r, text, sizeof text - 1);
    assert_int_equal(r.result, 0);
    assert_int_equal(r.values.rate, 20);
    assert_false(r.values.follow);
    assert_int_equal(r.values.events.len, 2);
    assert_string_equal(r.values.events.data[1], "b");
    assert_string_equal(r.values.output, "a file");
    option_set_release(&r.set);
}

static void expect_refusal(const char *text, size_t len, const char *ending)
{
    struct read_back r;
    read_text(&r, text, len);
    assert_int_equal(r.result, FAULT_USAGE);
    size_t have = strlen(r.err.text), want = strlen(ending);
    assert_true(have >= want);
    assert_string_equal(r.err.text + have - want, ending);
    option_set_release(&r.set);
}

static void faults_name_the_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *ending;
    } cases[] = {
        {"[sample]\n\nraet = 5\n", ":3: unknown key 'raet'; did you mean 'rate'?"},
        {"[smaple]\nrate = 5\n", ":2: unknown section 'smaple'; did you mean 'sample'?"},
        {"[sample]\nfollow = maybe\n", ":2: follow takes yes or no, not 'maybe'"},
        {"[sample]\nrate\n", ":2: neither '[command]' nor 'key = value'"},
        {"rate = 5\n", ":1: unknown section (a key before any [command]) ''"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_refusal(cases[i].text, strlen(cases[i].text), cases[i].ending);
    expect_refusal("[sample]\n\0x\n", 12, "it is not a text file");
    char wide[1000];
    memset(wide, 'x', sizeof wide);
    memcpy(wide, "[sample]\noutput=", 16);
    expect_refusal(wide, sizeof wide, ":2: the line is too long");
}

static void the_place_is_chosen_by_environment(void **state)
{
    (void)state;
    setenv("SONDE_CONF", "", 1);
    assert_null(conf_path());
    setenv("SONDE_CONF", "/nowhere/at/all", 1);
    char *path = conf_path();
    assert_string_equal(path, "/nowhere/at/all");
    free(path);
    unsetenv("SONDE_CONF");

    char folder[] = "/tmp/test_conf.XXXXXX";
    assert_non_null(mkdtemp(folder));
    char wanted[200];
    snprintf(wanted, sizeof wanted, "%s/sonde", folder);
    struct error err;
    assert_int_equal(io_make_folders(wanted, &err), 0);
    snprintf(wanted, sizeof wanted, "%s/sonde/sonde.conf", folder);
    fclose(fopen(wanted, "w"));
    setenv("XDG_CONFIG_HOME", folder, 1);
    path = conf_path();
    assert_string_equal(path, wanted);
    free(path);
    unlink(wanted);
    snprintf(wanted, sizeof wanted, "%s/sonde", folder);
    rmdir(wanted);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_stored),
        cmocka_unit_test(faults_name_the_line),
        cmocka_unit_test(the_place_is_chosen_by_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
