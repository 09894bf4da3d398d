/*
 * Any registers, any stack, any rules: a walk must end, within its window, and never write more
 * than it may. Input: 17 registers of 8 bytes, the bits of those that are known (4), the size of
 * the stack copy in words (2), the stack, and then a frame section whose rows cover all code.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/walk.h"

#define DEPTH 64
#define STACK_WORDS 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool take(const uint8_t **data, size_t *size, void *to, size_t want)
{
    if (*size < want)
        return false;
    memcpy(to, *data, want);
    *data += want;
    *size -= want;
    return true;
}

static void walk(const struct unwind_map *map, const struct unwind_regs *regs, const void *stack,
                 size_t size)
{
    uint64_t out[DEPTH + 1];
    struct unwind_end end;
    const struct unwind_memory memory = {
        .start = regs->value[UNWIND_SP], .data = stack, .size = size};
    out[DEPTH] = 0x5a5a;
    size_t count = unwind_walk(map, regs, &memory, out, DEPTH, &end);
    if (count > DEPTH || out[DEPTH] != 0x5a5a || end.interrupted >= DEPTH)
        abort();
    if (end.reason == UNWIND_DEPTH && count != DEPTH)
        abort();
}

/* The same on real memory: the stack is where the registers say. */
static void walk_local(const struct unwind_map *map, struct unwind_regs *regs, void *stack,
                       size_t size)
{
    static struct unwind_cache cache;
    uint64_t out[DEPTH], again[DEPTH], plain[DEPTH];
    uint64_t sp = (uint64_t)stack, moved = sp - regs->value[UNWIND_SP];
    regs->value[UNWIND_SP] = sp;
    regs->value[UNWIND_FP] += moved;
    memset(&cache, 0, sizeof(cache));
    cache.version = map->version;
    size_t cold = unwind_local(map, regs, sp + size, &cache, out, DEPTH, NULL);
    size_t warm = unwind_local(map, regs, sp + size, &cache, again, DEPTH, NULL);
    const struct unwind_memory memory = {.start = sp, .data = stack, .size = size};
    size_t slow = unwind_walk(map, regs, &memory, plain, DEPTH, NULL);
    if (cold != warm || cold != slow || memcmp(out, again, cold * 8) ||
        memcmp(out, plain, cold * 8))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct unwind_regs regs;
    uint16_t words;
    if (!take(&data, &size, regs.value, sizeof(regs.value)) ||
        !take(&data, &size, &regs.known, sizeof(regs.known)) || !take(&data, &size, &words, 2))
        return 0;
    words %= STACK_WORDS + 1;
    uint64_t *stack = calloc(words + 1u, 8); /* on the heap, so that ASan sees its ends */
    if (take(&data, &size, stack, words * 8u)) {
        struct rows rows;
        const struct rows_image image = {.frame = data,
                                         .frame_size = size,
                                         .frame_vaddr = 0x100000,
                                         .low = 0x1000,
                                         .high = 0x200000};
        int rc = rows_compile(&image, &rows);
        const struct unwind_module modules[] = {
            {.start = 0x1000, .end = 0x200000, .rows = rc ? NULL : &rows},
            {.start = 0x300000, .end = 0x400000},
        };
        struct unwind_map map = {0};
        if (unwind_map_set(&map, modules, 2) == 0) {
            walk(&map, &regs, stack, words * 8u);
            walk_local(&map, &regs, stack, words * 8u);
        }
        unwind_map_release(&map);
        rows_release(&rows);
    }
    free(stack);
    return 0;
}
