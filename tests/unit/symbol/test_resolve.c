/*
 * Programs with known functions, lines and inlined calls, in every dress in which binaries come:
 * stripped, with the debug file elsewhere, compressed, split, static, or with only a few names
 * left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "workshop.h"

static struct workshop shop;

/* Lines are counted on: keep them where they are. */
static const char program[] =
    "#include <stdio.h>\n"                                          /* 1 */
    "#define INLINE static inline __attribute__((always_inline))\n" /* 2 */
    "volatile int sink;\n"                                          /* 3 */
    "INLINE void deepest(int x)\n"                                  /* 4 */
    "{\n"                                                           /* 5 */
    "    sink = x * 3;\n"                                           /* 6 */
    "}\n"                                                           /* 7 */
    "INLINE void middle(int x)\n"                                   /* 8 */
    "{\n"                                                           /* 9 */
    "    deepest(x + 1);\n"                                         /* 10 */
    "}\n"                                                           /* 11 */
    "__attribute__((noinline)) int outermost(int x)\n"              /* 12 */
    "{\n"                                                           /* 13 */
    "    middle(x);\n"                                              /* 14 */
    "    return x;\n"                                               /* 15 */
    "}\n"                                                           /* 16 */
    "static __attribute__((noinline)) int hidden(int x)\n"          /* 17 */
    "{\n"                                                           /* 18 */
    "    return printf(\"%d\\n\", x);\n"                            /* 19 */
    "}\n"                                                           /* 20 */
    "int main(int argc, char **argv)\n"                             /* 21 */
    "{\n"                                                           /* 22 */
    "    (void)argv;\n"                                             /* 23 */
    "    return outermost(argc) + hidden(argc);\n"                  /* 24 */
    "}\n";

static int open_shop(void **state)
{
    (void)state;
    workshop_open(&shop);
    workshop_write(&shop, "program.c", program);
    return 0;
}

static int close_shop(void **state)
{
    (void)state;
    workshop_close(&shop);
    return 0;
}

static struct symbol_request request(const char *file, const uint64_t *address, size_t count)
{
    return (struct symbol_request){
        .kind = SYMBOL_ELF, .path = workshop_path(&shop, file), .address = address, .count = count};
}

/* All of outermost's bytes: among them must be the store of deepest, at its line with its callers.
 */
static void assert_inlined(const char *file, const struct symbol_request *where, uint64_t start)
{
    enum { BYTES = 16 };
    uint64_t address[BYTES];
    for (size_t i = 0; i < BYTES; i++)
        address[i] = start + i;
    struct symbol_request r = where ? *where : request(file, NULL, 0);
    r.address = address;
    r.count = BYTES;
    struct catch c;
    catch_isolated(&c, &r, NULL);
    if (c.result.status != SYMBOL_FULL)
        print_error("%s: %s\n", file, c.result.note);
    assert_int_equal(c.result.status, SYMBOL_FULL);
    bool seen = false;
    for (size_t i = 0; i < BYTES && !seen; i++) {
        const struct symbol_location *l = c.found[i].location;
        if (c.found[i].n != 3 || l[0].line != 6)
            continue;
        seen = true;
        assert_string_equal(l[0].function, "deepest");
        assert_int_equal(l[0].start_line, 4);
        assert_string_equal(l[1].function, "middle");
        assert_int_equal(l[1].line, 10);
        assert_int_equal(l[1].start_line, 8);
        assert_string_equal(l[2].function, "outermost");
        assert_int_equal(l[2].line, 14);
        assert_int_equal(l[2].start_line, 12);
        assert_int_equal(l[2].start, start);
        assert_string_equal(l[2].linkage, "outermost");
        for (int k = 0; k < 3; k++)
            assert_string_equal(l[k].file, workshop_path(&shop, "program.c"));
    }
    assert_true(seen);
    catch_release(&c);
}

static void built_with(const char *name, const char *flags)
{
    workshop_run(&shop, "gcc -O2 -g %s -o %s program.c", flags, name);
    assert_inlined(name, NULL, workshop_symbol(&shop, name, "outermost"));
}

static void test_own_debug_info(void **state)
{
    (void)state;
    built_with("pie", "-fPIE -pie");
    built_with("no-pie", "-no-pie");
    built_with("static", "-static");
    built_with("dwarf2", "-gdwarf-2");
    built_with("dwarf3", "-gdwarf-3");
    built_with("dwarf4", "-gdwarf-4");
    built_with("dwarf5", "-gdwarf-5");
    built_with("dwarf64", "-gdwarf64");
    built_with("sections", "-ffunction-sections -Wl,--gc-sections");
    built_with("zlib", "-gz=zlib");
    built_with("zlib-gnu", "-gz=zlib-gnu");
    built_with("no-build-id", "-Wl,--build-id=none");
}

