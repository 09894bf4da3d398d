/*
 * The call frame instructions of DWARF (DW_CFA_*): a CIE's header, and a machine that runs an FDE's
 * instructions and shows the rules in force at every address where they change.
 */
#ifndef SONDE_UNWIND_CFI_H
#define SONDE_UNWIND_CFI_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/cursor.h"
#include "unwind/rows.h"

/* What a CIE says, and the rules its instructions leave. */
struct cie {
    bool valid;
    bool has_z;
    bool signal;
    uint8_t pointer_encoding;
    uint64_t code_align;
    int64_t data_align;
    struct wide initial;
};

#define CFI_REMEMBERED 16

/* One run. Large: keep it off small stacks. */
struct cfi {
    const struct cie *cie;
    struct pointer_bases bases;
    uint64_t pc, end;  /* vaddrs */
    struct wide rules; /* in force at pc; RULE_*EXPR values are offsets in the section */
    struct wide remembered[CFI_REMEMBERED];
    uint32_t depth;
    uint64_t *budget; /* instructions that may still be run; nothing loops, but CIEs are shared */
    /* Called for each range whose rules are known: they hold from `pc` on. */
    int (*emit)(void *ctx, uint64_t pc, const struct wide *rules);
    void *ctx;
};

/* Runs `code` and emits up to cfi->end. 0, -EBADMSG at an instruction that makes no sense (what was
 * emitted before it stands), or what emit returned. */
int cfi_run(struct cfi *cfi, struct cursor *code);

/* Reads a CIE whose body (after the id) is at `c`. -EBADMSG if it cannot be used. */
int cfi_read_cie(struct cfi *cfi, struct cursor *c, bool debug_frame, struct cie *out);

#endif
