/*
 * Files cut at every length and changed at random. Our own reader holds in this process; the whole
 * of it, libdw included, never takes the caller down. What comes out is a status and a sentence.
 */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/io.h"
#include "base/memory.h"
#include "workshop.h"

enum { ADDRESSES = 64 };

static struct workshop shop;
static char *original;
static size_t original_len;
static uint64_t address[ADDRESSES];

static int open_shop(void **state)
{
    (void)state;
    workshop_open(&shop);
    workshop_write(&shop, "p.c",
                   "static inline int twice(int x) { return x * 2; }\n"
                   "__attribute__((noinline)) int work(int x) { return twice(x) ^ twice(x + 1); }\n"
                   "int main(int argc, char **argv) { (void)argv; return work(argc); }\n");
    workshop_run(&shop, "gcc -O2 -g -o p p.c && gcc -O2 -g -gz -o z p.c");
    assert_int_equal(io_slurp(workshop_path(&shop, "p"), 1 << 24, &original, &original_len, NULL),
                     0);
    uint64_t start = workshop_symbol(&shop, "p", "main") & ~(uint64_t)15;
    for (size_t i = 0; i < ADDRESSES; i++)
        address[i] = start + i * 8;
    return 0;
}

static int close_shop(void **state)
{
    (void)state;
    free(original);
    workshop_close(&shop);
    return 0;
}

static struct symbol_request request(const char *file)
{
    return (struct symbol_request){.kind = SYMBOL_ELF,
                                   .path = workshop_path(&shop, file),
                                   .address = address,
                                   .count = ADDRESSES};
}

static void check(bool isolated, bool no_debug_info)
{
    struct symbol_request r = request("bad");
    struct symbol_options o = {.no_debug_info = no_debug_info, .cpu_seconds = 10};
    struct catch c;
    if (isolated)
        catch_isolated(&c, &r, &o);
    else
        catch_resolve(&c, &r, &o);
    assert_string_not_equal(symbol_status_name(c.result.status), "unknown");
    assert_true(c.result.resolved <= ADDRESSES);
    if (c.result.status != SYMBOL_FULL)
        assert_true(strlen(c.result.note) > 0);
    catch_release(&c);
}

static void test_cut(void **state)
{
    (void)state;
    for (size_t len = 0; len < original_len; len += len < 1024 ? 13 : 211) {
        workshop_write_bytes(&shop, "bad", original, len);
        check(false, true);
        if (len % 3 == 0)
            check(true, false);
    }
}

/* Where a mutation hurts most: headers, section headers, symbols, debug sections. */
static size_t place(unsigned short seed[3], const Elf64_Ehdr *e)
{
    size_t table = e->e_shoff, size = (size_t)e->e_shnum * e->e_shentsize;
    switch (nrand48(seed) % 4) {
    case 0:
        return (size_t)nrand48(seed) % 1024;
    case 1:
        return table + (size_t)nrand48(seed) % size;
    default:
        return (size_t)nrand48(seed) % original_len;
    }
}

static void mutate(unsigned short seed[3], char *data)
{
    static const unsigned char edge[] = {0, 1, 0x7f, 0x80, 0xff};
    Elf64_Ehdr e;
    memcpy(&e, original, sizeof e);
    memcpy(data, original, original_len);
    for (long n = 1 + nrand48(seed) % 12; n > 0; n--)
        data[place(seed, &e)] =
            nrand48(seed) % 2 ? (char)edge[nrand48(seed) % 5] : (char)nrand48(seed);
}

static void test_changed(void **state)
{
    (void)state;
    unsigned short seed[3] = {7, 8, 9};
    char *data = memory_alloc(original_len);
    for (int round = 0; round < 2000; round++) {
        mutate(seed, data);
        workshop_write_bytes(&shop, "bad", data, original_len);
        check(false, true);
        if (round % 4 == 0)
            check(true, false);
    }
    free(data);
}

