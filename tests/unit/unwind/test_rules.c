/*
 * Our rows against libdw's rules, address by address, on the real binaries of the machine: at every
 * n-th change of rules, the addresses beside it, and some in between. With file names as arguments
 * compares those, at every change.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>
#include <cmocka.h>

#include "oracle.h"

struct tally {
    size_t compared, different;
};

static void compare(const struct rows *rows, Dwarf_CFI *cfi, uint64_t vaddr, const char *path,
                    struct tally *tally)
{
    struct oracle_frame ours, theirs;
    oracle_ours(rows, vaddr, &ours);
    oracle_libdw(cfi, vaddr, &theirs);
    tally->compared++;
    if (oracle_equal(&ours, &theirs))
        return;
    if (tally->different++ < 5)
        print_message("%s: %#lx: fate %d/%d cfa %lx/%lx known %x/%x\n", path, vaddr, ours.fate,
                      theirs.fate, ours.cfa, theirs.cfa, ours.known, theirs.known);
}

static struct tally compare_file(int fd, const char *path, size_t wanted)
{
    struct tally tally = {0};
    struct rows rows;
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    Dwarf_CFI *cfi = elf ? dwarf_getcfi_elf(elf) : NULL;
    int rc = rows_read_elf(fd, &rows);
    assert_int_equal(rc == 0, cfi != NULL);
    if (rc == 0) {
        assert_int_equal(rows.dropped, 0);
        size_t stride = wanted && rows.count > wanted ? rows.count / wanted : 1;
        for (size_t i = 0; i < rows.count; i += stride) {
            uint64_t at = rows.base + rows.row[i].pc;
            uint64_t next = i + 1 < rows.count ? rows.base + rows.row[i + 1].pc : at + 1;
            compare(&rows, cfi, at, path, &tally);
            compare(&rows, cfi, at - 1, path, &tally);
            compare(&rows, cfi, at + (next - at) / 2, path, &tally);
        }
    }
    rows_release(&rows);
    if (cfi)
        dwarf_cfi_end(cfi);
    elf_end(elf);
    return tally;
}

static const char *const real[] = {
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/lib64/ld-linux-x86-64.so.2",
    "/usr/bin/python3",
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
    "/usr/lib/x86_64-linux-gnu/libgmp.so.10",
    "/usr/bin/bash",
    "/usr/bin/perl",
    "/usr/lib/gcc/x86_64-linux-gnu/12/cc1",
    "/usr/lib/x86_64-linux-gnu/libx265.so.199",
};

/* At least 999 of 1000 rules of every installed binary mean what libdw says. */
static void test_real_binaries(void **state)
{
    (void)state;
    size_t files = 0;
    for (size_t i = 0; i < sizeof(real) / sizeof(real[0]); i++) {
        int fd = open(real[i], O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        struct tally t = compare_file(fd, real[i], 3000);
        print_message("%-45s %6zu addresses, %zu differ\n", real[i], t.compared, t.different);
        assert_true(t.compared > 100);
        assert_true(t.different * 1000 <= t.compared);
        close(fd);
        files++;
    }
    assert_true(files >= 3);
}

int main(int argc, char **argv)
{
    elf_version(EV_CURRENT);
    size_t different = 0;
    for (int i = 1; i < argc; i++) {
        int fd = open(argv[i], O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        struct tally t = compare_file(fd, argv[i], 0);
        print_message("%-45s %6zu addresses, %zu differ\n", argv[i], t.compared, t.different);
        different += t.different;
        close(fd);
    }
    if (argc > 1)
        return different != 0;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_real_binaries)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