static void test_clang(void **state)
{
    (void)state;
    if (!workshop_has("clang"))
        skip();
    static const char *const flags[] = {"-gdwarf-4", "-gdwarf-5", "-gdwarf-5 -gsplit-dwarf"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        workshop_run(&shop, "clang -O1 %s -o clang%zu program.c", flags[i], i);
        char name[16];
        snprintf(name, sizeof name, "clang%zu", i);
        assert_inlined(name, NULL, workshop_symbol(&shop, name, "outermost"));
    }
}

static void test_split(void **state)
{
    (void)state;
    workshop_run(&shop, "gcc -O2 -g -gsplit-dwarf -c program.c -o split.o && gcc split.o -o split");
    uint64_t start = workshop_symbol(&shop, "split", "outermost");
    assert_inlined("split", NULL, start);
    /* Without the .dwo file the skeleton still has lines, and the symbol table names. */
    workshop_run(&shop, "rm -f *.dwo");
    struct symbol_request r = request("split", &start, 1);
    struct catch c;
    catch_isolated(&c, &r, NULL);
    assert_int_equal(c.found[0].n, 1);
    assert_string_equal(c.found[0].location->function, "outermost");
    assert_true(c.found[0].location->line >= 6 && c.found[0].location->line <= 15);
    assert_int_equal(c.result.status, SYMBOL_NAMES);
    assert_non_null(strstr(c.result.note, ".dwo"));
    catch_release(&c);
}

/* A program stripped of everything, with its debug information in program.debug. */
static uint64_t separate(const char *folder)
{
    workshop_run(&shop,
                 "mkdir -p %s && gcc -O2 -g -o %s/program program.c && cd %s && "
                 "nm program > names && objcopy --only-keep-debug program program.debug && "
                 "strip program",
                 folder, folder, folder);
    char *out = workshop_output(&shop, "awk '$3 == \"outermost\" { print $1 }' %s/names", folder);
    uint64_t start = strtoull(out, NULL, 16);
    free(out);
    return start;
}

static void test_debug_link(void **state)
{
    (void)state;
    uint64_t start = separate("link");
    struct symbol_request r = request("link/program", &start, 1);
    struct catch c;
    catch_isolated(&c, &r, NULL);
    assert_int_equal(c.result.status, SYMBOL_STRIPPED);
    assert_true(strlen(c.result.note) > 0);
    assert_int_equal(c.result.resolved, 0);
    catch_release(&c);

    workshop_run(&shop, "cd link && objcopy --add-gnu-debuglink=program.debug program");
    assert_inlined("link/program", NULL, start);
    workshop_run(&shop, "cd link && mkdir .debug && mv program.debug .debug/");
    assert_inlined("link/program", NULL, start);
    /* Another program's debug file, by the same name, is not used. */
    workshop_run(&shop, "cd link && gcc -g -O0 -DOTHER -o other ../program.c && "
                        "objcopy --only-keep-debug other .debug/program.debug");
    r = request("link/program", &start, 1);
    catch_isolated(&c, &r, NULL);
    assert_int_equal(c.result.status, SYMBOL_STRIPPED);
    catch_release(&c);
}

/* Without build-ids only the CRC tells. */
static void test_debug_link_crc(void **state)
{
    (void)state;
    workshop_run(&shop,
                 "mkdir -p crc && gcc -O2 -g -Wl,--build-id=none -o crc/program program.c && "
                 "cd crc && nm program > names && "
                 "objcopy --only-keep-debug program program.debug && strip program && "
                 "objcopy --add-gnu-debuglink=program.debug program");
    char *out = workshop_output(&shop, "awk '$3 == \"outermost\" { print $1 }' crc/names");
    uint64_t start = strtoull(out, NULL, 16);
    free(out);
    assert_inlined("crc/program", NULL, start);
    workshop_run(&shop, "printf x >> crc/program.debug");
    struct symbol_request r = request("crc/program", &start, 1);
    struct catch c;
    catch_isolated(&c, &r, NULL);
    assert_int_equal(c.result.status, SYMBOL_STRIPPED);
    catch_release(&c);
}

