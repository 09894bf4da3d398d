/* Names that do not come from ELF files: mangled ones, the kernel's, and those of compilers at run
 * time. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "symbol/kernel_cache.h"
#include "workshop.h"

static struct workshop shop;

static int open_shop(void **state)
{
    (void)state;
    workshop_open(&shop);
    return 0;
}

static int close_shop(void **state)
{
    (void)state;
    workshop_close(&shop);
    return 0;
}

static void demangles(const char *linkage, const char *want)
{
    char out[SYMBOL_TEXT_MAX];
    assert_int_equal(symbol_demangle(linkage, out), strcmp(linkage, want) != 0);
    assert_string_equal(out, want);
}

static void test_demangle(void **state)
{
    (void)state;
    demangles("main", "main");
    demangles("_start", "_start");
    demangles("_Z", "_Z");
    demangles("_ZN5outer5inner5ThingC1Ev", "outer::inner::Thing::Thing()");
    demangles("_ZSt4moveIRiEONSt16remove_referenceIT_E4typeEOS2_",
              "std::remove_reference<int&>::type&& std::move<int&>(int&)");
    demangles("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad");
    demangles("_RNvC6_123foo3bar", "123foo::bar");
    demangles("_RNvMCsjMaewn57Afh_1tNtB2_1P3mix", "<t::P>::mix");
}

/* Names made to explode: each finishes at once and within the bound. */
static void test_demangle_hostile(void **state)
{
    (void)state;
    char out[SYMBOL_TEXT_MAX];
    uint64_t start = clock_now();
    static const char *const fill[] = {"P", "N",    "S_", "I",     "T_", "F",
                                       "X", "DpT_", "K",  "3fooI", "A_"};
    for (size_t i = 0; i < sizeof fill / sizeof *fill; i++)
        for (size_t len = 500; len <= 8000; len += 1500) {
            struct text t = TEXT_INIT;
            text_add(&t, "_Z1f");
            while (t.len < len)
                text_add(&t, fill[i]);
            text_add(&t, "i");
            symbol_demangle(t.data, out);
            assert_true(strlen(out) < SYMBOL_TEXT_MAX);
            text_release(&t);
        }
    /* Each substitution doubles what the last one stood for. */
    struct text t = TEXT_INIT;
    text_add(&t, "_Z1fSt4pairIiiES_IS0_S0_E");
    for (int i = 1; i < 33; i++) {
        char seq[4] = {0};
        snprintf(seq, sizeof seq, "%c", i < 10 ? '0' + i : 'A' + i - 10);
        text_format(&t, "S_IS%s_S%s_E", seq, seq);
    }
    symbol_demangle(t.data, out);
    assert_true(strlen(out) < SYMBOL_TEXT_MAX);
    text_release(&t);
    assert_true(clock_now() - start < 5000000000u);
}

static void test_kernel(void **state)
{
    (void)state;
    workshop_write(&shop, "kallsyms",
                   "0000000000001000 A percpu\n"
                   "ffffffff81000000 T _stext\n"
                   "ffffffff81000000 T startup\n"
                   "ffffffff81000100 t local_one\n"
                   "ffffffff81000100 W weak_one\n"
                   "ffffffff81000200 D some_data\n"
                   "ffffffff81000300 T last\n"
                   "ffffffffc0001000 t ext4_read\t[ext4]\n"
                   "ffffffffc0000000 t xfs_write\t[xfs]\n"
                   "garbage\n"
                   "ffffffffc0000800 t bpf_prog_1234_name\t[bpf]\n");
    uint64_t address[] = {0xffffffff80000000, 0xffffffff81000000, 0xffffffff81000050,
                          0xffffffff81000150, 0xffffffff81000250, 0xffffffff81000350,
                          0xffffffffc0000010, 0xffffffffc0000900, 0xffffffffc0001fff};
    static const char *const want[] = {NULL,       "startup", "startup",   "weak_one",
                                       NULL,       "last",    "xfs_write", "bpf_prog_1234_name",
                                       "ext4_read"};
    struct symbol_request r = {.kind = SYMBOL_KERNEL, .address = address, .count = 9};
    r.path = workshop_path(&shop, "kallsyms");
    struct catch c;
    catch_isolated(&c, &r, NULL);
    assert_int_equal(c.result.status, SYMBOL_NAMES);
    for (size_t i = 0; i < 9; i++) {
        assert_int_equal(c.found[i].n, want[i] ? 1 : 0);
        if (want[i])
            assert_string_equal(c.found[i].location->function, want[i]);
    }
    assert_string_equal(c.found[8].location->module, "ext4");
    assert_null(c.found[5].location->module);
    catch_release(&c);
    workshop_write(&shop, "hidden", "0000000000000000 T _stext\n0000000000000000 T startup\n");
    r.path = workshop_path(&shop, "hidden");
    catch_isolated(&c, &r, NULL);
    assert_int_equal(c.result.status, SYMBOL_DENIED);
    assert_non_null(strstr(c.result.note, "kptr_restrict"));
    assert_int_equal(c.result.resolved, 0);
    catch_release(&c);
}

