/* The interpreter of call frame instructions; see cfi.h. Opcode numbers are DWARF 5's, 7.24. */
#include "unwind/cfi.h"

#include <errno.h>
#include <string.h>

enum {
    CFA_NOP = 0x00,
    CFA_SET_LOC = 0x01,
    CFA_ADVANCE_LOC1 = 0x02,
    CFA_ADVANCE_LOC2 = 0x03,
    CFA_ADVANCE_LOC4 = 0x04,
    CFA_OFFSET_EXTENDED = 0x05,
    CFA_RESTORE_EXTENDED = 0x06,
    CFA_UNDEFINED = 0x07,
    CFA_SAME_VALUE = 0x08,
    CFA_REGISTER = 0x09,
    CFA_REMEMBER_STATE = 0x0a,
    CFA_RESTORE_STATE = 0x0b,
    CFA_DEF_CFA = 0x0c,
    CFA_DEF_CFA_REGISTER = 0x0d,
    CFA_DEF_CFA_OFFSET = 0x0e,
    CFA_DEF_CFA_EXPRESSION = 0x0f,
    CFA_EXPRESSION = 0x10,
    CFA_OFFSET_EXTENDED_SF = 0x11,
    CFA_DEF_CFA_SF = 0x12,
    CFA_DEF_CFA_OFFSET_SF = 0x13,
    CFA_VAL_OFFSET = 0x14,
    CFA_VAL_OFFSET_SF = 0x15,
    CFA_VAL_EXPRESSION = 0x16,
    CFA_GNU_ARGS_SIZE = 0x2e,
    CFA_GNU_NEGATIVE_OFFSET = 0x2f,
    CFA_ADVANCE_LOC = 0x40, /* the three with an operand in the low six bits */
    CFA_OFFSET = 0x80,
    CFA_RESTORE = 0xc0,
};

static void set_rule(struct cfi *cfi, uint64_t reg, struct rule rule)
{
    if (reg < UNWIND_REGS) /* vector registers and the like say nothing about the stack */
        cfi->rules.reg[reg] = rule;
}

/* A rule whose offset does not fit is one that cannot be followed. */
static struct rule offset_rule(uint8_t kind, int64_t factored, int64_t align)
{
    int64_t value;
    if (__builtin_mul_overflow(factored, align, &value) || value != (int32_t)value)
        return (struct rule){.kind = RULE_UNDEFINED};
    return (struct rule){.kind = kind, .value = (int32_t)value};
}

static void set_cfa(struct cfi *cfi, uint64_t reg, int64_t offset)
{
    if (reg >= UNWIND_REGS || offset != (int32_t)offset)
        cfi->rules.cfa = (struct rule){.kind = RULE_UNDEFINED};
    else
        cfi->rules.cfa =
            (struct rule){.kind = RULE_REGISTER, .reg = (uint8_t)reg, .value = (int32_t)offset};
}

static void set_cfa_offset(struct cfi *cfi, int64_t offset)
{
    if (cfi->rules.cfa.kind == RULE_REGISTER)
        set_cfa(cfi, cfi->rules.cfa.reg, offset);
    else
        cfi->rules.cfa = (struct rule){.kind = RULE_UNDEFINED};
}

static int64_t scaled(int64_t factored, int64_t align)
{
    int64_t value;
    return __builtin_mul_overflow(factored, align, &value) ? INT64_MAX : value;
}

static struct rule expression_rule(struct cfi *cfi, struct cursor *code, uint8_t kind)
{
    uint64_t size = cursor_uleb(code);
    const uint8_t *bytes = cursor_take(code, size);
    if (!bytes || size > UINT16_MAX)
        return (struct rule){.kind = RULE_UNDEFINED};
    return (struct rule){
        .kind = kind, .size = (uint16_t)size, .value = (int32_t)(bytes - cfi->bases.section)};
}

/* Rules hold for a range: they are shown when the range ends and so are complete. */
static int advance(struct cfi *cfi, uint64_t to)
{
    if (to < cfi->pc)
        return -EBADMSG;
    int rc = to > cfi->pc && cfi->emit ? cfi->emit(cfi->ctx, cfi->pc, &cfi->rules) : 0;
    cfi->pc = to;
    return rc;
}

static int advance_by(struct cfi *cfi, uint64_t factored)
{
    uint64_t delta, to;
    if (__builtin_mul_overflow(factored, cfi->cie->code_align, &delta) ||
        __builtin_add_overflow(cfi->pc, delta, &to))
        return -EBADMSG;
    return advance(cfi, to);
}