static void test_build_id_below_root(void **state)
{
    (void)state;
    uint64_t start = separate("root/bin");
    uint8_t id[64];
    int len = symbol_build_id(NULL, workshop_path(&shop, "root/bin/program"), id, sizeof id, NULL);
    assert_int_equal(len, 20);
    char hex[64] = "";
    for (int i = 1; i < len; i++)
        snprintf(hex + 2 * (i - 1), 3, "%02x", id[i]);
    workshop_run(&shop,
                 "cd root && mkdir -p usr/lib/debug/.build-id/%02x && "
                 "mv bin/program.debug usr/lib/debug/.build-id/%02x/%s.debug",
                 id[0], id[0], hex);
    char root[128];
    snprintf(root, sizeof root, "%s/root", shop.folder);
    struct symbol_request r = {.kind = SYMBOL_ELF,
                               .path = "/bin/program",
                               .root = root,
                               .build_id = id,
                               .build_id_len = 20};
    assert_inlined("below a root", &r, start);
    /* An absolute link inside the root leads to a file inside the root. */
    workshop_run(&shop, "ln -s /bin/program root/link");
    r.path = "/link";
    assert_inlined("through a link", &r, start);
    /* The debug file is enough where the program itself is gone. */
    workshop_run(&shop, "rm root/bin/program");
    r.path = "/bin/program (deleted)";
    assert_inlined("deleted", &r, start);
}

/* A folder stands for the server. Only with the option; the file then stays in the cache. */
static void test_debuginfod(void **state)
{
    (void)state;
    uint64_t start = separate("served");
    uint8_t id[20];
    char hex[41] = "", cache[128], url[128];
    assert_int_equal(
        symbol_build_id(NULL, workshop_path(&shop, "served/program"), id, sizeof id, NULL), 20);
    for (size_t i = 0; i < sizeof id; i++)
        snprintf(hex + 2 * i, 3, "%02x", id[i]);
    workshop_run(
        &shop, "mkdir -p server/buildid/%s && mv served/program.debug server/buildid/%s/debuginfo",
        hex, hex);
    snprintf(cache, sizeof cache, "%s/cache", shop.folder);
    snprintf(url, sizeof url, "file:///nowhere file://%s/server/", shop.folder);
    setenv("XDG_CACHE_HOME", cache, 1);
    setenv("DEBUGINFOD_URLS", url, 1);
    struct symbol_options never = {0}, small = {.debuginfod = true, .debuginfod_max = 100},
                          asked = {.debuginfod = true};
    struct symbol_request r = request("served/program", &start, 1);
    struct catch c;
    catch_isolated(&c, &r, &never);
    assert_int_equal(c.result.status, SYMBOL_STRIPPED);
    catch_release(&c);
    catch_isolated(&c, &r, &small);
    assert_int_equal(c.result.status, SYMBOL_STRIPPED);
    catch_release(&c);
    catch_isolated(&c, &r, &asked);
    assert_int_equal(c.result.status, SYMBOL_FULL);
    assert_non_null(strstr(c.result.source, "/cache/sonde/debuginfod/"));
    catch_release(&c);
    workshop_run(&shop, "rm -r server");
    catch_isolated(&c, &r, &asked);
    assert_int_equal(c.result.status, SYMBOL_FULL);
    catch_release(&c);
    /* That no server has it is remembered too. */
    workshop_run(&shop, "rm cache/sonde/debuginfod/*");
    catch_isolated(&c, &r, &asked);
    assert_int_equal(c.result.status, SYMBOL_STRIPPED);
    catch_release(&c);
    workshop_run(&shop, "test -f cache/sonde/debuginfod/%s.debug", hex);
    workshop_run(&shop, "test ! -s cache/sonde/debuginfod/%s.debug", hex);
    unsetenv("DEBUGINFOD_URLS");
    unsetenv("XDG_CACHE_HOME");
}

static void test_other_build(void **state)
{
    (void)state;
    workshop_run(&shop, "gcc -O2 -g -o changed program.c");
    uint64_t start = workshop_symbol(&shop, "changed", "outermost");
    uint8_t id[20] = {1, 2, 3};
    struct symbol_request r = request("changed", &start, 1);
    r.build_id = id;
    r.build_id_len = sizeof id;
    struct catch c;
    catch_isolated(&c, &r, NULL);
    assert_int_equal(c.result.status, SYMBOL_MISMATCH);
    assert_int_equal(c.result.resolved, 0);
    assert_non_null(strstr(c.result.note, "not the file that ran"));
    catch_release(&c);
    r.build_id_len = 0;
    r.path = workshop_path(&shop, "absent");
    catch_isolated(&c, &r, NULL);
    assert_int_equal(c.result.status, SYMBOL_NOT_FOUND);
    catch_release(&c);
}

