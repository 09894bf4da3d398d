/* Evaluates our rows and libdw's rules on the made-up machine of oracle.h. */
#include "oracle.h"

#include <dwarf.h>
#include <string.h>

#include "unwind/expression.h"
#include "unwind/walk.h"

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 31) * 0x7fb5d329728ea185ull;
    x = (x ^ x >> 27) * 0x81dadef4bc2dd44dull;
    return x ^ x >> 33;
}

static int read_word(void *ctx, uint64_t address, uint64_t *word)
{
    (void)ctx;
    *word = mix(address);
    return 0;
}

static const struct unwind_memory memory = {.read = read_word};

static struct unwind_regs machine(uint64_t ip)
{
    struct unwind_regs regs = {.known = (1u << UNWIND_REGS) - 1};
    for (unsigned i = 0; i < UNWIND_REGS; i++)
        regs.value[i] = mix(i + 1) & ~7ull;
    regs.value[UNWIND_IP] = ip;
    return regs;
}

static bool apply_rule(const struct rows *rows, const struct rule *rule,
                       const struct unwind_regs *regs, uint64_t cfa, uint64_t *value)
{
    uint64_t at = cfa + (uint64_t)(int64_t)rule->value, missing;
    const uint8_t *code = rows->expr + rule->value;
    switch (rule->kind) {
    case RULE_OFFSET:
        *value = mix(at);
        return true;
    case RULE_VAL_OFFSET:
        *value = at;
        return true;
    case RULE_REGISTER:
        *value = regs->value[rule->reg];
        return true;
    case RULE_EXPR:
    case RULE_VAL_EXPR:
        if (expression_run(code, rule->size, regs, &memory, &cfa, value, &missing))
            return false;
        if (rule->kind == RULE_EXPR)
            *value = mix(*value);
        return true;
    }
    return false;
}

static void ours_wide(const struct rows *rows, const struct wide *wide,
                      const struct unwind_regs *regs, struct oracle_frame *out)
{
    uint64_t missing;
    if (wide->cfa.kind == RULE_REGISTER)
        out->cfa = regs->value[wide->cfa.reg] + (uint64_t)(int64_t)wide->cfa.value;
    else if (expression_run(rows->expr + wide->cfa.value, wide->cfa.size, regs, &memory, NULL,
                            &out->cfa, &missing))
        return;
    out->fate = FATE_FRAME;
    for (unsigned reg = 0; reg < UNWIND_REGS; reg++) {
        const struct rule *rule = &wide->reg[reg];
        bool have = true;
        if (rule->kind == RULE_SAME)
            out->value[reg] = reg == UNWIND_SP ? out->cfa : regs->value[reg];
        else
            have = apply_rule(rows, rule, regs, out->cfa, &out->value[reg]);
        out->known |= (uint32_t)have << reg;
    }
}

void oracle_ours(const struct rows *rows, uint64_t vaddr, struct oracle_frame *out)
{
    memset(out, 0, sizeof(*out));
    const struct unwind_regs regs = machine(vaddr);
    const struct row *row = rows_find(rows, vaddr);
    if (!row || row->kind == ROW_NONE)
        return;
    if (row->kind == ROW_END) {
        out->fate = FATE_END;
        return;
    }
    if (row->kind == ROW_WIDE) {
        ours_wide(rows, &rows->wide[row->cfa_offset], &regs, out);
        return;
    }
    out->fate = FATE_FRAME;
    out->cfa = regs.value[row->cfa_reg] + (uint64_t)(int64_t)row->cfa_offset;
    out->value[UNWIND_SP] = out->cfa;
    out->value[UNWIND_IP] = mix(out->cfa + (uint64_t)UNWIND_RA_OFFSET);
    out->known = 1u << UNWIND_SP | 1u << UNWIND_IP;
    for (int i = 0; i < UNWIND_SLOTS; i++) {
        unsigned reg = unwind_slot_reg[i];
        if (row->slot[i] == ROW_SLOT_LOST)
            continue;
        out->known |= 1u << reg;
        out->value[reg] = row->slot[i] ? mix(out->cfa - 8ull * row->slot[i]) : regs.value[reg];
    }
}

