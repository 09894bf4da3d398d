/*
 * What unwinding costs: 20 frames of this program's own stack by rows, by frame pointers and by
 * libunwind (if built with it), warm and cold; and the time to compile the rows of the files named
 * on the command line (libc and some large libraries if there are none).
 */
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef HAVE_LIBUNWIND
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#endif

#include "unwind/walk.h"

#define DEPTH 20
#define ROUNDS 200
#define CALLS 2000

static struct unwind_map map;
static struct unwind_cache cache;
static uint64_t stack_hi;

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int add_module(struct dl_phdr_info *info, size_t size, void *ctx)
{
    (void)size;
    (void)ctx;
    struct rows *rows = calloc(1, sizeof(*rows));
    if (rows_read_loaded(info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum, rows)) {
        free(rows);
        return 0;
    }
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + p->p_vaddr;
        struct unwind_module m = {.start = start & ~4095ull,
                                  .end = (start + p->p_memsz + 4095) & ~4095ull,
                                  .bias = info->dlpi_addr,
                                  .rows = rows};
        if (p->p_type == PT_LOAD && p->p_flags & PF_X)
            unwind_map_add(&map, &m);
    }
    return 0;
}

static size_t by_rows(uint64_t *out)
{
    return unwind_here(&map, stack_hi, &cache, out, DEPTH, NULL);
}

static size_t by_rows_cold(uint64_t *out)
{
    struct unwind_regs regs;
    unwind_regs_here(&regs);
    uint64_t sp = regs.value[UNWIND_SP];
    const struct unwind_memory m = {
        .start = sp, .data = (const void *)sp, .size = (size_t)(stack_hi - sp)};
    return unwind_walk(&map, &regs, &m, out, DEPTH, NULL);
}

static size_t by_frame_pointers(uint64_t *out)
{
    size_t n = 0;
    uint64_t *fp = __builtin_frame_address(0);
    while (n < DEPTH && (uint64_t)fp < stack_hi - 16 && fp[0] > (uint64_t)fp) {
        out[n++] = fp[1];
        fp = (uint64_t *)fp[0];
    }
    return n;
}

#ifdef HAVE_LIBUNWIND
static size_t by_libunwind(uint64_t *out)
{
    return (size_t)unw_backtrace((void **)out, DEPTH);
}
#endif

static void measure(const char *name, size_t (*walk)(uint64_t *))
{
    uint64_t out[DEPTH];
    double best = 1e18;
    size_t frames = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double start = now_ns();
        for (int i = 0; i < CALLS; i++)
            frames = walk(out);
        double took = (now_ns() - start) / CALLS;
        best = took < best ? took : best;
    }
    printf("%-32s %8.1f ns for %zu frames\n", name, best, frames);
}

/* Frames of different sizes, some with saved registers, none of them merged into the next. */
#define LAYER(name, next, bytes)                                                                   \
    static __attribute__((noinline)) int name(int x)                                               \
    {                                                                                              \
        volatile char room[bytes];                                                                 \
        room[0] = (char)x;                                                                         \
        return next(x + 1) + room[0];                                                              \
    }

static __attribute__((noinline)) int bottom(int x)
{
    measure("rows, remembered", by_rows);
    measure("rows, searched", by_rows_cold);
    measure("frame pointers", by_frame_pointers);
#ifdef HAVE_LIBUNWIND
    measure("libunwind unw_backtrace", by_libunwind);
#endif
    return x;
}

LAYER(layer20, bottom, 24)
LAYER(layer19, layer20, 40)
LAYER(layer18, layer19, 8)
LAYER(layer17, layer18, 100)
LAYER(layer16, layer17, 24)
LAYER(layer15, layer16, 16)
LAYER(layer14, layer15, 300)
LAYER(layer13, layer14, 24)
LAYER(layer12, layer13, 72)
LAYER(layer11, layer12, 24)
LAYER(layer10, layer11, 1000)
LAYER(layer9, layer10, 24)
LAYER(layer8, layer9, 48)
LAYER(layer7, layer8, 24)
LAYER(layer6, layer7, 24)
LAYER(layer5, layer6, 64)
LAYER(layer4, layer5, 24)
LAYER(layer3, layer4, 200)
LAYER(layer2, layer3, 24)
LAYER(layer1, layer2, 24)

static void measure_compile(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    double best = 1e18;
    struct rows rows = {0};
    int rc = 0;
    for (int i = 0; i < 5 && !rc; i++) {
        rows_release(&rows);
        double start = now_ns();
        rc = rows_read_elf(fd, &rows);
        double took = now_ns() - start;
        best = took < best ? took : best;
    }
    close(fd);
    if (rc)
        printf("%-48s %s\n", path, strerror(-rc));
    else
        printf("%-48s %8.2f ms, %u rows, %u wide, %zu KB\n", path, best / 1e6, rows.count,
               rows.wide_count, rows.mapping_size / 1024);
    rows_release(&rows);
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {
        "/lib/x86_64-linux-gnu/libc.so.6",          "/usr/bin/python3",
        "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
        "/usr/lib/gcc/x86_64-linux-gnu/12/cc1",     "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1",
    };
    extern void *__libc_stack_end;
    stack_hi = (uint64_t)__libc_stack_end;
    dl_iterate_phdr(add_module, NULL);
    layer1(argc);
    if (argc == 1) {
        for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
            measure_compile(usual[i]);
    }
    for (int i = 1; i < argc; i++)
        measure_compile(argv[i]);
    return 0;
}