static void test_symbol_table(void **state)
{
    (void)state;
    workshop_run(&shop, "gcc -O2 -o plain program.c");
    uint64_t address[] = {workshop_symbol(&shop, "plain", "hidden"),
                          workshop_symbol(&shop, "plain", "outermost") + 2};
    if (address[0] > address[1]) {
        uint64_t swap = address[0];
        address[0] = address[1];
        address[1] = swap;
    }
    struct symbol_request r = request("plain", address, 2);
    struct catch c;
    catch_isolated(&c, &r, NULL);
    assert_int_equal(c.result.status, SYMBOL_NAMES);
    assert_int_equal(c.result.resolved, 2);
    assert_int_equal(c.result.with_lines, 0);
    assert_null(c.found[0].location->file);
    catch_release(&c);
}

/* Of several names for one address: global before local, few underscores, the sized one. */
static void test_aliases(void **state)
{
    (void)state;
    workshop_write(&shop, "alias.s",
                   ".text\n.globl __known\n.globl known\n.weak weakly\n"
                   ".type __known,@function\n.type known,@function\n.type weakly,@function\n"
                   ".type locally,@function\n"
                   "locally:\nweakly:\n__known:\nknown:\n nop\n nop\n nop\n ret\n"
                   ".size known,.-known\n.size __known,.-__known\n.size weakly,.-weakly\n"
                   ".size locally,.-locally\n"
                   ".p2align 4\n.globl unsized\nunsized:\n nop\n nop\n ret\n"
                   ".p2align 4\n.globl _start\n_start:\n ret\n");
    workshop_run(&shop, "gcc -nostdlib -static -o alias alias.s");
    uint64_t known = workshop_symbol(&shop, "alias", "known");
    uint64_t unsized = workshop_symbol(&shop, "alias", "unsized");
    uint64_t address[] = {known, known + 3, known + 5, unsized, unsized + 2};
    struct symbol_request r = request("alias", address, 5);
    struct catch c;
    catch_isolated(&c, &r, NULL);
    assert_string_equal(c.found[0].location->function, "known");
    assert_string_equal(c.found[1].location->function, "known");
    assert_int_equal(c.found[1].location->start, known);
    assert_int_equal(c.found[2].n, 0); /* padding belongs to nobody */
    assert_string_equal(c.found[3].location->function, "unsized");
    assert_string_equal(c.found[4].location->function, "unsized");
    catch_release(&c);
}

static void test_mini_debug_info(void **state)
{
    (void)state;
    workshop_run(&shop, "mkdir -p mini && gcc -O2 -g -o mini/program program.c && cd mini && "
                        "nm program > names && objcopy -S --remove-section .gnu_debuglink "
                        "--keep-symbol=hidden --keep-symbol=outermost program tiny && "
                        "objcopy --only-keep-debug tiny tiny.debug && xz -k tiny.debug && "
                        "strip program && "
                        "objcopy --add-section .gnu_debugdata=tiny.debug.xz program");
    char *out = workshop_output(&shop, "awk '$3 == \"hidden\" { print $1 }' mini/names");
    uint64_t address = strtoull(out, NULL, 16);
    free(out);
    struct symbol_request r = request("mini/program", &address, 1);
    struct catch c;
    catch_isolated(&c, &r, NULL);
    assert_int_equal(c.result.status, SYMBOL_NAMES);
    assert_int_equal(c.found[0].n, 1);
    assert_string_equal(c.found[0].location->function, "hidden");
    catch_release(&c);
}

static void check_plt(const char *flags)
{
    workshop_run(&shop, "gcc -O2 %s -o plt program.c", flags);
    char *out = workshop_output(&shop, "objdump -d plt | "
                                       "awk '/<printf@plt>:$/ { print $1 } "
                                       "/<_start>:$/ { print $1 }' | sort");
    char *end;
    uint64_t stub = strtoull(out, &end, 16), start = strtoull(end, NULL, 16);
    free(out);
    assert_true(stub && start);
    uint64_t address[] = {stub, stub + 4, stub + 10, start};
    struct symbol_request r = request("plt", address, 4);
    struct catch c;
    catch_isolated(&c, &r, NULL);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(c.found[i].n, 1);
        assert_string_equal(c.found[i].location->function, "printf@plt");
        assert_int_equal(c.found[i].location->start, stub);
    }
    assert_string_equal(c.found[3].location->function, "_start");
    catch_release(&c);
}

