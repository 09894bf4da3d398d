/* Evaluation of the frame rules' expressions; see expression.h. Numbers are DWARF 5's, 7.7.1. */
#include "unwind/expression.h"

#include "unwind/cursor.h"
#include "unwind/memory.h"

#define STACK 16

enum {
    OP_ADDR = 0x03,
    OP_DEREF = 0x06,
    OP_CONST1U = 0x08,
    OP_CONST1S,
    OP_CONST2U,
    OP_CONST2S,
    OP_CONST4U,
    OP_CONST4S,
    OP_CONST8U,
    OP_CONST8S,
    OP_CONSTU,
    OP_CONSTS,
    OP_DUP,
    OP_DROP,
    OP_OVER,
    OP_PICK,
    OP_SWAP,
    OP_ROT,
    OP_ABS = 0x19,
    OP_AND,
    OP_MINUS = 0x1c,
    OP_MUL = 0x1e,
    OP_NEG,
    OP_NOT,
    OP_OR,
    OP_PLUS,
    OP_PLUS_UCONST,
    OP_SHL,
    OP_SHR,
    OP_SHRA,
    OP_XOR,
    OP_EQ = 0x29,
    OP_GE,
    OP_GT,
    OP_LE,
    OP_LT,
    OP_NE,
    OP_LIT0 = 0x30,
    OP_LIT31 = 0x4f,
    OP_BREG0 = 0x70,
    OP_BREG31 = 0x8f,
    OP_BREGX = 0x92,
    OP_DEREF_SIZE = 0x94,
    OP_NOP = 0x96,
};

/* An operation with its operands: how many it takes off the stack and puts on it is `takes` and
 * `gives`, so that the machine itself needs no further checks. */
struct op {
    uint8_t code, takes, gives;
    uint64_t reg;
    int64_t value;
};

/* Operations without operands in the code: takes << 4 | gives, 0 when unknown. */
static uint8_t stack_effect(uint8_t code)
{
    switch (code) {
    case OP_DEREF:
    case OP_ABS:
    case OP_NEG:
    case OP_NOT:
        return 0x11;
    case OP_DUP:
        return 0x12;
    case OP_DROP:
        return 0x10;
    case OP_OVER:
        return 0x23;
    case OP_SWAP:
        return 0x22;
    case OP_ROT:
        return 0x33;
    case OP_AND:
    case OP_MINUS:
    case OP_MUL:
    case OP_OR:
    case OP_PLUS:
    case OP_SHL:
    case OP_SHR:
    case OP_SHRA:
    case OP_XOR:
        return 0x21;
    }
    return code >= OP_EQ && code <= OP_NE ? 0x21 : 0;
}

static bool read_constant(struct cursor *c, struct op *op)
{
    op->gives = 1;
    switch (op->code) {
    case OP_CONST1U:
    case OP_CONST2U:
    case OP_CONST4U:
    case OP_CONST8U:
    case OP_CONST8S:
        op->value = (int64_t)cursor_fixed(c, (size_t)1 << ((op->code - OP_CONST1U) / 2));
        return true;
    case OP_ADDR: /* a relocated address: we do not know the bias here */
        return false;
    case OP_CONST1S:
        op->value = (int8_t)cursor_u8(c);
        return true;
    case OP_CONST2S:
        op->value = (int16_t)cursor_fixed(c, 2);
        return true;
    case OP_CONST4S:
        op->value = (int32_t)cursor_u32(c);
        return true;
    case OP_CONSTU:
        op->value = (int64_t)cursor_uleb(c);
        return true;
    case OP_CONSTS:
        op->value = cursor_sleb(c);
        return true;
    }
    return false;
}

static bool read_op(struct cursor *c, struct op *op)
{
    *op = (struct op){.code = cursor_u8(c)};
    uint8_t effect = stack_effect(op->code);
    if (effect) {
        op->takes = effect >> 4;
        op->gives = effect & 15;
    } else if (op->code >= OP_LIT0 && op->code <= OP_LIT31) {
        op->value = op->code - OP_LIT0;
        op->code = OP_CONSTU;
        op->gives = 1;
    } else if ((op->code >= OP_BREG0 && op->code <= OP_BREG31) || op->code == OP_BREGX) {
        op->reg = op->code == OP_BREGX ? cursor_uleb(c) : op->code - (uint64_t)OP_BREG0;
        op->value = cursor_sleb(c);
        op->code = OP_BREGX;
        op->gives = 1;
        return !c->bad && op->reg < UNWIND_REGS;
    } else if (op->code == OP_PLUS_UCONST) {
        op->value = (int64_t)cursor_uleb(c);
        op->takes = op->gives = 1;
    } else if (op->code == OP_DEREF_SIZE) {
        op->value = cursor_u8(c);
        op->takes = op->gives = 1;
        return !c->bad && op->value >= 1 && op->value <= 8;
    } else if (op->code == OP_PICK) {
        op->value = cursor_u8(c);
        op->takes = (uint8_t)(op->value < STACK ? op->value + 1 : STACK + 1);
        op->gives = (uint8_t)(op->takes + 1);
    } else if (op->code != OP_NOP) {
        if (!read_constant(c, op))
            return false;
        op->code = OP_CONSTU;
    }
    return !c->bad;
}

