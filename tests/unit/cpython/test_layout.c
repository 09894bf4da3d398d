/*
 * Every row of the table of layouts that can be checked here: layout_probe.c is compiled against
 * the headers of each installed interpreter, and run. Versions without headers are left out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cpython/layout.h"

static const char *probe_folder, *source_folder;

static int run(const char *const argv[])
{
    int status = -1;
    pid_t pid = fork();
    if (!pid) {
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check_headers(const char *headers, const char *work)
{
    char include[600], internal[600], source[600], probe[600], layout[600], program[600];
    snprintf(include, sizeof(include), "-I%s", headers);
    snprintf(internal, sizeof(internal), "-I%s/internal", headers);
    snprintf(source, sizeof(source), "-I%s", source_folder);
    snprintf(probe, sizeof(probe), "%s/layout_probe.c", probe_folder);
    snprintf(layout, sizeof(layout), "%s/cpython/layout.c", source_folder);
    snprintf(program, sizeof(program), "%s/probe", work);
    const char *const compile[] = {"cc",  "-w",   include, internal, source,
                                   probe, layout, "-o",    program,  NULL};
    assert_int_equal(run(compile), 0);
    const char *const probing[] = {program, NULL};
    assert_int_equal(run(probing), 0);
    unlink(program);
}

static void test_headers(void **state)
{
    (void)state;
    static const char *const places[] = {"~/.pyenv/versions/3.*/include/python3.*",
                                         "/usr/include/python3.*", "/usr/local/include/python3.*"};
    char work[] = "/tmp/sonde-layout-XXXXXX";
    size_t checked = 0;
    assert_non_null(mkdtemp(work));
    for (size_t p = 0; p < sizeof(places) / sizeof(places[0]); p++) {
        glob_t found;
        if (glob(places[p], GLOB_TILDE, NULL, &found))
            continue;
        for (size_t i = 0; i < found.gl_pathc; i++, checked++)
            check_headers(found.gl_pathv[i], work);
        globfree(&found);
    }
    rmdir(work);
    if (!checked)
        skip();
}

static void test_rows(void **state)
{
    (void)state;
    assert_null(layout_find(5, 9));
    assert_null(layout_find(15, 0));
    assert_int_equal(layout_find(7, 3)->runtime_current, 1392);
    assert_int_equal(layout_find(7, 4)->runtime_current, 1480);
    for (unsigned minor = LAYOUT_MINOR_FIRST; minor <= LAYOUT_MINOR_LAST; minor++) {
        assert_non_null(layout_find(minor, 0));
        assert_true(layout_is_sane(layout_find(minor, 255)));
    }
    struct layout wrong = *layout_find(13, 0);
    wrong.frame_back = LAYOUT_FRAME_MAX - 7;
    assert_false(layout_is_sane(&wrong));
}

int main(int argc, char **argv)
{
    probe_folder = argc > 1 ? argv[1] : ".";
    source_folder = argc > 2 ? argv[2] : "src";
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_headers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
