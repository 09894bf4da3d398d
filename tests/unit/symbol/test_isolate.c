/*
 * Children that crash, hang, end early, eat memory or lie: the module loses its lines, keeps its
 * names, and everything else goes on. libdw's door is taken over by this program to play the file
 * that breaks it.
 */
#include <dlfcn.h>
#include <elfutils/libdw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "symbol/answer_wire.h"
#include "workshop.h"

enum harm { NO_HARM, CRASH, ABORT, HANG, END, GREED, SHRINK, NOISE, FORGED };

static struct workshop shop;
static uint64_t address[2]; /* of first and second, ascending */
static enum harm harm;      /* what reading debug information does */

Dwarf *dwarf_begin_elf(Elf *elf, Dwarf_Cmd command, Elf_Scn *group);

static void write_everywhere(const void *data, size_t len)
{
    for (int fd = 3; fd < 64; fd++)
        if (write(fd, data, len) < 0)
            continue;
    _exit(0);
}

static void forge(void)
{
    struct symbol_location l = {.function = "forged", .linkage = "forged"};
    struct text out = TEXT_INIT;
    wire_put_answer(&out, 1u << 30, &l, 1);
    write_everywhere(out.data, out.len);
}

static void do_harm(void)
{
    char noise[4096];
    memset(noise, 0x5a, sizeof noise);
    switch (harm) {
    case NO_HARM:
        break;
    case CRASH:
        raise(SIGSEGV);
        break;
    case ABORT:
        abort();
    case HANG:
        for (volatile int i = 0;; i++)
            ;
    case END:
        _exit(0);
    case GREED:
        while (mmap(NULL, (size_t)1 << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
               MAP_FAILED)
            ;
        raise(SIGSEGV);
        break;
    case SHRINK:
        if (truncate(workshop_path(&shop, "shrinking"), 4096) != 0)
            _exit(9);
        break;
    case NOISE:
        write_everywhere(noise, sizeof noise);
        break;
    case FORGED:
        forge();
        break;
    }
}

Dwarf *dwarf_begin_elf(Elf *elf, Dwarf_Cmd command, Elf_Scn *group)
{
    Dwarf *(*real)(Elf *, Dwarf_Cmd, Elf_Scn *);
    *(void **)&real = dlsym(RTLD_NEXT, "dwarf_begin_elf");
    do_harm();
    return real(elf, command, group);
}

static int open_shop(void **state)
{
    (void)state;
    workshop_open(&shop);
    workshop_write(&shop, "two.c",
                   "__attribute__((noinline)) int first(int x) { return x + 1; }\n"
                   "__attribute__((noinline)) int second(int x) { return x * 2; }\n"
                   "int main(int argc, char **argv)\n"
                   "{ (void)argv; return first(argc) + second(argc); }\n");
    workshop_run(&shop, "gcc -O1 -g -o two two.c");
    address[0] = workshop_symbol(&shop, "two", "first");
    address[1] = workshop_symbol(&shop, "two", "second");
    assert_true(address[0] < address[1]);
    return 0;
}

static int close_shop(void **state)
{
    (void)state;
    workshop_close(&shop);
    return 0;
}

static struct symbol_request request(void)
{
    return (struct symbol_request){
        .kind = SYMBOL_ELF, .path = workshop_path(&shop, "two"), .address = address, .count = 2};
}

static void falls_back(enum harm what, const struct symbol_options *options, const char *why)
{
    struct symbol_request r = request();
    struct catch c;
    harm = what;
    catch_isolated(&c, &r, options);
    harm = NO_HARM;
    assert_int_equal(c.result.status, SYMBOL_FELL_BACK);
    if (!strstr(c.result.note, why))
        print_error("note: %s\n", c.result.note);
    assert_non_null(strstr(c.result.note, why));
    assert_int_equal(c.result.resolved, 2);
    assert_int_equal(c.result.with_lines, 0);
    assert_string_equal(c.found[0].location->function, "first");
    assert_string_equal(c.found[1].location->function, "second");
    catch_release(&c);
}

static void test_no_harm(void **state)
{
    (void)state;
    struct symbol_request r = request();
    struct catch c;
    catch_isolated(&c, &r, NULL);
    assert_int_equal(c.result.status, SYMBOL_FULL);
    assert_int_equal(c.found[1].location->line, 2);
    catch_release(&c);
}

static void test_crash(void **state)
{
    (void)state;
    falls_back(CRASH, NULL, "crashed (Segmentation fault)");
    falls_back(ABORT, NULL, "crashed (Aborted)");
    falls_back(END, NULL, "ended early");
}

static void test_hang(void **state)
{
    (void)state;
    struct symbol_options processor = {.cpu_seconds = 1}, wall = {.wall_seconds = 1};
    uint64_t start = clock_now();
    falls_back(HANG, &processor, "took too long");
    falls_back(HANG, &wall, "took too long");
    assert_true(clock_now() - start < 60000000000u);
}

static void test_greed(void **state)
{
    (void)state;
#if !defined(__SANITIZE_ADDRESS__)
    struct symbol_options options = {.memory_max = (uint64_t)256 << 20};
    falls_back(GREED, &options, "crashed");
#else
    skip(); /* no limit of address space under a sanitizer */
#endif
}

static void test_lies(void **state)
{
    (void)state;
    falls_back(NOISE, NULL, "makes no sense");
    falls_back(FORGED, NULL, "not asked for");
}

/* The file is cut while libdw has it mapped: pages that are gone raise SIGBUS, in the child. */
static void test_shrinking_file(void **state)
{
    (void)state;
    workshop_run(&shop, "cp two shrinking");
    struct symbol_request r = request();
    r.path = workshop_path(&shop, "shrinking");
    struct catch c;
    harm = SHRINK;
    catch_isolated(&c, &r, NULL);
    harm = NO_HARM;
    assert_int_equal(c.result.status, SYMBOL_FELL_BACK);
    assert_true(strlen(c.result.note) > 0);
    catch_release(&c);
}

struct tally {
    size_t of[8];
};

static void count(void *context, size_t module, size_t index,
                  const struct symbol_location *location, size_t n)
{
    (void)index, (void)location, (void)n;
    ((struct tally *)context)->of[module]++;
}

/* One bad module among many: the others have their lines. */
static void test_neighbours(void **state)
{
    (void)state;
    struct symbol_request r[8];
    struct symbol_result result[8];
    struct tally tally = {{0}};
    struct symbol_sink sink = {count, &tally};
    struct symbol_options options = {.workers = 2};
    for (int i = 0; i < 8; i++)
        r[i] = request();
    char path[128];
    snprintf(path, sizeof path, "%s", r[0].path);
    for (int i = 0; i < 8; i++)
        r[i].path = path;
    workshop_run(&shop, "cp two cut && truncate -s 6000 cut");
    r[3].path = workshop_path(&shop, "cut");
    r[5].path = "/nowhere/at/all";
    r[6].kind = SYMBOL_OTHER;
    assert_int_equal(symbol_resolve_isolated(r, 8, &options, &sink, result, NULL), 0);
    for (int i = 0; i < 8; i++) {
        enum symbol_status want = i == 3   ? SYMBOL_DAMAGED
                                  : i == 5 ? SYMBOL_NOT_FOUND
                                  : i == 6 ? SYMBOL_NONE
                                           : SYMBOL_FULL;
        assert_int_equal(result[i].status, want);
        assert_int_equal(tally.of[i], want == SYMBOL_FULL ? 2 : 0);
    }
    harm = CRASH;
    memset(&tally, 0, sizeof tally);
    assert_int_equal(symbol_resolve_isolated(r, 8, &options, &sink, result, NULL), 0);
    harm = NO_HARM;
    for (int i = 0; i < 8; i++)
        assert_int_equal(tally.of[i], i == 3 || i == 5 || i == 6 ? 0 : 2);
    assert_int_equal(result[7].status, SYMBOL_FELL_BACK);
}

/* Every message cut short asks for more; every byte changed is refused or read within bounds. */
static void test_wire(void **state)
{
    (void)state;
    struct symbol_location l[2] = {{"f(int)", "_Z1fi", "/a.c", NULL, 7, 5, 0x1000},
                                   {"g", "g", NULL, "ext4", 0, 0, 0}};
    struct text out = TEXT_INIT;
    wire_put_answer(&out, 9, l, 2);
    struct wire_message m = {.strings = TEXT_INIT};
    for (size_t i = 0; i < out.len; i++)
        assert_int_equal(wire_get(out.data, i, &m), 0);
    assert_int_equal(wire_get(out.data, out.len, &m), out.len);
    assert_int_equal(m.index, 9);
    assert_int_equal(m.n, 2);
    assert_string_equal(m.location[0].linkage, "_Z1fi");
    assert_int_equal(m.location[0].start, 0x1000);
    assert_string_equal(m.location[1].module, "ext4");
    assert_ptr_equal(m.location[1].linkage, m.location[1].function);
    for (size_t i = 0; i < out.len * 256; i++) {
        char *copy = malloc(out.len);
        memcpy(copy, out.data, out.len);
        copy[i / 256] = (char)(i % 256);
        ssize_t got = wire_get(copy, out.len, &m);
        assert_true(got >= -1 && got <= (ssize_t)out.len);
        free(copy);
    }
    wire_release(&m);
    text_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_harm),    cmocka_unit_test(test_crash),
        cmocka_unit_test(test_hang),       cmocka_unit_test(test_greed),
        cmocka_unit_test(test_lies),       cmocka_unit_test(test_shrinking_file),
        cmocka_unit_test(test_neighbours), cmocka_unit_test(test_wire),
    };
    return cmocka_run_group_tests(tests, open_shop, close_shop);
}