static const char core_symbols[] = "ffffffff81000000 T _stext\n"
                                   "ffffffff81000100 t local_one\n"
                                   "ffffffff81000400 T _etext\n"
                                   "ffffffffc0001000 t ext4_read\t[ext4]\n";

static int open_copy(const char *name)
{
    return open(workshop_path(&shop, name), O_RDWR | O_CREAT | O_TRUNC, 0600);
}

static void gather(void *context, const char *lines, size_t len)
{
    text_add_len(context, lines, len);
}

/* Of many symbols only the parts are read that matter; all those of one address are in one. */
static void test_kernel_parts(void **state)
{
    (void)state;
    struct text symbols = TEXT_INIT, parts = TEXT_INIT;
    text_add(&symbols, "ffffffff81000000 T _stext\n");
    for (unsigned i = 0; i < 6000; i++)
        text_format(&symbols, "%llx t symbol_%u\n%llx T alias_%u\n", 0xffffffff81000000ull + i * 16,
                    i, 0xffffffff81000000ull + i * 16, i);
    text_add(&symbols, "ffffffff81020000 T _etext\nffffffff80000000 t odd\n");
    int fd = open_copy("parts");
    assert_int_equal(kernel_cache_write(fd, symbols.data, symbols.len, ""), 0);
    for (unsigned i = 0; i < 6000; i += 7) {
        const uint64_t address[] = {0xffffffff81000000ull + i * 16 + 3, 0xffffffff8101ffff};
        char wanted[2][32];
        snprintf(wanted[0], sizeof wanted[0], " t symbol_%u\n", i);
        snprintf(wanted[1], sizeof wanted[1], " T alias_%u\n", i);
        text_clear(&parts);
        assert_true(kernel_cache_parts(fd, address, 2, gather, &parts));
        assert_true(parts.len < symbols.len / 3);
        assert_non_null(strstr(parts.data, wanted[0]));
        assert_non_null(strstr(parts.data, wanted[1]));
        assert_non_null(strstr(parts.data, " T alias_5999\n"));
    }
    const uint64_t elsewhere[] = {0xffffffff81000003, 0xffffffffc0000000};
    assert_false(kernel_cache_parts(fd, elsewhere, 2, gather, &parts));
    close(fd);
    text_release(&symbols);
    text_release(&parts);
}

/* A copy answers for the kernel's own code and its modules, and for nothing between them. */
static void test_kernel_copy(void **state)
{
    (void)state;
    int fd = open_copy("copy");
    assert_int_equal(kernel_cache_write(fd, core_symbols, strlen(core_symbols),
                                        "ext4 8192 1 - Live 0xffffffffc0001000\nnonsense\n"),
                     0);
    const uint64_t inside[] = {0xffffffff81000150, 0xffffffffc0001fff};
    const uint64_t outside[] = {0xffffffff81000150, 0xffffffffc0000800};
    assert_int_equal(kernel_cache_covers(fd, outside, 2), -1);
    assert_int_equal(kernel_cache_covers(fd, outside, 1), 0);
    assert_int_equal(kernel_cache_covers(fd, inside, 2), 0);
    char rest[sizeof core_symbols];
    assert_int_equal(read(fd, rest, sizeof rest), strlen(core_symbols));
    assert_memory_equal(rest, core_symbols, strlen(core_symbols));
    /* Cut within its head, or nothing like one: the kernel is asked. */
    assert_int_equal(ftruncate(fd, 20), 0);
    assert_int_equal(kernel_cache_covers(fd, inside, 1), -1);
    close(fd);
    workshop_write(&shop, "copy", "\n\n\nzz 11 22\n");
    fd = open(workshop_path(&shop, "copy"), O_RDONLY);
    assert_int_equal(kernel_cache_covers(fd, inside, 1), -1);
    close(fd);
    fd = open_copy("hidden");
    assert_int_equal(kernel_cache_write(fd, "0000000000000000 T _stext\n", 26, ""), -1);
    close(fd);
}