static int remember(struct cfi *cfi)
{
    if (cfi->depth == CFI_REMEMBERED)
        return -EBADMSG;
    cfi->remembered[cfi->depth++] = cfi->rules;
    return 0;
}

static int restore(struct cfi *cfi)
{
    if (!cfi->depth)
        return -EBADMSG;
    cfi->rules = cfi->remembered[--cfi->depth];
    return 0;
}

static void define_cfa(struct cfi *cfi, struct cursor *code, uint8_t op)
{
    int64_t align = cfi->cie->data_align;
    uint64_t reg;
    switch (op) {
    case CFA_DEF_CFA:
        reg = cursor_uleb(code);
        set_cfa(cfi, reg, (int64_t)cursor_uleb(code));
        break;
    case CFA_DEF_CFA_SF:
        reg = cursor_uleb(code);
        set_cfa(cfi, reg, scaled(cursor_sleb(code), align));
        break;
    case CFA_DEF_CFA_REGISTER:
        reg = cursor_uleb(code);
        set_cfa(cfi, cfi->rules.cfa.kind == RULE_REGISTER ? reg : UNWIND_REGS,
                cfi->rules.cfa.value);
        break;
    case CFA_DEF_CFA_OFFSET:
        set_cfa_offset(cfi, (int64_t)cursor_uleb(code));
        break;
    case CFA_DEF_CFA_OFFSET_SF:
        set_cfa_offset(cfi, scaled(cursor_sleb(code), align));
        break;
    case CFA_DEF_CFA_EXPRESSION:
        cfi->rules.cfa = expression_rule(cfi, code, RULE_EXPR);
        break;
    }
}

static int64_t register_operand(struct cursor *code, bool has_sign)
{
    return has_sign ? cursor_sleb(code) : (int64_t)cursor_uleb(code);
}

/* The instructions that begin with a register number. */
static int define_register(struct cfi *cfi, struct cursor *code, uint8_t op)
{
    int64_t align = cfi->cie->data_align;
    uint64_t reg = cursor_uleb(code);
    struct rule rule = {.kind = RULE_SAME};
    switch (op) {
    case CFA_OFFSET_EXTENDED:
    case CFA_OFFSET_EXTENDED_SF:
        rule =
            offset_rule(RULE_OFFSET, register_operand(code, op == CFA_OFFSET_EXTENDED_SF), align);
        break;
    case CFA_VAL_OFFSET:
    case CFA_VAL_OFFSET_SF:
        rule = offset_rule(RULE_VAL_OFFSET, register_operand(code, op == CFA_VAL_OFFSET_SF), align);
        break;
    case CFA_GNU_NEGATIVE_OFFSET:
        rule = offset_rule(RULE_OFFSET, (int64_t)cursor_uleb(code), scaled(-1, align));
        break;
    case CFA_RESTORE_EXTENDED:
        if (reg < UNWIND_REGS)
            rule = cfi->cie->initial.reg[reg];
        break;
    case CFA_UNDEFINED:
        rule.kind = RULE_UNDEFINED;
        break;
    case CFA_SAME_VALUE:
        break;
    case CFA_REGISTER: {
        uint64_t other = cursor_uleb(code);
        rule.kind = RULE_UNDEFINED;
        if (other < UNWIND_REGS)
            rule = (struct rule){.kind = RULE_REGISTER, .reg = (uint8_t)other};
        break;
    }
    case CFA_EXPRESSION:
    case CFA_VAL_EXPRESSION:
        rule = expression_rule(cfi, code, op == CFA_EXPRESSION ? RULE_EXPR : RULE_VAL_EXPR);
        break;
    default:
        return -EBADMSG;
    }
    set_rule(cfi, reg, rule);
    return 0;
}

