/*
 * A made-up machine on which two sets of frame rules can be compared: registers with arbitrary
 * values, and a memory in which every word is a function of its address. Rules that recover the
 * same values on it mean the same, however they are written.
 */
#ifndef SONDE_TEST_ORACLE_H
#define SONDE_TEST_ORACLE_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "unwind/rows.h"

enum oracle_fate { FATE_NONE, FATE_END, FATE_FRAME };

/* A caller as recovered by some rules. */
struct oracle_frame {
    enum oracle_fate fate;
    uint64_t cfa;
    uint64_t value[UNWIND_REGS];
    uint32_t known;
};

/* What our row for `vaddr` recovers. */
void oracle_ours(const struct rows *rows, uint64_t vaddr, struct oracle_frame *out);
/* What libdw's rules for `vaddr` recover. */
void oracle_libdw(Dwarf_CFI *cfi, uint64_t vaddr, struct oracle_frame *out);
/* Whether the two agree on the return address, the CFA and what a caller's rules may use. */
bool oracle_equal(const struct oracle_frame *a, const struct oracle_frame *b);

#endif
