/* Walks of made-up stacks: frame pointers, loops, damaged rules. And the map itself. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "unwind/walk.h"

#define STACK 0x7000ull /* where the made-up stack begins */
#define JIT 0x100000ull /* code without rows */
#define LIB 0x200000ull /* code with rows */

static uint64_t words[64];
static const struct unwind_memory memory = {.start = STACK, .data = words, .size = sizeof(words)};

static const struct row lib_row[] = {
    {.pc = 0, .kind = ROW_FRAME, .cfa_reg = UNWIND_SP, .cfa_offset = 16},
    {.pc = 0x100, .kind = ROW_END},
    {.pc = 0x200, .kind = ROW_FRAME, .cfa_reg = 10, .cfa_offset = 8},
    {.pc = 0x300, .kind = ROW_FRAME, .cfa_reg = UNWIND_SP, .cfa_offset = -64},
    {.pc = 0x400, .kind = ROW_NONE},
};
static const struct rows lib = {.row = lib_row, .count = sizeof(lib_row) / sizeof(lib_row[0])};

static const struct unwind_module modules[] = {
    {.start = JIT, .end = JIT + 0x1000},
    {.start = LIB, .end = LIB + 0x1000, .bias = LIB, .rows = &lib},
};

static struct unwind_map map;

static struct unwind_regs at(uint64_t ip, uint64_t fp)
{
    struct unwind_regs regs = {.known = 1u << UNWIND_IP | 1u << UNWIND_SP | 1u << UNWIND_FP};
    regs.value[UNWIND_IP] = ip;
    regs.value[UNWIND_SP] = STACK;
    regs.value[UNWIND_FP] = fp;
    return regs;
}

static size_t walk(struct unwind_regs regs, uint64_t *out, struct unwind_end *end)
{
    return unwind_walk(&map, &regs, &memory, out, 32, end);
}

static int set_up(void **state)
{
    (void)state;
    memset(words, 0, sizeof(words));
    return unwind_map_set(&map, modules, 2);
}

/* jit -> jit -> lib by rows -> outermost */
static void test_frame_pointers(void **state)
{
    (void)state;
    uint64_t out[32];
    struct unwind_end end;
    words[4] = STACK + 64; /* frame of the first */
    words[5] = JIT + 0x80;
    words[8] = 0xdead; /* frame of the second: fp of a caller that has none */
    words[9] = LIB + 0x10;
    words[11] = LIB + 0x110; /* 16 bytes further by lib's row */
    assert_int_equal(walk(at(JIT + 4, STACK + 32), out, &end), 4);
    assert_int_equal(out[1], JIT + 0x80);
    assert_int_equal(out[2], LIB + 0x10);
    assert_int_equal(out[3], LIB + 0x110);
    assert_int_equal(end.reason, UNWIND_COMPLETE);
    assert_int_equal(end.guessed, 2);
}

static void test_implausible_frame_pointers(void **state)
{
    (void)state;
    uint64_t out[32];
    struct unwind_end end;
    words[5] = 0x1234; /* not code */
    assert_int_equal(walk(at(JIT + 4, STACK + 32), out, &end), 1);
    assert_int_equal(end.reason, UNWIND_NO_ROWS);
    words[5] = JIT + 8;
    walk(at(JIT + 4, STACK + 33), out, &end); /* not aligned */
    assert_int_equal(end.reason, UNWIND_NO_ROWS);
    walk(at(JIT + 4, STACK - 64), out, &end); /* below the stack */
    assert_int_equal(end.reason, UNWIND_NO_ROWS);
    walk(at(JIT + 4, STACK + 0x10000), out, &end); /* beyond the copy */
    assert_int_equal(end.reason, UNWIND_MEMORY);
    assert_int_equal(end.address, STACK + 0x10000);
    walk(at(0x5000, STACK + 32), out, &end); /* in no module, but a good frame: followed */
    assert_int_equal(out[1], JIT + 8);
    words[4] = 0; /* the mark of the outermost frame */
    assert_int_equal(walk(at(JIT + 4, STACK + 32), out, &end), 2);
    assert_int_equal(end.reason, UNWIND_COMPLETE);
}

/* Assembler without rows or frame that was just called: its return address is on top. */
static void test_bare_leaf(void **state)
{
    (void)state;
    uint64_t out[32];
    struct unwind_end end;
    words[0] = LIB + 0x10;
    words[2] = LIB + 0x110;
    assert_int_equal(walk(at(LIB + 0x410, 3), out, &end), 3);
    assert_int_equal(out[1], LIB + 0x10);
    assert_int_equal(end.reason, UNWIND_COMPLETE);
    assert_int_equal(end.guessed, 1);
    words[0] = JIT + 0x10; /* returns to where there are no rows to bear it out */
    assert_int_equal(walk(at(LIB + 0x410, 3), out, &end), 1);
    assert_int_equal(end.reason, UNWIND_NO_ROWS);
    assert_int_equal(end.address, LIB + 0x410);
    words[0] = 7; /* no address of code: a register that was pushed */
    words[1] = LIB + 0x10;
    words[3] = LIB + 0x110;
    assert_int_equal(walk(at(LIB + 0x410, 3), out, &end), 3);
    assert_int_equal(out[1], LIB + 0x10);
    assert_int_equal(end.reason, UNWIND_COMPLETE);
}

