/*
 * Answers at rest: the second question is answered without reading debug information, as long as
 * the files are the same and every address was asked for before; what was damaged is read anew.
 * libdw's door is watched by this program.
 */
#include <dlfcn.h>
#include <elfutils/libdw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/io.h"
#include "base/text.h"
#include "workshop.h"

static struct workshop shop;
static uint64_t address[3]; /* of first and second, ascending, and of nothing */
static int readings;

Dwarf *dwarf_begin_elf(Elf *elf, Dwarf_Cmd command, Elf_Scn *group)
{
    Dwarf *(*real)(Elf *, Dwarf_Cmd, Elf_Scn *);
    *(void **)&real = dlsym(RTLD_NEXT, "dwarf_begin_elf");
    readings++;
    return real(elf, command, group);
}

/* More than a megabyte of debug information, nearly all of it types. */
static void write_program(void)
{
    struct text code = TEXT_INIT;
    text_add(&code, "__attribute__((noinline)) int first(int x) { return x + 1; }\n"
                    "__attribute__((noinline)) int second(int x) { return x * 2; }\n"
                    "int main(int argc, char **argv)\n"
                    "{ (void)argv; return first(argc) + second(argc); }\n");
    for (int i = 0; i < 12000; i++)
        text_format(&code, "struct s%d { int a, b, c, d, e, f, g, h, i, j; long k; };\n", i);
    workshop_write(&shop, "two.c", code.data);
    text_release(&code);
}

static int open_shop(void **state)
{
    (void)state;
    workshop_open(&shop);
    setenv("XDG_CACHE_HOME", workshop_path(&shop, "cache"), 1);
    write_program();
    workshop_run(&shop, "gcc -O1 -g -fno-eliminate-unused-debug-types -Wl,--build-id -o two two.c");
    address[0] = workshop_symbol(&shop, "two", "first");
    address[1] = workshop_symbol(&shop, "two", "second");
    address[2] = UINT64_MAX / 2;
    assert_true(address[0] < address[1]);
    return 0;
}

static int close_shop(void **state)
{
    (void)state;
    workshop_close(&shop);
    return 0;
}

/* Asks for `count` addresses from `from` on and checks the answers; how often libdw was opened. */
static int ask(size_t from, size_t count)
{
    struct symbol_request r = {.kind = SYMBOL_ELF,
                               .path = workshop_path(&shop, "two"),
                               .address = address + from,
                               .count = count};
    struct catch c;
    readings = 0;
    catch_resolve(&c, &r, NULL);
    assert_int_equal(c.result.status, SYMBOL_FULL);
    assert_string_equal(c.result.note, "");
    assert_non_null(strstr(c.result.source, "/two"));
    for (size_t i = 0; i < count; i++) {
        if (from + i == 2) {
            assert_int_equal(c.found[i].n, 0);
            continue;
        }
        assert_int_equal(c.found[i].n, 1);
        const struct symbol_location *l = c.found[i].location;
        assert_string_equal(l->function, from + i ? "second" : "first");
        assert_string_equal(l->linkage, l->function);
        assert_non_null(strstr(l->file, "/two.c"));
        assert_int_equal(l->line, from + i + 1);
        assert_int_equal(l->start_line, from + i + 1);
        assert_int_equal(l->start, address[from + i]);
    }
    catch_release(&c);
    return readings;
}

static void forget(void)
{
    workshop_run(&shop, "rm -rf cache");
}

static void test_second_question(void **state)
{
    (void)state;
    forget();
    assert_int_equal(ask(0, 3), 1);
    assert_int_equal(ask(0, 3), 0);
    assert_int_equal(ask(1, 1), 0);
}

static void test_other_address(void **state)
{
    (void)state;
    forget();
    assert_int_equal(ask(1, 1), 1);
    assert_int_equal(ask(0, 1), 1);
    assert_int_equal(ask(0, 2), 0); /* neither forgot the other */
    assert_int_equal(ask(0, 3), 1);
}

static void test_other_file(void **state)
{
    (void)state;
    forget();
    assert_int_equal(ask(0, 2), 1);
    workshop_run(&shop, "touch -d '2 hours ago' two");
    assert_int_equal(ask(0, 2), 1);
    assert_int_equal(ask(0, 2), 0);
}

static void test_not_ours_alone(void **state)
{
    (void)state;
    forget();
    assert_int_equal(ask(0, 2), 1);
    workshop_run(&shop, "chmod o+w cache/sonde/answers/*");
    assert_int_equal(ask(0, 2), 1);
}

static void test_nowhere_to_keep(void **state)
{
    (void)state;
    forget();
    workshop_run(&shop, "touch cache");
    assert_int_equal(ask(0, 2), 1);
    assert_int_equal(ask(0, 2), 1);
}

/* Cut anywhere, or with any byte changed: the answers are right, or the file is read again. What a
 * changed letter of a name does nobody can see, so only numbers that lead somewhere are changed. */
static void test_damage(void **state)
{
    (void)state;
    char *name, *data;
    size_t len;
    forget();
    ask(0, 2);
    name = workshop_output(&shop, "ls -d $PWD/cache/sonde/answers/*");
    name[strcspn(name, "\n")] = 0;
    assert_int_equal(io_slurp(name, 1 << 20, &data, &len, NULL), 0);
    for (size_t cut = 0; cut < len; cut++) {
        workshop_write_bytes(&shop, strstr(name, "cache/"), data, cut);
        assert_int_equal(ask(0, 2), 1);
    }
    for (size_t i = 0; i < 64; i++) { /* magic, count, addresses, the first message's head */
        data[i] = (char)(data[i] ^ 0x55);
        workshop_write_bytes(&shop, strstr(name, "cache/"), data, len);
        data[i] = (char)(data[i] ^ 0x55);
        if (i < 32 + 16)
            assert_int_equal(ask(0, 2), 1);
    }
    free(data);
    free(name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_second_question), cmocka_unit_test(test_other_address),
        cmocka_unit_test(test_other_file),      cmocka_unit_test(test_not_ours_alone),
        cmocka_unit_test(test_nowhere_to_keep), cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, open_shop, close_shop);
}