/* The names are the same from the kernel and from the copy that the first question leaves. */
static void test_kernel_twice(void **state)
{
    (void)state;
    FILE *f = fopen("/proc/kallsyms", "r");
    char line[512], name[256];
    uint64_t address = 0;
    while (f && fgets(line, sizeof line, f) && (!address || strstr(name, "_stext")))
        if (sscanf(line, "%lx %*1[tT] %255s", &address, name) != 2)
            address = 0;
    if (f)
        fclose(f);
    if (!address)
        skip(); /* hidden from this user */
    setenv("XDG_CACHE_HOME", shop.folder, 1);
    struct symbol_request r = {.kind = SYMBOL_KERNEL, .address = &address, .count = 1};
    char *first = NULL;
    for (int i = 0; i < 2; i++) {
        struct catch c;
        catch_isolated(&c, &r, NULL);
        assert_int_equal(c.found[0].n, 1);
        if (first)
            assert_string_equal(c.found[0].location->function, first);
        else
            first = memory_strdup(c.found[0].location->function);
        catch_release(&c);
        assert_int_equal(workshop_try(&shop, "test $(ls sonde/kernel | wc -l) = 1"), 0);
    }
    free(first);
    unsetenv("XDG_CACHE_HOME");
}

static void test_perf_map(void **state)
{
    (void)state;
    workshop_write(&shop, "perf.map",
                   "1000 100 old_one\n"
                   "0x2000 0x10 with prefix and spaces\r\n"
                   "nonsense\n"
                   "3000 0 empty\n"
                   "1000 80 new_one\n"
                   "5000 20 py::work:/srv/app/job.py\n"
                   "fffffffffffffff0 100 at_the_end\n"
                   "6000 10 no_newline");
    uint64_t address[] = {0x1000, 0x107f, 0x1080, 0x10ff, 0x1100,
                          0x200f, 0x3000, 0x5001, 0x6001, UINT64_MAX - 1};
    static const char *const want[] = {
        "new_one", "new_one", "old_one",    "old_one",   NULL, "with prefix and spaces",
        NULL,      "work",    "no_newline", "at_the_end"};
    struct symbol_request r = {.kind = SYMBOL_PERF_MAP, .address = address, .count = 10};
    r.path = workshop_path(&shop, "perf.map");
    struct catch c;
    catch_isolated(&c, &r, NULL);
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(c.found[i].n, want[i] ? 1 : 0);
        if (want[i])
            assert_string_equal(c.found[i].location->function, want[i]);
    }
    assert_string_equal(c.found[7].location->file, "/srv/app/job.py");
    assert_string_equal(c.found[7].location->linkage, "py::work:/srv/app/job.py");
    catch_release(&c);
}

/* By process: in /tmp, where every compiler writes it. */
static void test_perf_map_by_pid(void **state)
{
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("7f0000001000 40 compiled\n", f);
    fclose(f);
    uint64_t address = 0x7f0000001010;
    struct symbol_request r = {
        .kind = SYMBOL_PERF_MAP, .pid = getpid(), .address = &address, .count = 1};
    struct catch c;
    catch_isolated(&c, &r, NULL);
    unlink(path);
    assert_int_equal(c.found[0].n, 1);
    assert_string_equal(c.found[0].location->function, "compiled");
    catch_release(&c);
    catch_isolated(&c, &r, NULL);
    assert_int_equal(c.result.status, SYMBOL_NOT_FOUND);
    catch_release(&c);
}