/* The section of that name, or the first compressed one for NULL. */
static Elf64_Shdr *section(char *file, const char *name)
{
    Elf64_Ehdr *e = (Elf64_Ehdr *)file;
    Elf64_Shdr *s = (Elf64_Shdr *)(file + e->e_shoff);
    const char *names = file + s[e->e_shstrndx].sh_offset;
    for (int i = 0; i < e->e_shnum; i++)
        if (name ? strcmp(names + s[i].sh_name, name) == 0 : s[i].sh_flags & SHF_COMPRESSED)
            return &s[i];
    fail_msg("no section %s", name ? name : "that is compressed");
    return NULL;
}

static void test_bomb(void **state)
{
    (void)state;
    char *data;
    size_t len;
    assert_int_equal(io_slurp(workshop_path(&shop, "z"), 1 << 24, &data, &len, NULL), 0);
    Elf64_Shdr *s = section(data, NULL);
    ((Elf64_Chdr *)(data + s->sh_offset))->ch_size = (uint64_t)1 << 40;
    workshop_write_bytes(&shop, "bad", data, len);
    free(data);
    struct symbol_request r = request("bad");
    struct catch c;
    catch_resolve(&c, &r, NULL);
    assert_int_equal(c.result.status, SYMBOL_FELL_BACK);
    assert_non_null(strstr(c.result.note, "compressed"));
    assert_true(c.result.resolved > 0);
    assert_int_equal(c.result.with_lines, 0);
    catch_release(&c);
}

static void test_many_sections(void **state)
{
    (void)state;
    char *data = memory_dup(original, original_len);
    Elf64_Ehdr *e = (Elf64_Ehdr *)data;
    e->e_shnum = 0;
    ((Elf64_Shdr *)(data + e->e_shoff))->sh_size = UINT32_MAX;
    workshop_write_bytes(&shop, "bad", data, original_len);
    free(data);
    struct symbol_request r = request("bad");
    struct catch c;
    catch_isolated(&c, &r, NULL);
    assert_int_equal(c.result.status, SYMBOL_DAMAGED);
    assert_non_null(strstr(c.result.note, "sections"));
    catch_release(&c);
}

/* A million symbols that all cover everything must not cost their product. */
static void test_overlapping_symbols(void **state)
{
    (void)state;
    char *data = memory_dup(original, original_len);
    Elf64_Shdr *s = section(data, ".symtab"), *text = section(data, ".text");
    Elf64_Sym *sym = (Elf64_Sym *)(data + s->sh_offset);
    for (size_t i = 1; i < s->sh_size / sizeof *sym; i++) {
        sym[i].st_info = STT_FUNC;
        sym[i].st_shndx = (Elf64_Half)(text - (Elf64_Shdr *)(data + ((Elf64_Ehdr *)data)->e_shoff));
        sym[i].st_value = i % 3 ? 1 : UINT64_MAX;
        sym[i].st_size = UINT64_MAX;
    }
    workshop_write_bytes(&shop, "bad", data, original_len);
    free(data);
    struct symbol_request r = request("bad");
    struct symbol_options o = {.no_debug_info = true};
    struct catch c;
    catch_resolve(&c, &r, &o);
    assert_int_equal(c.result.resolved, ADDRESSES);
    catch_release(&c);
}

static void test_not_a_file(void **state)
{
    (void)state;
    workshop_run(&shop, "mkfifo fifo && ln -s loop loop && mkdir folder");
    static const char *const name[] = {"fifo", "loop", "folder"};
    for (int i = 0; i < 3; i++) {
        struct symbol_request r = request(name[i]);
        struct catch c;
        catch_isolated(&c, &r, NULL);
        assert_int_equal(c.result.status, SYMBOL_NOT_FOUND);
        catch_release(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_changed),
        cmocka_unit_test(test_bomb),
        cmocka_unit_test(test_many_sections),
        cmocka_unit_test(test_overlapping_symbols),
        cmocka_unit_test(test_not_a_file),
    };
    return cmocka_run_group_tests(tests, open_shop, close_shop);
}
