/*
 * The part of DWARF's expression language that frame rules use: arithmetic on registers and
 * memory. No branches, so every expression ends.
 */
#ifndef SONDE_UNWIND_EXPRESSION_H
#define SONDE_UNWIND_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/walk.h"

/* Whether every operation is known and every operand is there. */
bool expression_valid(const uint8_t *code, size_t size);

/* Evaluates; `first`, if not NULL, is pushed before (the CFA, for a register's rule). Returns 0, or
 * a reason, with *address the memory that was missing. */
int expression_run(const uint8_t *code, size_t size, const struct unwind_regs *regs,
                   const struct unwind_memory *memory, const uint64_t *first, uint64_t *result,
                   uint64_t *address);

/* Whether it is *(reg + offset) and nothing else: what realigned frames use for their CFA. */
bool expression_is_load(const uint8_t *code, size_t size, uint8_t *reg, int64_t *offset);
/* Whether it is reg + offset and nothing else. */
bool expression_is_sum(const uint8_t *code, size_t size, uint8_t *reg, int64_t *offset);

#endif
