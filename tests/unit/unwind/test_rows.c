/* The compiler of rows on sections written by hand, damaged on purpose, and on files. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "section.h"
#include "unwind/rows_internal.h"

#define LIBC "/lib/x86_64-linux-gnu/libc.so.6"

/* push rbp; mov rsp, rbp; ...; an early return in the middle; ret */
static const uint8_t usual[] = {
    0x41, 0x0e, 16,   0x86, 2, /* +1: CFA at 16, rbp at CFA - 16 */
    0x43, 0x0d, 6,             /* +3: CFA from rbp */
    0x02, 0x20, 0x0a,          /* +0x20: remember */
    0x0c, 7,    8,    0xc6,    /* CFA = rsp + 8, rbp restored */
    0x41, 0x0b,                /* +1: back to what was remembered */
    0x03, 0x10, 0x01,          /* +0x110 */
    0x0c, 7,    8,    0xc6,
};

static void expect(const struct rows *rows, uint64_t vaddr, int kind, int reg, int offset, int fp)
{
    const struct row *row = rows_find(rows, vaddr);
    assert_non_null(row);
    assert_int_equal(row->kind, kind);
    assert_int_equal(row->cfa_reg, reg);
    assert_int_equal(row->cfa_offset, offset);
    assert_int_equal(row->slot[0], fp);
}

static void check_usual(const struct section *s)
{
    struct rows rows;
    struct rows_image image = section_image(s);
    assert_int_equal(rows_compile(&image, &rows), 0);
    assert_int_equal(rows.dropped, 0);
    assert_null(rows_find(&rows, 0x1fff));
    expect(&rows, 0x2000, ROW_FRAME, UNWIND_SP, 8, 0);
    expect(&rows, 0x2001, ROW_FRAME, UNWIND_SP, 16, 2);
    expect(&rows, 0x2004, ROW_FRAME, UNWIND_FP, 16, 2);
    expect(&rows, 0x2023, ROW_FRAME, UNWIND_FP, 16, 2);
    expect(&rows, 0x2024, ROW_FRAME, UNWIND_SP, 8, 0);
    expect(&rows, 0x2025, ROW_FRAME, UNWIND_FP, 16, 2);
    expect(&rows, 0x2135, ROW_FRAME, UNWIND_SP, 8, 0);
    expect(&rows, 0x21ff, ROW_FRAME, UNWIND_SP, 8, 0);
    expect(&rows, 0x2200, ROW_NONE, 0, 0, 0);
    assert_true(rows_valid(&rows));
    rows_release(&rows);
}

static void test_formats(void **state)
{
    (void)state;
    const uint8_t versions[] = {1, 3, 4};
    for (int i = 0; i < 12; i++) {
        struct section s = {.wide = i & 1, .debug = i >> 1 & 1};
        size_t cie = section_cie(&s, versions[i >> 2], NULL, 0);
        section_fde(&s, cie, 0x2000, 0x200, usual, sizeof(usual));
        check_usual(&s);
    }
}

static void test_order_and_overlap(void **state)
{
    (void)state;
    struct section s = {0};
    struct rows rows;
    const uint8_t deep[] = {0x0e, 64};
    const uint8_t deeper[] = {0x0e, 96, 0x01};
    size_t cie = section_cie(&s, 1, NULL, 0);
    section_fde(&s, cie, 0x4000, 0x100, deep, 2);
    section_fde(&s, cie, 0x2000, 0x200, usual, sizeof(usual));
    section_fde(&s, cie, 0x4080, 0x1000, deeper, 2); /* begins inside the first */
    section_fde(&s, cie, 0x4080, 0x10, deep, 2);     /* and a second one for it */
    section_fde(&s, cie, 0x10, 0x10, deep, 2);       /* outside the module */
    section_fde(&s, cie, 0x1ff000, 0x2000, deep, 2); /* past its end */
    section_fde(&s, 4, 0x5000, 0x10, deep, 2);       /* no CIE */
    struct rows_image image = section_image(&s);
    assert_int_equal(rows_compile(&image, &rows), 0);
    assert_int_equal(rows.dropped, 4);
    expect(&rows, 0x2000, ROW_FRAME, UNWIND_SP, 8, 0);
    expect(&rows, 0x3fff, ROW_NONE, 0, 0, 0);
    expect(&rows, 0x407f, ROW_FRAME, UNWIND_SP, 64, 0);
    expect(&rows, 0x4080, ROW_FRAME, UNWIND_SP, 96, 0);
    expect(&rows, 0x507f, ROW_FRAME, UNWIND_SP, 96, 0);
    expect(&rows, 0x5080, ROW_NONE, 0, 0, 0);
    assert_true(rows_valid(&rows));
    rows_release(&rows);
}

