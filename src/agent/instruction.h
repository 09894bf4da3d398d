/*
 * How long a machine instruction is, and whether it may stand at another address: as much as is
 * needed to move the first few of a function. What is not known is refused, never guessed.
 * Reads at most INSTRUCTION_MAX bytes; pure.
 */
#ifndef SONDE_AGENT_INSTRUCTION_H
#define SONDE_AGENT_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INSTRUCTION_MAX 15

enum instruction_kind {
    INSTRUCTION_PLAIN,
    INSTRUCTION_RELATIVE, /* it reads or writes at an address counted from its end */
    INSTRUCTION_CALL,
    INSTRUCTION_JUMP,
    INSTRUCTION_BRANCH, /* a jump under a condition */
    INSTRUCTION_RETURN,
    INSTRUCTION_NOTHING, /* a no-op, or what stands between functions */
};

struct instruction {
    uint8_t size;
    uint8_t kind;      /* enum instruction_kind */
    uint8_t at, width; /* where the distance stands, if it has one: 1 or 4 bytes */
    uint8_t condition; /* of a branch */
};

/* The instruction at the beginning of `bytes`, of which `size` are there. */
bool instruction_read(const uint8_t *bytes, size_t size, struct instruction *out);

/* The distance that an instruction holds. */
int32_t instruction_distance(const uint8_t *bytes, const struct instruction *i);

/* Puts instructions of [from, from + size) so that they do the same at address `at` and writes no
 * more than `max` bytes; how many, 0 if one of them cannot be moved. */
size_t instruction_move(const uint8_t *from, size_t size, uint64_t at, uint8_t *out, size_t max);

#endif