/* Two operands off the stack, one on it; `top` is the newer. */
static uint64_t combine(uint8_t atom, uint64_t under, uint64_t top)
{
    switch (atom) {
    case DW_OP_and:
        return under & top;
    case DW_OP_ge:
        return (int64_t)under >= (int64_t)top;
    case DW_OP_shl:
        return under << top;
    case DW_OP_minus:
        return under - top;
    case DW_OP_mul:
        return under * top;
    }
    return under + top;
}

/* A location description of libdw. *value is set if the result is a value and not an address. */
static bool run_libdw(const Dwarf_Op *ops, size_t count, const struct unwind_regs *regs,
                      uint64_t cfa, uint64_t *result, bool *value)
{
    uint64_t s[32] = {0};
    size_t n = 0;
    *value = false;
    for (size_t i = 0; i < count && n < 30; i++) {
        uint8_t atom = ops[i].atom;
        if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31) {
            s[n++] = atom - (uint64_t)DW_OP_lit0;
        } else if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31) {
            unsigned reg = atom - (unsigned)DW_OP_breg0;
            if (reg >= UNWIND_REGS)
                return false;
            s[n++] = regs->value[reg] + ops[i].number;
        } else if (atom == DW_OP_bregx) {
            if (ops[i].number >= UNWIND_REGS)
                return false;
            s[n++] = regs->value[ops[i].number] + ops[i].number2;
        } else if (atom == DW_OP_regx || (atom >= DW_OP_reg0 && atom <= DW_OP_reg31)) {
            uint64_t reg = atom == DW_OP_regx ? ops[i].number : atom - (uint64_t)DW_OP_reg0;
            if (reg >= UNWIND_REGS)
                return false;
            s[n++] = regs->value[reg];
            *value = true;
        } else if (atom == DW_OP_call_frame_cfa) {
            s[n++] = cfa;
        } else if (atom == DW_OP_stack_value) {
            *value = true;
        } else if (atom >= DW_OP_const1u && atom <= DW_OP_consts) {
            s[n++] = ops[i].number;
        } else if (atom == DW_OP_plus_uconst && n) {
            s[n - 1] += ops[i].number;
        } else if (atom == DW_OP_deref && n) {
            s[n - 1] = mix(s[n - 1]);
        } else if (n >= 2) {
            n--;
            s[n - 1] = combine(atom, s[n - 1], s[n]);
        } else {
            return false;
        }
    }
    if (n)
        *result = s[n - 1];
    return n > 0;
}

void oracle_libdw(Dwarf_CFI *cfi, uint64_t vaddr, struct oracle_frame *out)
{
    memset(out, 0, sizeof(*out));
    const struct unwind_regs regs = machine(vaddr);
    Dwarf_Frame *frame = NULL;
    Dwarf_Op *ops, mem[3];
    size_t count;
    bool value;
    if (dwarf_cfi_addrframe(cfi, vaddr, &frame))
        return;
    if (dwarf_frame_cfa(frame, &ops, &count) == 0 && count &&
        run_libdw(ops, count, &regs, 0, &out->cfa, &value))
        out->fate = FATE_FRAME;
    for (unsigned reg = 0; out->fate == FATE_FRAME && reg < UNWIND_REGS; reg++) {
        if (dwarf_frame_register(frame, (int)reg, mem, &ops, &count))
            continue;
        /* libdw takes 0 for rbx's number in its table of defaults and so calls rbx undefined. */
        if (!count && ops == mem && reg != 3) {
            if (reg == UNWIND_IP)
                out->fate = FATE_END;
            continue;
        }
        bool have = true;
        value = true;
        if (!count)
            out->value[reg] = regs.value[reg];
        else
            have = run_libdw(ops, count, &regs, out->cfa, &out->value[reg], &value);
        if (!value)
            out->value[reg] = mix(out->value[reg]);
        out->known |= (uint32_t)have << reg;
    }
    free(frame);
}

bool oracle_equal(const struct oracle_frame *a, const struct oracle_frame *b)
{
    const uint32_t relevant = UNWIND_CALLEE_SAVED | 1u << UNWIND_IP | 1u << UNWIND_SP;
    if (a->fate != b->fate)
        return false;
    if (a->fate != FATE_FRAME)
        return true;
    if (a->cfa != b->cfa || (a->known & relevant) != (b->known & relevant))
        return false;
    for (unsigned reg = 0; reg < UNWIND_REGS; reg++) {
        if (a->known & relevant & 1u << reg && a->value[reg] != b->value[reg])
            return false;
    }
    return true;
}
