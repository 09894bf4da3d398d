/*
 * Walking a copied stack by rows, and by frame pointers where there are none; see walk.h. One step
 * turns the registers of a function into those of its caller.
 */
#include "unwind/walk.h"

#include <string.h>

#include "unwind/expression.h"
#include "unwind/memory.h"

#define STEP_DONE (-1)       /* beside enum unwind_reason: there is a caller, and we are in it */
#define STACK_SWITCHES 8     /* signal frames that may lead to a lower address (sigaltstack) */
#define FRAME_MAX (1u << 20) /* a frame pointer further from sp than this is no frame pointer */

#define ROWS_MET 16 /* rows of this walk that are remembered: recursion comes by the same calls */

struct walk {
    const struct unwind_map *map;
    const struct unwind_memory *memory;
    struct unwind_regs regs;
    struct unwind_module module; /* the last one found; start == end at first */
    struct unwind_end end;
    uint32_t steps, switches;
    bool exact; /* ip is not a return address: first frame, or interrupted by a signal */
    struct {
        uint64_t address;
        const struct row *row; /* NULL: none */
    } met[ROWS_MET];
};

static bool known(const struct unwind_regs *regs, unsigned reg)
{
    return regs->known >> reg & 1;
}

static bool find_module(struct walk *w, uint64_t address)
{
    if (address >= w->module.start && address < w->module.end)
        return true;
    if (unwind_map_find(w->map, address, &w->module))
        return true;
    w->module = (struct unwind_module){0};
    return false;
}

static const struct row *find_row(struct walk *w, uint64_t address)
{
    if (!find_module(w, address) || !w->module.rows)
        return NULL;
    size_t slot = (address ^ address >> 4) % ROWS_MET;
    if (w->met[slot].row && w->met[slot].address == address)
        return w->met[slot].row;
    const struct row *row = rows_find(w->module.rows, address - w->module.bias);
    if (!row || row->kind == ROW_NONE)
        return NULL;
    w->met[slot].address = address;
    w->met[slot].row = row;
    return row;
}

/*
 * A register whose saved copy lies below the stack pointer, out of the window: the epilogue has
 * popped it already, while its rule still names the old place. So it has its value back.
 */
static bool popped(const struct walk *w, uint64_t saved_at)
{
    return saved_at < w->regs.value[UNWIND_SP];
}

/* May a caller at `ip` have this stack pointer? */
static int check(struct walk *w, uint64_t ip, uint64_t sp, bool signal)
{
    uint64_t old = w->regs.value[UNWIND_SP];
    bool grows = sp > old || (sp == old && !w->steps);
    if (!grows && (!signal || w->switches++ >= STACK_SWITCHES))
        return UNWIND_NO_PROGRESS;
    return ip ? STEP_DONE : UNWIND_COMPLETE;
}

/* Moves on to the caller: its registers are complete but for the checks of the stack pointer. */
static int enter(struct walk *w, const struct unwind_regs *next, bool signal)
{
    int reason = check(w, next->value[UNWIND_IP], next->value[UNWIND_SP], signal);
    if (reason != STEP_DONE)
        return reason;
    w->regs = *next;
    w->steps++;
    w->exact = signal;
    return STEP_DONE;
}

static int missing(struct walk *w, uint64_t address)
{
    w->end.address = address;
    return UNWIND_MEMORY;
}

/* Nearly every step: the registers change in place, and most have no slot. */
static int step_plain(struct walk *w, const struct row *row)
{
    struct unwind_regs *regs = &w->regs;
    if (!known(regs, row->cfa_reg))
        return UNWIND_LOST;
    uint64_t cfa = regs->value[row->cfa_reg] + (uint64_t)(int64_t)row->cfa_offset, ip;
    if (!memory_word(w->memory, cfa + (uint64_t)UNWIND_RA_OFFSET, &ip))
        return missing(w, cfa + (uint64_t)UNWIND_RA_OFFSET);
    int reason = check(w, ip, cfa, false);
    if (reason != STEP_DONE)
        return reason;
    uint32_t lost = 0, found = 1u << UNWIND_IP | 1u << UNWIND_SP;
    for (int i = 0; i < UNWIND_SLOTS; i++) {
        if (row->slot[i] == ROW_SLOT_SAME)
            continue;
        unsigned reg = unwind_slot_reg[i];
        uint64_t at = cfa - 8ull * row->slot[i], word;
        if (row->slot[i] != ROW_SLOT_LOST && memory_word(w->memory, at, &word)) {
            regs->value[reg] = word;
            found |= 1u << reg;
        } else if (row->slot[i] == ROW_SLOT_LOST || !popped(w, at)) {
            lost |= 1u << reg;
        }
    }
    regs->value[UNWIND_IP] = ip;
    regs->value[UNWIND_SP] = cfa;
    regs->known = (regs->known & UNWIND_CALLEE_SAVED & ~lost) | found;
    w->steps++;
    w->exact = false;
    return STEP_DONE;
}

