/*
 * The three formats of line tables: on every interpreter that is installed, the line of every
 * instruction of some large modules, as it says itself; and on bytes that no compiler wrote.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "interpreter.h"

static const char *script_folder;

static size_t parse_hex(char **at, uint8_t *table)
{
    size_t size = 0;
    for (*at = strchr(*at, 'x') + 1; **at && **at != ' '; *at += 2) {
        const char pair[3] = {(*at)[0], (*at)[1], '\0'};
        table[size++] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return size;
}

/* One code object; how many instructions it has. */
static size_t check_code(enum cpython_lines kind, char *line)
{
    int32_t first = (int32_t)strtol(line, &line, 10);
    uint8_t *table = malloc(strlen(line));
    size_t size = parse_hex(&line, table), count = 0;
    /* Of the exact size, for the sanitizer to see what lies past the end. */
    uint8_t *exact = malloc(size + 1);
    memcpy(exact + 1, table, size);
    for (char *after; *line; line = after, count++) {
        int32_t truth = (int32_t)strtol(line, &after, 10);
        if (after == line)
            break;
        int32_t found = cpython_line(kind, exact + 1, size, first, (int32_t)count * 2);
        assert_int_equal(found, truth < 0 ? CPYTHON_LINE_NONE : truth);
    }
    assert_int_equal(cpython_line(kind, exact + 1, size, first, -1), first);
    free(exact);
    free(table);
    return count;
}

static void check_interpreter(const char *path, struct interpreter_run *run)
{
    char *line = NULL;
    size_t room = 0, codes = 0, instructions = 0;
    enum cpython_lines kind = CPYTHON_LINES_LNOTAB;
    while (getline(&line, &room, run->out) > 0) {
        if (line[0] == 'K')
            kind = (enum cpython_lines)strtol(line + 2, NULL, 10);
        else if (line[0] == 'C' && ++codes)
            instructions += check_code(kind, line + 2);
    }
    free(line);
    print_message("%s: %zu code objects, %zu instructions\n", path, codes, instructions);
    assert_true(codes > 1200 && instructions > 50000);
}

static void test_every_interpreter(void **state)
{
    (void)state;
    if (!interpreter_each(script_folder, "lines.py", NULL, NULL, check_interpreter))
        skip();
}

static void test_damaged(void **state)
{
    (void)state;
    const uint8_t odd[] = {2, 1, 9}, none[] = {4, 0x80, 4, 1}, headless[] = {0x00, 0x81};
    const uint8_t endless[] = {0xe8, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f,
                               0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f};
    assert_int_equal(cpython_line(CPYTHON_LINES_LNOTAB, odd, sizeof(odd), 10, 100), 11);
    assert_int_equal(cpython_line(CPYTHON_LINES_LNOTAB, NULL, 0, 10, 0), 10);
    assert_int_equal(cpython_line(CPYTHON_LINES_RANGES, odd, sizeof(odd), 10, 2), CPYTHON_LINE_BAD);
    assert_int_equal(cpython_line(CPYTHON_LINES_RANGES, none, 4, 10, 2), CPYTHON_LINE_NONE);
    assert_int_equal(cpython_line(CPYTHON_LINES_RANGES, none, 4, 10, 4), 11);
    assert_int_equal(cpython_line(CPYTHON_LINES_LOCATIONS, headless, 2, 10, 0), CPYTHON_LINE_BAD);
    assert_int_equal(cpython_line(CPYTHON_LINES_LOCATIONS, endless, sizeof(endless), 10, 0),
                     CPYTHON_LINE_BAD);
    assert_int_equal(cpython_line(CPYTHON_LINES_LOCATIONS, NULL, 0, 10, 0), CPYTHON_LINE_BAD);
    assert_int_equal(cpython_line((enum cpython_lines)9, odd, 3, 10, 0), CPYTHON_LINE_BAD);
    assert_int_equal(cpython_line(CPYTHON_LINES_LNOTAB, NULL, 0, -5, -1), CPYTHON_LINE_BAD);
}

int main(int argc, char **argv)
{
    script_folder = argc > 1 ? argv[1] : ".";
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_damaged),
                                       cmocka_unit_test(test_every_interpreter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