/* A program's first instruction: nothing on the stack but arguments, every register cleared. */
static void test_entry(void **state)
{
    (void)state;
    uint64_t out[32];
    struct unwind_end end;
    struct unwind_regs regs = at(LIB + 0x410, 0);
    words[0] = 1;
    words[1] = STACK + 256;
    walk(regs, out, &end); /* not all are known */
    assert_int_equal(end.reason, UNWIND_NO_ROWS);
    regs.known |= UNWIND_CALLEE_SAVED;
    assert_int_equal(walk(regs, out, &end), 1);
    assert_int_equal(end.reason, UNWIND_COMPLETE);
    regs.value[12] = 1; /* one is in use: this code was called */
    walk(regs, out, &end);
    assert_int_equal(end.reason, UNWIND_NO_ROWS);
}

static void test_loops(void **state)
{
    (void)state;
    uint64_t out[32];
    struct unwind_end end;
    words[4] = STACK + 32; /* points at itself */
    words[5] = JIT + 8;
    assert_true(walk(at(JIT + 4, STACK + 32), out, &end) <= 3);
    assert_int_not_equal(end.reason, UNWIND_COMPLETE);
    words[0] = LIB + 0x310; /* a rule that leads down the stack */
    struct unwind_regs regs = at(LIB + 0x310, 0);
    regs.value[UNWIND_SP] = STACK + 128;
    words[7] = LIB + 0x310;
    assert_int_equal(walk(regs, out, &end), 1);
    assert_int_equal(end.reason, UNWIND_NO_PROGRESS);
}

static void test_unknown_register(void **state)
{
    (void)state;
    uint64_t out[32];
    struct unwind_end end;
    assert_int_equal(walk(at(LIB + 0x210, 0), out, &end), 1);
    assert_int_equal(end.reason, UNWIND_LOST);
    struct unwind_regs none = {0};
    assert_int_equal(walk(none, out, &end), 0);
    assert_int_equal(end.reason, UNWIND_LOST);
}

/* A mapping put over others cuts, splits and replaces them, as mmap does. */
static void test_map_overlaps(void **state)
{
    (void)state;
    struct unwind_map m = {0};
    struct unwind_module found;
    const struct unwind_module a = {.start = 100, .end = 200, .bias = 1};
    const struct unwind_module b = {.start = 140, .end = 160, .bias = 2};
    const struct unwind_module c = {.start = 150, .end = 300, .bias = 3};
    assert_false(unwind_map_find(&m, 100, &found));
    assert_int_equal(unwind_map_add(&m, &a), 0);
    assert_int_equal(unwind_map_add(&m, &b), 0);
    assert_int_equal(unwind_map_count(&m), 3);
    assert_true(unwind_map_find(&m, 139, &found) && found.bias == 1 && found.end == 140);
    assert_true(unwind_map_find(&m, 140, &found) && found.bias == 2);
    assert_true(unwind_map_find(&m, 160, &found) && found.bias == 1 && found.start == 160);
    assert_int_equal(unwind_map_add(&m, &c), 0);
    assert_int_equal(unwind_map_count(&m), 3);
    assert_true(unwind_map_find(&m, 149, &found) && found.bias == 2);
    assert_true(unwind_map_find(&m, 150, &found) && found.bias == 3);
    assert_true(unwind_map_find(&m, 299, &found) && found.bias == 3);
    assert_false(unwind_map_find(&m, 300, &found));
    assert_false(unwind_map_find(&m, 99, &found));
    assert_int_equal(unwind_map_remove(&m, 120, 250), 0);
    assert_true(unwind_map_find(&m, 119, &found) && found.bias == 1);
    assert_false(unwind_map_find(&m, 120, &found));
    assert_true(unwind_map_find(&m, 250, &found) && found.bias == 3);
    struct unwind_map copy = {0};
    assert_int_equal(unwind_map_copy(&copy, &m), 0);
    assert_int_equal(unwind_map_count(&copy), 2);
    unwind_map_release(&copy);
    unwind_map_release(&m);
    assert_false(unwind_map_find(&m, 250, &found));
}

static void *churn(void *arg)
{
    struct unwind_map *m = arg;
    for (uint64_t i = 0; i < 3000; i++) {
        struct unwind_module module = {.start = 0x10000 + i % 500 * 32, .bias = i};
        module.end = module.start + 32;
        unwind_map_add(m, &module);
        if (i % 7 == 0)
            unwind_map_remove(m, 0x10000, 0x12000);
    }
    return NULL;
}

/* A module that never changes is found at every moment while others come and go. */
static void test_map_concurrent(void **state)
{
    (void)state;
    struct unwind_map m = {0};
    const struct unwind_module low = {.start = 0x1000, .end = 0x2000, .bias = 0x111};
    const struct unwind_module high = {.start = 0x900000, .end = 0x901000, .bias = 0x222};
    struct unwind_module found;
    pthread_t thread;
    unwind_map_add(&m, &low);
    unwind_map_add(&m, &high);
    pthread_create(&thread, NULL, churn, &m);
    while (pthread_tryjoin_np(thread, NULL)) {
        assert_true(unwind_map_find(&m, 0x1800, &found));
        assert_int_equal(found.bias, 0x111);
        assert_true(unwind_map_find(&m, 0x900800, &found));
        assert_int_equal(found.bias, 0x222);
    }
    unwind_map_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_frame_pointers, set_up),
        cmocka_unit_test_setup(test_implausible_frame_pointers, set_up),
        cmocka_unit_test_setup(test_bare_leaf, set_up),
        cmocka_unit_test_setup(test_entry, set_up),
        cmocka_unit_test_setup(test_loops, set_up),
        cmocka_unit_test_setup(test_unknown_register, set_up),
        cmocka_unit_test(test_map_overlaps),
        cmocka_unit_test(test_map_concurrent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
