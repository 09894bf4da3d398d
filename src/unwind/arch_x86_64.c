/* Register blocks of x86-64, as signals, perf and ptrace lay them out; see arch.h. */
#include "unwind/arch.h"

#include <errno.h>
#include <string.h>
#include <sys/ucontext.h>
#include <sys/user.h>

const uint8_t unwind_slot_reg[UNWIND_SLOTS] = {6, 3, 12, 13, 14, 15};

#define ALL_KNOWN ((1u << UNWIND_REGS) - 1)

void unwind_regs_from_ucontext(struct unwind_regs *regs, const void *ucontext)
{
    static const uint8_t greg[UNWIND_REGS] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                              REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                              REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    const ucontext_t *uc = ucontext;
    for (size_t i = 0; i < UNWIND_REGS; i++)
        regs->value[i] = (uint64_t)uc->uc_mcontext.gregs[greg[i]];
    regs->known = ALL_KNOWN;
}

void unwind_regs_from_perf(struct unwind_regs *regs, uint64_t mask, const uint64_t *values,
                           size_t count)
{
    /* perf's order: ax bx cx dx si di bp sp ip flags cs ss ds es fs gs r8-r15 */
    static const int8_t dwarf[24] = {0,  3,  2,  1,  4, 5, 6,  7,  16, -1, -1, -1,
                                     -1, -1, -1, -1, 8, 9, 10, 11, 12, 13, 14, 15};
    memset(regs, 0, sizeof(*regs));
    size_t next = 0;
    for (; mask && next < count; mask &= mask - 1) {
        unsigned bit = (unsigned)__builtin_ctzll(mask);
        uint64_t value = values[next++];
        if (bit >= sizeof(dwarf) || dwarf[bit] < 0)
            continue;
        regs->value[dwarf[bit]] = value;
        regs->known |= 1u << dwarf[bit];
    }
}

int unwind_regs_from_prstatus(struct unwind_regs *regs, const void *block, size_t size)
{
    struct user_regs_struct u;
    if (size != sizeof(u))
        return -EINVAL;
    memcpy(&u, block, sizeof(u));
    const uint64_t value[UNWIND_REGS] = {u.rax, u.rdx, u.rcx, u.rbx, u.rsi, u.rdi,
                                         u.rbp, u.rsp, u.r8,  u.r9,  u.r10, u.r11,
                                         u.r12, u.r13, u.r14, u.r15, u.rip};
    memcpy(regs->value, value, sizeof(value));
    regs->known = ALL_KNOWN;
    return 0;
}
