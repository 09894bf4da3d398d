/*
 * mcount and __fentry__, which functions call before anything else, with their arguments in
 * registers that must be as they were: the usual case is written with integer registers alone (so
 * this file is compiled), the rare one behind a save of all others. libc's own is called last, and
 * finds the stack as if nobody had been here.
 */
#pragma GCC target("general-regs-only")
#include "agent/native_calls.h"

bool native_begins(uint64_t function, uint64_t slot)
{
    struct trace_thread *t = trace_own();
    if (!native_real_known)
        return true;
    if (!trace_settings.calls || native_busy)
        return false;
    if (!t || !t->native)
        return true;
    struct trace_entry *e = trace_find(function);
    uint32_t ended = native_ended(t->native, slot);
    if (!e || t->head + ended + 1 > t->limit || trace_now() - t->last > TRACE_DELTA_MAX / 2)
        return true;
    if (slot < agent_self.stack_low || slot >= agent_self.stack_end)
        return false; /* another stack than the thread's own has no order with this one */
    native_busy = true;
    native_step(t, e->id, slot, ended);
    native_busy = false;
    return false;
}

/* libc's, or 0. */
extern uint64_t native_real_mcount __attribute__((visibility("hidden")));
extern uint64_t native_real_fentry __attribute__((visibility("hidden")));

/* The stack: what is left of the room for registers, nine registers, rbx (to which rbx points), the
 * place in the function that called, and for __fentry__ at once the function's return address. */
#define ENTRY(name, slot, real)                                                                    \
    __asm__(".text\n"                                                                              \
            ".globl " name "\n"                                                                    \
            ".type " name ", @function\n" name ":\n"                                               \
            "  .cfi_startproc\n"                                                                   \
            "  push %rbx\n"                                                                        \
            "  .cfi_adjust_cfa_offset 8\n"                                                         \
            "  .cfi_rel_offset rbx, 0\n"                                                           \
            "  mov %rsp, %rbx\n"                                                                   \
            "  .cfi_def_cfa_register rbx\n"                                                        \
            "  push %rax\n  push %rcx\n  push %rdx\n  push %rsi\n  push %rdi\n"                    \
            "  push %r8\n  push %r9\n  push %r10\n  push %r11\n"                                   \
            "  mov 8(%rbx), %rdi\n"                                                                \
            "  lea " slot ", %rsi\n"                                                               \
            "  and $-16, %rsp\n"                                                                   \
            "  call native_begins\n"                                                               \
            "  test %al, %al\n"                                                                    \
            "  je 1f\n"                                                                            \
            "  mov 8(%rbx), %rdi\n"                                                                \
            "  lea " slot ", %rsi\n"                                                               \
            "  call native_save_and_begin\n"                                                       \
            "1:\n"                                                                                 \
            "  lea -72(%rbx), %rsp\n"                                                              \
            "  pop %r11\n  pop %r10\n  pop %r9\n  pop %r8\n"                                       \
            "  pop %rdi\n  pop %rsi\n  pop %rdx\n  pop %rcx\n  pop %rax\n"                         \
            "  pop %rbx\n"                                                                         \
            "  .cfi_def_cfa rsp, 8\n"                                                              \
            "  .cfi_restore rbx\n"                                                                 \
            "  mov " real "(%rip), %r11\n"                                                         \
            "  test %r11, %r11\n"                                                                  \
            "  je 2f\n"                                                                            \
            "  jmp *%r11\n"                                                                        \
            "2:\n"                                                                                 \
            "  ret\n"                                                                              \
            "  .cfi_endproc\n"                                                                     \
            ".size " name ", . - " name "\n")

ENTRY("mcount", "8(%rbp)", "native_real_mcount");
ENTRY("__fentry__", "16(%rbx)", "native_real_fentry");
/* Old compilers' name for it. */
__asm__(".globl _mcount\n.set _mcount, mcount\n");

/* All of the processor's other state that a function's arguments can be in: x87, SSE, AVX and
 * AVX-512, in 64-byte aligned room whose header is empty. */
__asm__(".text\n"
        ".type native_save_and_begin, @function\n"
        "native_save_and_begin:\n"
        "  .cfi_startproc\n"
        "  push %rbp\n"
        "  .cfi_adjust_cfa_offset 8\n"
        "  .cfi_rel_offset rbp, 0\n"
        "  mov %rsp, %rbp\n"
        "  .cfi_def_cfa_register rbp\n"
        "  sub $4096, %rsp\n"
        "  and $-64, %rsp\n"
        "  xor %eax, %eax\n"
        "  mov %rax, 512(%rsp)\n  mov %rax, 520(%rsp)\n  mov %rax, 528(%rsp)\n"
        "  mov %rax, 536(%rsp)\n  mov %rax, 544(%rsp)\n  mov %rax, 552(%rsp)\n"
        "  mov %rax, 560(%rsp)\n  mov %rax, 568(%rsp)\n"
        "  mov $0xe7, %eax\n"
        "  xor %edx, %edx\n"
        "  xsave64 (%rsp)\n"
        "  call native_begins_rarely\n"
        "  mov $0xe7, %eax\n"
        "  xor %edx, %edx\n"
        "  xrstor64 (%rsp)\n"
        "  leave\n"
        "  .cfi_def_cfa rsp, 8\n"
        "  ret\n"
        "  .cfi_endproc\n"
        ".size native_save_and_begin, . - native_save_and_begin\n");
