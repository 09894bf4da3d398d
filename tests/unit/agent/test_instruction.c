/* Machine instructions that a detour moves: their sizes, and that they mean the same elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/instruction.h"

static void sizes(void **state)
{
    static const struct {
        uint8_t bytes[15], size, kind;
    } all[] = {
        {{0xf3, 0x0f, 0x1e, 0xfa}, 4, INSTRUCTION_PLAIN},          /* endbr64 */
        {{0x55}, 1, INSTRUCTION_PLAIN},                            /* push %rbp */
        {{0x41, 0x57}, 2, INSTRUCTION_PLAIN},                      /* push %r15 */
        {{0x48, 0x89, 0xe5}, 3, INSTRUCTION_PLAIN},                /* mov %rsp,%rbp */
        {{0x48, 0x83, 0xec, 0x18}, 4, INSTRUCTION_PLAIN},          /* sub $24,%rsp */
        {{0x48, 0x81, 0xec, 0, 1, 0, 0}, 7, INSTRUCTION_PLAIN},    /* sub $256,%rsp */
        {{0x48, 0x8b, 0x05, 1, 2, 3, 4}, 7, INSTRUCTION_RELATIVE}, /* mov x(%rip),%rax */
        {{0x80, 0x3d, 1, 2, 3, 4, 0}, 7, INSTRUCTION_RELATIVE},    /* cmpb $0,x(%rip) */
        {{0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0}, 9, INSTRUCTION_PLAIN}, /* mov %fs:40,%rax */
        {{0x48, 0x85, 0xff}, 3, INSTRUCTION_PLAIN},                            /* test %rdi,%rdi */
        {{0x74, 0x10}, 2, INSTRUCTION_BRANCH},                                 /* je */
        {{0x0f, 0x84, 1, 0, 0, 0}, 6, INSTRUCTION_BRANCH},
        {{0xeb, 0x10}, 2, INSTRUCTION_JUMP},
        {{0xe9, 1, 0, 0, 0}, 5, INSTRUCTION_JUMP},
        {{0xe8, 1, 0, 0, 0}, 5, INSTRUCTION_CALL},
        {{0xc3}, 1, INSTRUCTION_RETURN},
        {{0x66, 0x0f, 0x1f, 0x44, 0, 0}, 6, INSTRUCTION_NOTHING},
        {{0x49, 0xbb, 1, 2, 3, 4, 5, 6, 7, 8}, 10, INSTRUCTION_PLAIN}, /* movabs */
        {{0x66, 0xb8, 1, 2}, 4, INSTRUCTION_PLAIN},                    /* mov $513,%ax */
        {{0xf6, 0x47, 0x08, 1}, 4, INSTRUCTION_PLAIN},                 /* testb $1,8(%rdi) */
        {{0xf7, 0xd8}, 2, INSTRUCTION_PLAIN},                          /* neg %eax */
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct instruction out;
        assert_true(instruction_read(all[i].bytes, sizeof all[i].bytes, &out));
        assert_int_equal(out.size, all[i].size);
        assert_int_equal(out.kind, all[i].kind);
        assert_false(instruction_read(all[i].bytes, all[i].size - 1u, &out));
    }
}

static void what_is_not_known(void **state)
{
    static const uint8_t vex[15] = {0xc5, 0xf8, 0x77}, invalid[15] = {0x06};
    struct instruction out;
    (void)state;
    assert_false(instruction_read(vex, sizeof vex, &out));
    assert_false(instruction_read(invalid, sizeof invalid, &out));
}

static void distances_follow(void **state)
{
    /* mov 0x100(%rip),%rax; je +0x20 */
    static const uint8_t code[32] = {0x48, 0x8b, 0x05, 0, 1, 0, 0, 0x74, 0x20};
    uint8_t moved[32];
    int32_t distance;
    uint64_t from = (uint64_t)(uintptr_t)code, at = from + 0x10000;
    (void)state;
    assert_int_equal(instruction_move(code, 9, at, moved, sizeof moved), 13);
    memcpy(&distance, moved + 3, 4);
    assert_int_equal(at + 7 + (uint64_t)distance, from + 7 + 0x100);
    assert_int_equal(moved[7], 0x0f);
    assert_int_equal(moved[8], 0x84);
    memcpy(&distance, moved + 9, 4);
    assert_int_equal(at + 13 + (uint64_t)distance, from + 9 + 0x20);
}

static void what_stays(void **state)
{
    static const uint8_t call[16] = {0xe8, 1, 0, 0, 0}, loop[16] = {0x55, 0xeb, 0xfd, 0x90, 0x90};
    uint8_t moved[32];
    (void)state;
    assert_int_equal(instruction_move(call, 5, (uint64_t)(uintptr_t)call, moved, 32), 0);
    assert_int_equal(instruction_move(loop, 5, (uint64_t)(uintptr_t)loop, moved, 32), 0);
    /* Too far for four bytes, and no room. */
    static const uint8_t load[16] = {0x48, 0x8b, 0x05, 0, 1, 0, 0};
    uint64_t far = (uint64_t)(uintptr_t)load + (1ull << 33);
    assert_int_equal(instruction_move(load, 7, far, moved, 32), 0);
    assert_int_equal(instruction_move(load, 7, (uint64_t)(uintptr_t)load, moved, 6), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(what_is_not_known),
        cmocka_unit_test(distances_follow),
        cmocka_unit_test(what_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
