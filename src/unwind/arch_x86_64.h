/* x86-64's half of arch.h; include that one. Numbers are those of the psABI's DWARF table. */
#ifndef SONDE_UNWIND_ARCH_X86_64_H
#define SONDE_UNWIND_ARCH_X86_64_H

#define UNWIND_REGS 17
#define UNWIND_FP 6
#define UNWIND_SP 7
#define UNWIND_IP 16

/* rbx, rbp, r12-r15 */
#define UNWIND_CALLEE_SAVED (1u << 3 | 1u << 6 | 0xfu << 12)
#define UNWIND_SLOTS 6
#define UNWIND_RA_OFFSET (-8)
#define UNWIND_ELF_MACHINE 62 /* EM_X86_64 */

/* ax..sp (0-7), ip (8), r8-r15 (16-23) of asm/perf_regs.h */
#define UNWIND_PERF_MASK 0xff01ffull

/* Only what survives a call is worth the stores: the callers' rules can use nothing else. */
#define unwind_regs_here(regs)                                                                     \
    do {                                                                                           \
        struct unwind_regs *r_ = (regs);                                                           \
        __asm__ volatile("movq %%rbx, 24(%0)\n\t"                                                  \
                         "movq %%rbp, 48(%0)\n\t"                                                  \
                         "movq %%rsp, 56(%0)\n\t"                                                  \
                         "movq %%r12, 96(%0)\n\t"                                                  \
                         "movq %%r13, 104(%0)\n\t"                                                 \
                         "movq %%r14, 112(%0)\n\t"                                                 \
                         "movq %%r15, 120(%0)\n\t"                                                 \
                         "leaq 0(%%rip), %%rax\n\t"                                                \
                         "movq %%rax, 128(%0)"                                                     \
                         :                                                                         \
                         : "r"(r_->value)                                                          \
                         : "rax", "memory");                                                       \
        r_->known = UNWIND_CALLEE_SAVED | 1u << UNWIND_SP | 1u << UNWIND_IP;                       \
    } while (0)

#endif