/* An instruction that makes no sense ends what is known of its function, and of no other. */
static void test_bad_instructions(void **state)
{
    (void)state;
    static const struct {
        uint8_t code[16];
        size_t size;
    } bad[] = {
        {{0x44, 0x3f}, 2}, /* unknown */
        {{0x44, 0x0b}, 2}, /* restore without remember */
        {{0x44, 0x0e, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, 13},
        {{0x44, 0x10, 6, 0x7f, 0x77}, 5},          /* expression past the end */
        {{0x44, 0x01, 0x00, 0x20, 0xf0, 0xff}, 6}, /* set_loc backwards */
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct section s = {0};
        struct rows rows;
        size_t cie = section_cie(&s, 1, NULL, 0);
        section_fde(&s, cie, 0x3000, 0x100, bad[i].code, bad[i].size);
        section_fde(&s, cie, 0x2000, 0x200, usual, sizeof(usual));
        struct rows_image image = section_image(&s);
        assert_int_equal(rows_compile(&image, &rows), 0);
        assert_int_equal(rows.dropped, 1);
        expect(&rows, 0x2004, ROW_FRAME, UNWIND_FP, 16, 2);
        expect(&rows, 0x3003, ROW_FRAME, UNWIND_SP, 8, 0);
        expect(&rows, 0x3004, ROW_NONE, 0, 0, 0);
        rows_release(&rows);
    }
}

static void test_special_rows(void **state)
{
    (void)state;
    const uint8_t end[] = {0x07, 16};
    const uint8_t load[] = {0x0f, 3, 0x76, 0x78, 0x06};      /* CFA = *(rbp - 8) */
    const uint8_t unknown[] = {0x0f, 2, 0x03, 0x06};         /* an operation we do not take */
    const uint8_t far[] = {0x05, 6, 0xff, 0x01, 0x42, 0x00}; /* rbp 255 words below */
    struct section s = {0};
    struct rows rows;
    size_t cie = section_cie(&s, 1, NULL, 0);
    section_fde(&s, cie, 0x2000, 0x10, end, sizeof(end));
    section_fde(&s, cie, 0x3000, 0x10, load, sizeof(load));
    section_fde(&s, cie, 0x4000, 0x10, unknown, sizeof(unknown));
    section_fde(&s, cie, 0x5000, 0x10, far, sizeof(far));
    struct rows_image image = section_image(&s);
    assert_int_equal(rows_compile(&image, &rows), 0);
    assert_int_equal(rows_find(&rows, 0x2000)->kind, ROW_END);
    const struct row *row = rows_find(&rows, 0x3000);
    assert_int_equal(row->kind, ROW_WIDE);
    assert_int_equal(rows.wide[row->cfa_offset].cfa.kind, RULE_EXPR);
    assert_int_equal(rows_find(&rows, 0x4000)->kind, ROW_NONE);
    row = rows_find(&rows, 0x5000);
    assert_int_equal(row->kind, ROW_WIDE);
    assert_int_equal(rows.wide[row->cfa_offset].reg[UNWIND_FP].value, -8 * 255);
    assert_true(rows_valid(&rows));
    rows_release(&rows);
}

/* Cut at every byte, with an unreadable page right after: never a fault, always valid rows. */
static void test_cut_anywhere(void **state)
{
    (void)state;
    struct section s = {0};
    const uint8_t load[] = {0x0f, 3, 0x76, 0x78, 0x06};
    size_t cie = section_cie(&s, 1, NULL, 0);
    section_fde(&s, cie, 0x2000, 0x200, usual, sizeof(usual));
    section_fde(&s, cie, 0x3000, 0x10, load, sizeof(load));
    uint8_t *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + 4096, 4096, PROT_NONE);
    for (size_t size = 0; size <= s.size; size++) {
        struct rows rows;
        struct rows_image image = section_image(&s);
        image.frame = pages + 4096 - size;
        image.frame_size = size;
        memcpy(pages + 4096 - size, s.data, size);
        int rc = rows_compile(&image, &rows);
        assert_true(rc == 0 || rc == -ENODATA);
        assert_true(rc || rows_valid(&rows));
        rows_release(&rows);
    }
    munmap(pages, 8192);
}

static struct rows rows_of(const char *path)
{
    struct rows rows;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(rows_read_elf(fd, &rows), 0);
    close(fd);
    return rows;
}

static void *slurp(const char *path, size_t *size)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    void *data = malloc((size_t)st.st_size);
    assert_int_equal(read(fd, data, (size_t)st.st_size), st.st_size);
    close(fd);
    *size = (size_t)st.st_size;
    return data;
}

/* Without section headers the segments lead to the same rows; so does the image in memory. */
static void test_without_sections(void **state)
{
    (void)state;
    size_t size;
    uint8_t *elf = slurp(LIBC, &size);
    Elf64_Ehdr *header = (Elf64_Ehdr *)elf;
    struct rows with = rows_of(LIBC), without;
    header->e_shnum = 0;
    header->e_shoff = 0;
    assert_int_equal(rows_read_memory(elf, size, &without), 0);
    assert_int_equal(with.count, without.count);
    assert_memory_equal(with.mapping, without.mapping, with.mapping_size);
    rows_release(&without);
    assert_true(rows_read_memory(elf, size / 2, &without) < 0);
    assert_int_equal(rows_read_memory(elf, 10, &without), -ENOEXEC);
    header->e_machine = EM_AARCH64;
    assert_int_equal(rows_read_memory(elf, size, &without), -ENOEXEC);
    rows_release(&with);
    free(elf);
}

/* Random damage to a real library. */
static void test_damaged_library(void **state)
{
    (void)state;
    size_t size;
    uint8_t *elf = slurp("/lib64/ld-linux-x86-64.so.2", &size), *copy = malloc(size);
    srandom(7);
    for (int i = 0; i < 150; i++) {
        struct rows rows;
        memcpy(copy, elf, size);
        for (int k = 0; k < 400; k++)
            copy[(size_t)random() % size] ^= (uint8_t)random();
        if (i % 3) /* or else the headers, too, are damaged */
            memcpy(copy, elf, 4096);
        if (rows_read_memory(copy, size, &rows) == 0)
            assert_true(rows_valid(&rows));
        rows_release(&rows);
    }
    free(copy);
    free(elf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),          cmocka_unit_test(test_order_and_overlap),
        cmocka_unit_test(test_bad_instructions), cmocka_unit_test(test_special_rows),
        cmocka_unit_test(test_cut_anywhere),     cmocka_unit_test(test_without_sections),
        cmocka_unit_test(test_damaged_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