static void test_plt(void **state)
{
    (void)state;
    check_plt("-fcf-protection=none -Wl,-z,lazy");
    check_plt("-fcf-protection=full -Wl,-z,ibtplt -Wl,-z,lazy");
}

/* Functions that are methods lie inside their types; both manglings. */
static void check_rust(const char *mangling)
{
    workshop_write(&shop, "work.rs",
                   "pub struct Job { n: u64 }\n"
                   "impl Job {\n"
                   "    #[inline(never)]\n"
                   "    pub fn work(&self, k: u64) -> u64 {\n"
                   "        self.mix(k).wrapping_mul(31)\n"
                   "    }\n"
                   "    #[inline(always)]\n"
                   "    fn mix(&self, k: u64) -> u64 {\n"
                   "        self.n.rotate_left(7) ^ k\n"
                   "    }\n"
                   "}\n"
                   "fn main() {\n"
                   "    let j = Job { n: std::env::args().count() as u64 };\n"
                   "    println!(\"{}\", j.work(3));\n"
                   "}\n");
    workshop_run(&shop, "rustc -O -g -C symbol-mangling-version=%s -o work work.rs 2>/dev/null",
                 mangling);
    char *out = workshop_output(&shop, "nm work | awk '$3 ~ /3Job.*4work/ { print $1 }'");
    uint64_t start = strtoull(out, NULL, 16), address[12];
    free(out);
    assert_true(start != 0);
    for (size_t i = 0; i < 12; i++)
        address[i] = start + i;
    struct symbol_request r = request("work", address, 12);
    struct catch c;
    catch_isolated(&c, &r, NULL);
    bool inlined = false;
    for (size_t i = 0; i < 12; i++) {
        assert_true(c.found[i].n >= 1);
        const struct symbol_location *outer = &c.found[i].location[c.found[i].n - 1];
        assert_non_null(strstr(outer->function, "work::Job"));
        assert_non_null(strstr(outer->function, "::work"));
        assert_int_equal(outer->start_line, 4);
        inlined = inlined || (c.found[i].n >= 2 && outer->line == 5 &&
                              strstr(c.found[i].location[c.found[i].n - 2].function, "::mix"));
    }
    assert_true(inlined);
    catch_release(&c);
}

static void test_rust(void **state)
{
    (void)state;
    if (!workshop_has("rustc"))
        skip();
    check_rust("v0");
    if (workshop_try(&shop,
                     "rustc -C symbol-mangling-version=legacy --print cfg >/dev/null 2>&1") == 0)
        check_rust("legacy");
}

static void test_vdso(void **state)
{
    (void)state;
    uint64_t every[4096];
    for (size_t i = 0; i < 4096; i++)
        every[i] = i;
    struct symbol_request r = {.kind = SYMBOL_VDSO, .address = every, .count = 4096};
    struct catch c;
    catch_isolated(&c, &r, NULL);
    bool seen = false;
    for (size_t i = 0; i < 4096 && !seen; i++)
        seen = c.found[i].n && strstr(c.found[i].location->function, "clock_gettime");
    assert_true(seen);
    assert_int_equal(c.result.status, SYMBOL_NAMES);
    catch_release(&c);
}

static void test_wrong_order(void **state)
{
    (void)state;
    uint64_t address[] = {2, 1};
    struct symbol_request r = request("program.c", address, 2);
    struct symbol_result result;
    struct symbol_sink sink = {0};
    struct error err = {0};
    assert_int_equal(symbol_resolve(&r, NULL, &sink, &result, &err), FAULT_USAGE);
    assert_int_equal(symbol_resolve_isolated(&r, 1, NULL, &sink, &result, &err), FAULT_USAGE);
    assert_true(strlen(err.text) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_debug_info),
        cmocka_unit_test(test_clang),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_debug_link),
        cmocka_unit_test(test_debug_link_crc),
        cmocka_unit_test(test_build_id_below_root),
        cmocka_unit_test(test_debuginfod),
        cmocka_unit_test(test_other_build),
        cmocka_unit_test(test_symbol_table),
        cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_mini_debug_info),
        cmocka_unit_test(test_plt),
        cmocka_unit_test(test_rust),
        cmocka_unit_test(test_vdso),
        cmocka_unit_test(test_wrong_order),
    };
    return cmocka_run_group_tests(tests, open_shop, close_shop);
}