static void add32(struct text *t, uint32_t v)
{
    text_add_len(t, &v, sizeof v);
}

static void add64(struct text *t, uint64_t v)
{
    text_add_len(t, &v, sizeof v);
}

static void add_record(struct text *t, uint32_t id, const struct text *body)
{
    add32(t, id);
    add32(t, (uint32_t)(16 + body->len));
    add64(t, 1);
    text_add_len(t, body->data, body->len);
}

static void add_load(struct text *t, uint64_t start, uint64_t size, uint64_t index,
                     const char *name)
{
    struct text b = TEXT_INIT;
    add32(&b, 1);
    add32(&b, 1);
    add64(&b, start);
    add64(&b, start);
    add64(&b, size);
    add64(&b, index);
    text_add_len(&b, name, strlen(name) + 1);
    text_add_repeat(&b, 'c', size);
    add_record(t, 0, &b);
    text_release(&b);
}

static void add_lines(struct text *t, uint64_t start)
{
    struct text b = TEXT_INIT;
    add64(&b, start);
    add64(&b, 2);
    add64(&b, start);
    add32(&b, 10);
    add32(&b, 0);
    text_add_len(&b, "/srv/a.js", 10);
    add64(&b, start + 8);
    add32(&b, 12);
    add32(&b, 0);
    text_add_len(&b, "\xff", 2);
    add_record(t, 2, &b);
    text_release(&b);
}

static void make_dump(struct text *t)
{
    static const uint32_t head[6] = {0x4a695444, 1, 40, 62, 0, 1};
    text_add_len(t, head, sizeof head);
    add64(t, 1);
    add64(t, 0);
    add_load(t, 0x1000, 32, 1, "first");
    add_lines(t, 0x2000);
    add_load(t, 0x2000, 16, 2, "lined");
    add_load(t, 0x1010, 16, 3, "over_first");
    struct text move = TEXT_INIT;
    add32(&move, 1);
    add32(&move, 1);
    add64(&move, 0x4000);
    add64(&move, 0x2000);
    add64(&move, 0x4000);
    add64(&move, 16);
    add64(&move, 2);
    add_record(t, 1, &move);
    text_release(&move);
}

static void test_jitdump(void **state)
{
    (void)state;
    struct text dump = TEXT_INIT;
    make_dump(&dump);
    workshop_write_bytes(&shop, "jit.dump", dump.data, dump.len);
    uint64_t address[] = {0x100f, 0x1010, 0x2004, 0x2009, 0x3000, 0x4009};
    static const char *const want[] = {"first", "over_first", "lined", "lined", NULL, "lined"};
    static const unsigned line[] = {0, 0, 10, 12, 0, 12};
    struct symbol_request r = {.kind = SYMBOL_JITDUMP, .address = address, .count = 6};
    r.path = workshop_path(&shop, "jit.dump");
    struct catch c;
    catch_isolated(&c, &r, NULL);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(c.found[i].n, want[i] ? 1 : 0);
        if (!want[i])
            continue;
        assert_string_equal(c.found[i].location->function, want[i]);
        assert_int_equal(c.found[i].location->line, line[i]);
    }
    assert_string_equal(c.found[3].location->file, "/srv/a.js");
    catch_release(&c);
    /* Cut anywhere, it names what is whole. */
    for (size_t len = 0; len < dump.len; len += 7) {
        workshop_write_bytes(&shop, "jit.dump", dump.data, len);
        catch_resolve(&c, &r, NULL);
        assert_true(c.result.resolved < 6);
        catch_release(&c);
    }
    text_release(&dump);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_demangle),     cmocka_unit_test(test_demangle_hostile),
        cmocka_unit_test(test_kernel),       cmocka_unit_test(test_perf_map),
        cmocka_unit_test(test_kernel_copy),  cmocka_unit_test(test_kernel_parts),
        cmocka_unit_test(test_kernel_twice), cmocka_unit_test(test_perf_map_by_pid),
        cmocka_unit_test(test_jitdump),
    };
    return cmocka_run_group_tests(tests, open_shop, close_shop);
}
