/*
 * Detours on x86-64; see detour.h. A page within two gigabytes of the functions gets for each of
 * them 64 bytes:
 *
 *     0   jmp *8(%rip); the hook's address      where the function's first bytes jump to
 *     16  its first instructions, moved; jmp back to the rest
 */
#include "agent/detour.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "agent/arch.h"
#include "agent/instruction.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define PAGE 4096ull
#define ENTRY 64
#define MOVED 16
#define REACH (1ull << 30)
#define STEP (1ull << 20)
#define JUMP_NEAR 0xe9

static uint64_t pages[DETOURS_SETS];
static size_t pages_len;

bool detour_has(uint64_t address)
{
    for (size_t i = 0; i < pages_len; i++)
        if (address - pages[i] < PAGE)
            return true;
    return false;
}

/* Below what is loaded first: above it the program's break would grow into us. */
static uint64_t page_near(uint64_t function)
{
    for (int up = 0; up < 2; up++)
        for (uint64_t far = STEP; far < REACH; far += STEP) {
            uint64_t at = (up ? function + REACH / 2 + far / 2 : function - far) & ~(PAGE - 1);
            if (!up && far > function - 65536)
                break;
            long got = raw6(SYS_mmap, at, PAGE, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
            if ((uint64_t)got == at)
                return at;
            if (got > 0 || got < -4095) /* a kernel that takes the flag for a hint */
                raw2(SYS_munmap, got, PAGE);
        }
    return 0;
}

/* Bytes of whole instructions, no fewer than a jump needs; behind a short function's end only what
 * fills up to the next one, within its page. 0 if that is not so. */
static size_t bytes_to_move(const uint8_t *code, uint64_t size)
{
    uint64_t end = ((uint64_t)(uintptr_t)code + size + PAGE - 1) & ~(PAGE - 1);
    size_t n = 0, there = end - (uint64_t)(uintptr_t)code;
    bool over = false;
    while (n < DETOUR_BYTES) {
        struct instruction i;
        if (!instruction_read(code + n, there - n, &i))
            return 0;
        if (over != (n >= size) || (over && i.kind != INSTRUCTION_NOTHING))
            return 0;
        over = over || i.kind == INSTRUCTION_JUMP || i.kind == INSTRUCTION_RETURN;
        n += i.size;
    }
    return n;
}

/* Whether a jump of the function itself leads into its first `moved` bytes. */
static bool is_entered_again(const uint8_t *code, uint64_t size, size_t moved)
{
    uint64_t start = (uint64_t)(uintptr_t)code;
    for (uint64_t at = moved; at < size;) {
        struct instruction i;
        if (!instruction_read(code + at, size - at, &i))
            return false;
        uint64_t target = start + at + i.size + (uint64_t)instruction_distance(code + at, &i);
        bool jumps = i.kind == INSTRUCTION_JUMP || i.kind == INSTRUCTION_BRANCH;
        if (jumps && target > start && target < start + moved)
            return true;
        at += i.size;
    }
    return false;
}

static bool entry_write(uint8_t *entry, struct detour *d)
{
    static const uint8_t far_jump[] = {0xff, 0x25, 2, 0, 0, 0, 0x66, 0x90};
    const uint8_t *code = (const uint8_t *)(uintptr_t)d->function;
    size_t moved = bytes_to_move(code, d->size);
    if (!moved || is_entered_again(code, d->size, moved))
        return false;
    memcpy(entry, far_jump, sizeof far_jump);
    memcpy(entry + 8, &d->hook, 8);
    uint64_t at = (uint64_t)(uintptr_t)entry + MOVED;
    size_t put = instruction_move(code, moved, at, entry + MOVED, ENTRY - MOVED - 5);
    if (!put)
        return false;
    int64_t back = (int64_t)(d->function + moved - (at + put + 5));
    int32_t distance = (int32_t)back;
    entry[MOVED + put] = JUMP_NEAR;
    memcpy(entry + MOVED + put + 1, &distance, 4);
    d->original = at;
    return back == distance;
}

static const struct detour *first_of(const struct detour *detours, size_t i)
{
    size_t k = 0;
    while (detours[k].function != detours[i].function)
        k++;
    return &detours[k];
}

/* The function's first bytes, which lie in one page or in two. Others may run on those pages. */
static int code_write(const struct detour *d, const uint8_t bytes[DETOUR_BYTES])
{
    uint64_t from = d->function & ~(PAGE - 1);
    uint64_t size = ((d->function + DETOUR_BYTES + PAGE - 1) & ~(PAGE - 1)) - from;
    long result = raw3(SYS_mprotect, from, size, PROT_READ | PROT_WRITE | PROT_EXEC);
    if (result != 0)
        result = raw3(SYS_mprotect, from, size, PROT_READ | PROT_WRITE);
    if (result != 0)
        return (int)result;
    memcpy((void *)(uintptr_t)d->function, bytes, DETOUR_BYTES);
    return (int)raw3(SYS_mprotect, from, size, PROT_READ | PROT_EXEC);
}

static int jump_write(const struct detour *d, uint64_t entry)
{
    uint8_t jump[DETOUR_BYTES] = {JUMP_NEAR};
    int32_t distance = (int32_t)(entry - (d->function + DETOUR_BYTES));
    memcpy(jump + 1, &distance, sizeof distance);
    return code_write(d, jump);
}

static int entries_write(uint64_t page_at, struct detour *detours, size_t count, size_t *failed)
{
    for (size_t i = 0; i < count; i++) {
        const struct detour *first = first_of(detours, i);
        *failed = i;
        if (first != &detours[i])
            detours[i].original = first->original;
        else if (!entry_write((uint8_t *)(uintptr_t)page_at + i * ENTRY, &detours[i]))
            return -ENOTSUP;
    }
    return (int)raw3(SYS_mprotect, page_at, PAGE, PROT_READ | PROT_EXEC);
}

int detours_make(struct detour *detours, size_t count, size_t *failed)
{
    uint8_t saved[PAGE / ENTRY][DETOUR_BYTES];
    *failed = 0;
    if (count == 0 || count > PAGE / ENTRY || pages_len == DETOURS_SETS)
        return -EINVAL;
    uint64_t page_at = page_near(detours[0].function);
    int result = page_at ? entries_write(page_at, detours, count, failed) : -ENOMEM;
    size_t done = 0;
    for (; result == 0 && done < count; done++) {
        *failed = done;
        memcpy(saved[done], (const void *)(uintptr_t)detours[done].function, DETOUR_BYTES);
        if (first_of(detours, done) == &detours[done])
            result = jump_write(&detours[done], page_at + done * ENTRY);
    }
    if (result == 0) {
        pages[pages_len++] = page_at;
        return 0;
    }
    while (done-- > 0)
        if (first_of(detours, done) == &detours[done])
            code_write(&detours[done], saved[done]);
    if (page_at)
        raw2(SYS_munmap, page_at, PAGE);
    return result;
}
