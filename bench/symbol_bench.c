/*
 * Times sonde's symboliser against binutils' addr2line on one program: the same random addresses of
 * its .text, with inlined functions, in one batch. See symbol_bench.sh. symbol_bench PROGRAM
 * [ADDRESSES]
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "symbol/image.h"
#include "symbol/symbol.h"

#define ROUNDS 5

static int by_value(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

static uint64_t *pick(const struct image *image, size_t count)
{
    const struct image_section *text = image_find(image, ".text");
    if (!text || text->size == 0)
        return NULL;
    uint64_t *address = memory_array(count, sizeof *address);
    unsigned short seed[3] = {1, 2, 3};
    for (size_t i = 0; i < count; i++)
        address[i] = text->address + (uint64_t)(erand48(seed) * (double)text->size);
    qsort(address, count, sizeof *address, by_value);
    return address;
}

static uint64_t debug_bytes(const struct image *image)
{
    uint64_t total = 0;
    for (size_t i = 0; i < image->sections; i++)
        if (strncmp(image->section[i].name, ".debug_", 7) == 0)
            total += image->section[i].size;
    return total;
}

static void ignore(void *context, size_t module, size_t index,
                   const struct symbol_location *location, size_t n)
{
    (void)module, (void)index, (void)location;
    *(size_t *)context += n;
}

static uint64_t time_ours(const struct symbol_request *r, bool isolated, size_t *frames)
{
    struct symbol_options options = {0};
    struct symbol_result result;
    struct symbol_sink sink = {ignore, frames};
    *frames = 0;
    uint64_t start = clock_now();
    if (isolated)
        symbol_resolve_isolated(r, 1, &options, &sink, &result, NULL);
    else
        symbol_resolve(r, &options, &sink, &result, NULL);
    uint64_t took = clock_now() - start;
    if (result.status != SYMBOL_FULL)
        fprintf(stderr, "symbol_bench: %s: %s\n", symbol_status_name(result.status), result.note);
    return took;
}

static uint64_t best_of(const struct symbol_request *r, bool isolated, size_t *frames)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t took = time_ours(r, isolated, frames);
        best = took < best ? took : best;
    }
    return best;
}

static uint64_t time_addr2line(const struct symbol_request *r, const char *list)
{
    FILE *f = fopen(list, "w");
    if (!f)
        return 0;
    for (size_t i = 0; i < r->count; i++)
        fprintf(f, "0x%llx\n", (unsigned long long)r->address[i]);
    fclose(f);
    fflush(stdout);
    uint64_t start = clock_now();
    pid_t pid = fork();
    if (pid == 0) {
        if (!freopen(list, "r", stdin) || !freopen("/dev/null", "w", stdout))
            _exit(1);
        execlp("addr2line", "addr2line", "-i", "-f", "-e", r->path, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    if (status != 0)
        fprintf(stderr, "symbol_bench: addr2line ended with status %d\n", status);
    return clock_now() - start;
}

int main(int argc, char **argv)
{
    struct error err = {0};
    size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : 10000, frames = 0;
    struct image *image = argc > 1 ? image_open(NULL, argv[1], &err) : NULL;
    uint64_t *address = image && count ? pick(image, count) : NULL;
    if (!address) {
        fprintf(stderr, "usage: symbol_bench PROGRAM [ADDRESSES]  %s\n", err.text);
        return 2;
    }
    struct symbol_request r = {
        .kind = SYMBOL_ELF, .path = argv[1], .address = address, .count = count};
    printf("%zu addresses, %.1f MB of debug information\n", count,
           (double)debug_bytes(image) / 1e6);
    double ours = (double)best_of(&r, false, &frames) / 1e6;
    printf("symbol_resolve           %9.1f ms  (%zu frames)\n", ours, frames);
    printf("symbol_resolve_isolated  %9.1f ms\n", (double)best_of(&r, true, &frames) / 1e6);
    char list[] = "/tmp/symbol_bench.XXXXXX";
    int fd = mkstemp(list);
    double theirs = (double)time_addr2line(&r, list) / 1e6;
    printf("addr2line -i -f          %9.1f ms  (%.1f times ours)\n", theirs, theirs / ours);
    if (fd >= 0)
        close(fd);
    unlink(list);
    free(address);
    image_free(image);
    return 0;
}