bool expression_valid(const uint8_t *code, size_t size)
{
    struct cursor c = {.at = code, .end = code + size};
    struct op op;
    bool any = false;
    while (c.at < c.end) {
        if (!read_op(&c, &op))
            return false;
        any = true;
    }
    return any;
}

/* What two operands make; top is the newer one. */
static uint64_t combine(uint8_t code, uint64_t under, uint64_t top)
{
    int64_t a = (int64_t)under, b = (int64_t)top;
    switch (code) {
    case OP_AND:
        return under & top;
    case OP_OR:
        return under | top;
    case OP_XOR:
        return under ^ top;
    case OP_PLUS:
        return under + top;
    case OP_MINUS:
        return under - top;
    case OP_MUL:
        return under * top;
    case OP_SHL:
        return top < 64 ? under << top : 0;
    case OP_SHR:
        return top < 64 ? under >> top : 0;
    case OP_SHRA:
        return (uint64_t)(a >> (top < 63 ? top : 63));
    case OP_EQ:
        return a == b;
    case OP_GE:
        return a >= b;
    case OP_GT:
        return a > b;
    case OP_LE:
        return a <= b;
    case OP_LT:
        return a < b;
    }
    return a != b;
}

/* Rearranging and one-operand operations; s[0] is the place above the top. */
static void rearrange(const struct op *op, uint64_t *s)
{
    uint64_t top = s[-1];
    switch (op->code) {
    case OP_DUP:
        s[0] = top;
        break;
    case OP_OVER:
        s[0] = s[-2];
        break;
    case OP_PICK:
        s[0] = s[-1 - op->value];
        break;
    case OP_SWAP:
        s[-1] = s[-2];
        s[-2] = top;
        break;
    case OP_ROT:
        s[-1] = s[-2];
        s[-2] = s[-3];
        s[-3] = top;
        break;
    case OP_ABS:
        s[-1] = (int64_t)top < 0 ? -top : top;
        break;
    case OP_NEG:
        s[-1] = -top;
        break;
    case OP_NOT:
        s[-1] = ~top;
        break;
    case OP_PLUS_UCONST:
        s[-1] = top + (uint64_t)op->value;
        break;
    }
}

static int apply(const struct op *op, uint64_t *s, const struct unwind_regs *regs,
                 const struct unwind_memory *memory, uint64_t *address)
{
    switch (op->code) {
    case OP_CONSTU:
        s[0] = (uint64_t)op->value;
        return 0;
    case OP_BREGX:
        if (!(regs->known >> op->reg & 1))
            return UNWIND_LOST;
        s[0] = regs->value[op->reg] + (uint64_t)op->value;
        return 0;
    case OP_DEREF:
    case OP_DEREF_SIZE:
        *address = s[-1];
        if (!memory_word(memory, s[-1], &s[-1]))
            return UNWIND_MEMORY;
        if (op->code == OP_DEREF_SIZE && op->value < 8)
            s[-1] &= (1ull << op->value * 8) - 1;
        return 0;
    }
    if (op->takes == 2 && op->gives == 1)
        s[-2] = combine(op->code, s[-2], s[-1]);
    else
        rearrange(op, s);
    return 0;
}

int expression_run(const uint8_t *code, size_t size, const struct unwind_regs *regs,
                   const struct unwind_memory *memory, const uint64_t *first, uint64_t *result,
                   uint64_t *address)
{
    uint64_t stack[STACK + 1];
    size_t depth = 0;
    if (first)
        stack[depth++] = *first;
    struct cursor c = {.at = code, .end = code + size};
    while (c.at < c.end) {
        struct op op;
        if (!read_op(&c, &op) || depth < op.takes || depth - op.takes + op.gives > STACK)
            return UNWIND_LOST;
        int reason = apply(&op, stack + depth, regs, memory, address);
        if (reason)
            return reason;
        depth = depth - op.takes + op.gives;
    }
    if (!depth)
        return UNWIND_LOST;
    *result = stack[depth - 1];
    return 0;
}

bool expression_is_sum(const uint8_t *code, size_t size, uint8_t *reg, int64_t *offset)
{
    struct cursor c = {.at = code, .end = code + size};
    struct op op;
    if (!read_op(&c, &op) || op.code != OP_BREGX || c.at != c.end)
        return false;
    *reg = (uint8_t)op.reg;
    *offset = op.value;
    return true;
}

bool expression_is_load(const uint8_t *code, size_t size, uint8_t *reg, int64_t *offset)
{
    return size > 1 && code[size - 1] == OP_DEREF && expression_is_sum(code, size - 1, reg, offset);
}