static int run_one(struct cfi *cfi, struct cursor *code)
{
    uint8_t op = cursor_u8(code);
    uint8_t low = op & 0x3f;
    switch (op & 0xc0) {
    case CFA_ADVANCE_LOC:
        return advance_by(cfi, low);
    case CFA_OFFSET:
        set_rule(cfi, low,
                 offset_rule(RULE_OFFSET, (int64_t)cursor_uleb(code), cfi->cie->data_align));
        return 0;
    case CFA_RESTORE:
        if (low < UNWIND_REGS)
            cfi->rules.reg[low] = cfi->cie->initial.reg[low];
        return 0;
    }
    switch (op) {
    case CFA_NOP:
        return 0;
    case CFA_SET_LOC:
        return advance(cfi, cursor_pointer(code, cfi->cie->pointer_encoding, &cfi->bases));
    case CFA_ADVANCE_LOC1:
        return advance_by(cfi, cursor_u8(code));
    case CFA_ADVANCE_LOC2:
        return advance_by(cfi, cursor_fixed(code, 2));
    case CFA_ADVANCE_LOC4:
        return advance_by(cfi, cursor_u32(code));
    case CFA_REMEMBER_STATE:
        return remember(cfi);
    case CFA_RESTORE_STATE:
        return restore(cfi);
    case CFA_GNU_ARGS_SIZE:
        cursor_uleb(code);
        return 0;
    case CFA_DEF_CFA:
    case CFA_DEF_CFA_REGISTER:
    case CFA_DEF_CFA_OFFSET:
    case CFA_DEF_CFA_EXPRESSION:
    case CFA_DEF_CFA_SF:
    case CFA_DEF_CFA_OFFSET_SF:
        define_cfa(cfi, code, op);
        return 0;
    }
    return define_register(cfi, code, op);
}

int cfi_run(struct cfi *cfi, struct cursor *code)
{
    while (code->at < code->end && cfi->pc < cfi->end) {
        if (!*cfi->budget)
            return -EBADMSG;
        --*cfi->budget;
        int rc = run_one(cfi, code);
        if (rc)
            return rc;
        if (code->bad)
            return -EBADMSG;
    }
    return cfi->pc < cfi->end ? advance(cfi, cfi->end) : 0;
}

/* The letters after 'z' say what the augmentation data holds, in their order. */
static int read_augmentation(struct cfi *cfi, struct cursor *c, const char *letters,
                             struct cie *out)
{
    uint64_t size = cursor_uleb(c);
    const uint8_t *data = cursor_take(c, size);
    if (!data)
        return -EBADMSG;
    struct cursor a = {.at = data, .end = data + size};
    for (const char *p = letters; *p && !a.bad; p++) {
        switch (*p) {
        case 'R':
            out->pointer_encoding = cursor_u8(&a);
            break;
        case 'L':
            cursor_u8(&a);
            break;
        case 'P': {
            uint8_t encoding = cursor_u8(&a);
            if (encoding != POINTER_OMIT)
                cursor_pointer(&a, encoding, &cfi->bases);
            break;
        }
        case 'S':
            out->signal = true;
            break;
        case 'B': /* pointer authentication's key, on another machine */
            break;
        default: /* the length lets us step over what we do not know */
            return 0;
        }
    }
    return a.bad ? -EBADMSG : 0;
}

static int read_header(struct cfi *cfi, struct cursor *c, bool debug_frame, struct cie *out)
{
    uint8_t version = cursor_u8(c);
    const char *letters = cursor_string(c);
    if (!letters || (version != 1 && version != 3 && version != 4))
        return -EBADMSG;
    if (letters[0] == 'e' && letters[1] == 'h') { /* g++ 2: a pointer to its own table */
        cursor_take(c, 8);
        letters += 2;
    }
    if (version == 4) {
        uint8_t address_size = cursor_u8(c), segment_size = cursor_u8(c);
        if (address_size != 8 || segment_size != 0)
            return -EBADMSG;
    }
    out->code_align = cursor_uleb(c);
    out->data_align = cursor_sleb(c);
    uint64_t ra = version == 1 ? cursor_u8(c) : cursor_uleb(c);
    if (c->bad || ra != UNWIND_IP)
        return -EBADMSG;
    out->has_z = letters[0] == 'z';
    if (out->has_z)
        return read_augmentation(cfi, c, letters + 1, out);
    return letters[0] && !debug_frame ? -EBADMSG : 0;
}

int cfi_read_cie(struct cfi *cfi, struct cursor *c, bool debug_frame, struct cie *out)
{
    memset(out, 0, sizeof(*out));
    int rc = read_header(cfi, c, debug_frame, out);
    if (rc)
        return rc;
    cfi->cie = out;
    cfi->depth = 0;
    cfi->pc = 0;
    cfi->end = 1; /* a CIE has no addresses: an advance ends it */
    memset(&cfi->rules, 0, sizeof(cfi->rules));
    cfi->rules.cfa.kind = RULE_UNDEFINED;
    int (*emit)(void *, uint64_t, const struct wide *) = cfi->emit;
    cfi->emit = NULL;
    rc = cfi_run(cfi, c);
    cfi->emit = emit;
    out->initial = cfi->rules;
    out->initial.signal = out->signal;
    out->valid = rc == 0;
    return rc;
}