static int run(struct walk *w, const struct rule *rule, const uint64_t *first, uint64_t *result)
{
    return expression_run(w->module.rows->expr + rule->value, rule->size, &w->regs, w->memory,
                          first, result, &w->end.address);
}

/* The caller's value of one register by a wide rule; 0 or a reason. */
static int recover(struct walk *w, const struct rule *rule, uint64_t cfa, uint64_t *value)
{
    uint64_t at = cfa + (uint64_t)(int64_t)rule->value;
    int reason;
    switch (rule->kind) {
    case RULE_VAL_OFFSET:
        *value = at;
        return 0;
    case RULE_REGISTER:
        *value = w->regs.value[rule->reg];
        return known(&w->regs, rule->reg) ? 0 : UNWIND_LOST;
    case RULE_VAL_EXPR:
        return run(w, rule, &cfa, value);
    case RULE_EXPR:
        reason = run(w, rule, &cfa, &at);
        if (reason)
            return reason;
        break;
    case RULE_OFFSET:
        break;
    default:
        return UNWIND_LOST;
    }
    return memory_word(w->memory, at, value) ? 0 : missing(w, at);
}

/* A register without a rule: handed back unchanged if the ABI says so. */
static bool inherit(const struct walk *w, unsigned reg, uint64_t cfa, struct unwind_regs *next)
{
    if (reg == UNWIND_SP) {
        next->value[reg] = cfa;
        return true;
    }
    next->value[reg] = w->regs.value[reg];
    return UNWIND_CALLEE_SAVED >> reg & 1 && known(&w->regs, reg);
}

static int step_wide(struct walk *w, const struct wide *wide)
{
    uint64_t cfa;
    if (wide->cfa.kind == RULE_REGISTER) {
        if (!known(&w->regs, wide->cfa.reg))
            return UNWIND_LOST;
        cfa = w->regs.value[wide->cfa.reg] + (uint64_t)(int64_t)wide->cfa.value;
    } else {
        int reason = run(w, &wide->cfa, NULL, &cfa);
        if (reason)
            return reason;
    }
    struct unwind_regs next = {0};
    for (unsigned reg = 0; reg < UNWIND_REGS; reg++) {
        const struct rule *rule = &wide->reg[reg];
        bool have;
        if (rule->kind == RULE_SAME && reg != UNWIND_IP) {
            have = inherit(w, reg, cfa, &next);
        } else {
            int reason = recover(w, rule, cfa, &next.value[reg]);
            if (reason && (reg == UNWIND_IP || reg == UNWIND_SP))
                return reason;
            have = reason == 0;
            if (reason == UNWIND_MEMORY && popped(w, w->end.address))
                have = inherit(w, reg, cfa, &next);
        }
        next.known |= (uint32_t)have << reg;
    }
    return enter(w, &next, wide->signal);
}

/*
 * No rows, and no frame pointer: perhaps a leaf written in assembler (codecs and numerical
 * libraries are full of them) that has pushed nothing, or one word, as a module's _init does.
 * Believed only for the function that was running, and if the word on top of the stack returns
 * into code that has rows; or the one above it, if the first is no address of code at all.
 */
static int step_leaf(struct walk *w)
{
    struct unwind_regs next = w->regs;
    uint64_t sp = w->regs.value[UNWIND_SP], *ip = &next.value[UNWIND_IP];
    if (!w->exact || !memory_word(w->memory, sp, ip))
        return UNWIND_NO_ROWS;
    if (!find_module(w, *ip - 1) && memory_word(w->memory, sp + 8, ip))
        sp += 8;
    if (!find_row(w, *ip - 1))
        return UNWIND_NO_ROWS;
    next.value[UNWIND_SP] = sp + 8;
    next.known &= UNWIND_CALLEE_SAVED | 1u << UNWIND_IP | 1u << UNWIND_SP;
    w->end.guessed++;
    return enter(w, &next, false);
}

