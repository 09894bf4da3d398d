/*
 * What the unwinder must know about a processor. Everything that differs from one architecture to
 * the next stands behind this header: a new one is a new arch_<name>.h (the numbers) and
 * arch_<name>.c (the functions below), picked here and in meson.build.
 *
 * An arch_<name>.h defines
 *   UNWIND_REGS                     how many registers are followed, in DWARF's numbering
 *   UNWIND_IP, UNWIND_SP, UNWIND_FP the instruction, stack and frame pointer among them
 *   UNWIND_CALLEE_SAVED             bit mask of what a function hands back unchanged
 *   UNWIND_SLOTS                    how many of those a row has room for
 *   UNWIND_RA_OFFSET                where a call leaves the return address, relative to the CFA
 *   UNWIND_ELF_MACHINE              e_machine
 *   UNWIND_PERF_MASK                the value for perf_event_attr.sample_regs_user
 *   unwind_regs_here(regs)          fills regs with the state of the calling function, inline
 */
#ifndef SONDE_UNWIND_ARCH_H
#define SONDE_UNWIND_ARCH_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include "unwind/arch_x86_64.h"
#else
#error "no arch_<name>.h for this processor yet; see the list at the top of arch.h"
#endif

/* Registers by DWARF number. Only those whose bit is set in `known` have a meaning. */
struct unwind_regs {
    uint64_t value[UNWIND_REGS];
    uint32_t known;
};

/* DWARF numbers of the registers that the slots of a row stand for; slot 0 is the frame pointer. */
extern const uint8_t unwind_slot_reg[UNWIND_SLOTS];

/* From a signal handler's third argument. Signal-safe. */
void unwind_regs_from_ucontext(struct unwind_regs *regs, const void *ucontext);
/* From a perf sample: `values` in the order of the bits of `mask` (sample_regs_user). */
void unwind_regs_from_perf(struct unwind_regs *regs, uint64_t mask, const uint64_t *values,
                           size_t count);
/* From PTRACE_GETREGSET's or a core's NT_PRSTATUS register block (struct user_regs_struct).
 * 0, or -EINVAL when the block has another size. */
int unwind_regs_from_prstatus(struct unwind_regs *regs, const void *block, size_t size);

#endif