/*
 * No rows: code from a JIT compiler or an assembler. Believed only if the frame pointer points just
 * above the stack pointer and what should be the return address is an address of code.
 */
static int step_frame_pointer(struct walk *w)
{
    struct unwind_regs next = {.known = 1u << UNWIND_IP | 1u << UNWIND_SP | 1u << UNWIND_FP};
    uint64_t fp = w->regs.value[UNWIND_FP], sp = w->regs.value[UNWIND_SP];
    bool in_code = w->module.start < w->module.end;
    w->end.address = w->regs.value[UNWIND_IP];
    if (!known(&w->regs, UNWIND_FP))
        return step_leaf(w);
    if (!fp && in_code && !w->exact) /* the ABI's mark of the outermost frame */
        return UNWIND_COMPLETE;
    if (fp < sp || fp - sp > FRAME_MAX || fp % 8)
        return step_leaf(w);
    if (!memory_word(w->memory, fp, &next.value[UNWIND_FP]))
        return missing(w, fp);
    if (!memory_word(w->memory, fp + 8, &next.value[UNWIND_IP]))
        return missing(w, fp + 8);
    next.value[UNWIND_SP] = fp + 16;
    if (next.value[UNWIND_IP] && !find_module(w, next.value[UNWIND_IP] - 1))
        return step_leaf(w);
    w->end.guessed++;
    return enter(w, &next, false);
}

/*
 * The kernel clears all registers when it starts a program. So they are met in the first
 * instructions of the dynamic linker, which have no rows.
 */
static bool is_entry(const struct walk *w)
{
    uint64_t any = 0;
    for (unsigned reg = 0; reg < UNWIND_REGS; reg++)
        any |= UNWIND_CALLEE_SAVED >> reg & 1 ? w->regs.value[reg] : 0;
    return !w->steps && !any && !(UNWIND_CALLEE_SAVED & ~w->regs.known);
}

static int step(struct walk *w)
{
    uint64_t ip = w->regs.value[UNWIND_IP];
    /* A return address may be the first of the next function when the call never returns. */
    const struct row *row = find_row(w, w->exact ? ip : ip - 1);
    if (!row && !w->exact) {
        /* No call lies before it, yet it begins a function: someone built this stack by hand, as
         * makecontext does. Only a signal's trampoline leads further from there. */
        row = find_row(w, ip);
        if (row && (row->kind != ROW_WIDE || !w->module.rows->wide[row->cfa_offset].signal))
            return UNWIND_COMPLETE;
    }
    if (!row) {
        int reason = step_frame_pointer(w);
        return reason == UNWIND_NO_ROWS && is_entry(w) ? UNWIND_COMPLETE : reason;
    }
    if (row->kind == ROW_END)
        return UNWIND_COMPLETE;
    if (row->kind == ROW_WIDE)
        return step_wide(w, &w->module.rows->wide[row->cfa_offset]);
    return step_plain(w, row);
}

size_t unwind_walk(const struct unwind_map *map, const struct unwind_regs *regs,
                   const struct unwind_memory *memory, uint64_t *out, size_t max,
                   struct unwind_end *end)
{
    struct walk w = {.map = map, .memory = memory, .regs = *regs, .exact = true};
    size_t count = 0;
    int reason = known(regs, UNWIND_IP) && known(regs, UNWIND_SP) ? STEP_DONE : UNWIND_LOST;
    while (reason == STEP_DONE) {
        if (count == max) {
            reason = UNWIND_DEPTH;
            break;
        }
        if (w.exact && count && !w.end.interrupted)
            w.end.interrupted = count;
        out[count++] = w.regs.value[UNWIND_IP];
        reason = step(&w);
    }
    if (reason != UNWIND_MEMORY && reason != UNWIND_NO_ROWS)
        w.end.address = w.regs.value[UNWIND_IP];
    w.end.reason = (enum unwind_reason)reason;
    if (end)
        *end = w.end;
    return count;
}
