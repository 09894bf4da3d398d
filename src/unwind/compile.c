/* From FDEs to rows: rows_compile of rows.h. */
#include "unwind/rows.h"

#include <errno.h>
#include <string.h>

#include "unwind/entries.h"
#include "unwind/expression.h"
#include "unwind/rows_internal.h"

#define FRAME_MAX ((size_t)1 << 30)
#define EXPR_LOOK_BACK 4096
#define WIDE_LOOK_BACK 64

/* Input and output of one compilation; too large for a small stack, so it lives in pages. */
struct compiler {
    struct entries entries;
    struct pages rows, wides, exprs;
    uint32_t row_count, wide_count, expr_size;
    uint32_t limit; /* where the present FDE ends, or is cut by the next */
};

/* Appends a row unless the one before says the same already. */
static int push_row(struct compiler *c, struct row row)
{
    if (pages_reserve(&c->rows, ((size_t)c->row_count + 1) * sizeof(row)))
        return -ENOMEM;
    struct row *all = c->rows.data;
    if (c->row_count && all[c->row_count - 1].pc == row.pc)
        c->row_count--;
    size_t content = sizeof(row) - offsetof(struct row, cfa_offset);
    if (c->row_count && !memcmp(&all[c->row_count - 1].cfa_offset, &row.cfa_offset, content))
        return 0;
    all[c->row_count++] = row;
    return 0;
}

static int push_gap(struct compiler *c, uint32_t pc)
{
    return push_row(c, (struct row){.pc = pc, .kind = ROW_NONE});
}

/* Moves an expression from the section to the pool; equal ones share their bytes. */
static int keep_expression(struct compiler *c, struct rule *rule)
{
    const uint8_t *code = c->entries.image->frame + rule->value;
    if (!expression_valid(code, rule->size)) {
        *rule = (struct rule){.kind = RULE_UNDEFINED};
        return 0;
    }
    uint32_t from = c->expr_size > EXPR_LOOK_BACK ? c->expr_size - EXPR_LOOK_BACK : 0;
    uint8_t *pool = c->exprs.data;
    uint8_t *found = pool ? memmem(pool + from, c->expr_size - from, code, rule->size) : NULL;
    if (found) {
        rule->value = (int32_t)(found - pool);
        return 0;
    }
    if (pages_reserve(&c->exprs, (size_t)c->expr_size + rule->size))
        return -ENOMEM;
    memcpy((uint8_t *)c->exprs.data + c->expr_size, code, rule->size);
    rule->value = (int32_t)c->expr_size;
    c->expr_size += rule->size;
    return 0;
}

/* The number of a wide rule, shared with an equal one nearby. */
static int keep_wide(struct compiler *c, const struct wide *rules, int32_t *number)
{
    struct wide w = *rules;
    for (int i = -1; i < UNWIND_REGS; i++) {
        struct rule *rule = i < 0 ? &w.cfa : &w.reg[i];
        if ((rule->kind == RULE_EXPR || rule->kind == RULE_VAL_EXPR) && keep_expression(c, rule))
            return -ENOMEM;
    }
    const struct wide *wide = c->wides.data;
    uint32_t stop = c->wide_count > WIDE_LOOK_BACK ? c->wide_count - WIDE_LOOK_BACK : 0;
    for (uint32_t i = c->wide_count; i > stop; i--) {
        if (!memcmp(&wide[i - 1], &w, sizeof(w))) {
            *number = (int32_t)(i - 1);
            return 0;
        }
    }
    if (pages_reserve(&c->wides, ((size_t)c->wide_count + 1) * sizeof(w)))
        return -ENOMEM;
    ((struct wide *)c->wides.data)[c->wide_count] = w;
    *number = (int32_t)c->wide_count++;
    return 0;
}

/* What a row can say of a register's rule, or -1. */
static int slot_value(const struct rule *rule)
{
    if (rule->kind == RULE_SAME)
        return ROW_SLOT_SAME;
    if (rule->kind == RULE_UNDEFINED)
        return ROW_SLOT_LOST;
    if (rule->kind != RULE_OFFSET || rule->value >= 0 || rule->value % 8 ||
        rule->value <= -8 * ROW_SLOT_LOST)
        return -1;
    return -rule->value / 8;
}

/* Fills in an ordinary row; false if the rules need a wide one. */
static bool plain_row(const struct wide *rules, struct row *row)
{
    const struct rule *ra = &rules->reg[UNWIND_IP], *sp = &rules->reg[UNWIND_SP];
    bool sp_is_cfa = sp->kind == RULE_SAME || (sp->kind == RULE_VAL_OFFSET && sp->value == 0);
    if (rules->signal || rules->cfa.kind != RULE_REGISTER || ra->kind != RULE_OFFSET ||
        ra->value != UNWIND_RA_OFFSET || !sp_is_cfa)
        return false;
    for (int i = 0; i < UNWIND_SLOTS; i++) {
        int value = slot_value(&rules->reg[unwind_slot_reg[i]]);
        if (value < 0)
            return false;
        row->slot[i] = (uint8_t)value;
    }
    row->kind = ROW_FRAME;
    row->cfa_reg = rules->cfa.reg;
    row->cfa_offset = rules->cfa.value;
    return true;
}

/* Whether there is a CFA that we can compute. */
static bool has_cfa(const struct compiler *c, const struct rule *cfa)
{
    return cfa->kind == RULE_REGISTER ||
           (cfa->kind == RULE_EXPR &&
            expression_valid(c->entries.image->frame + cfa->value, cfa->size));
}

static int emit(void *ctx, uint64_t pc, const struct wide *rules)
{
    struct compiler *c = ctx;
    const struct rule *ra = &rules->reg[UNWIND_IP];
    struct row row = {.pc = (uint32_t)(pc - c->entries.image->low), .kind = ROW_NONE};
    if (row.pc >= c->limit)
        return 0;
    if (ra->kind == RULE_UNDEFINED) {
        row.kind = ROW_END;
    } else if (ra->kind != RULE_SAME && has_cfa(c, &rules->cfa) && !plain_row(rules, &row)) {
        row = (struct row){.pc = row.pc, .kind = ROW_WIDE};
        if (keep_wide(c, rules, &row.cfa_offset))
            return -ENOMEM;
    }
    return push_row(c, row);
}

static int compile_entry(struct compiler *c, const struct entry *entry)
{
    struct entries *e = &c->entries;
    const struct cie *cie = entries_cie(e, entry->cie);
    if (!cie)
        return push_gap(c, entry->start);
    struct cfi *cfi = &e->cfi;
    const uint8_t *frame = e->image->frame;
    struct cursor code = {.at = frame + entry->code, .end = frame + entry->code_end};
    cfi->cie = cie;
    cfi->bases = (struct pointer_bases){.section = frame,
                                        .vaddr = e->image->frame_vaddr,
                                        .text = e->image->text_vaddr,
                                        .data = e->image->hdr_vaddr,
                                        .function = e->image->low + entry->start};
    cfi->rules = cie->initial;
    cfi->depth = 0;
    cfi->pc = e->image->low + entry->start;
    cfi->end = e->image->low + entry->end;
    int rc = cfi_run(cfi, &code);
    if (rc != -EBADMSG)
        return rc;
    e->dropped++;
    uint64_t stopped = cfi->pc - e->image->low;
    return stopped < c->limit ? push_gap(c, (uint32_t)stopped) : 0;
}

static int compile_all(struct compiler *c)
{
    struct entries *e = &c->entries;
    int rc = entries_read(e);
    for (uint32_t i = 0; !rc && i < e->count; i++) {
        const struct entry *entry = entries_at(e, i);
        if (i && entry->start == entry[-1].start) {
            e->dropped++; /* two for one address: the first is as good as the second */
            continue;
        }
        uint32_t next = i + 1;
        while (next < e->count && entries_at(e, next)->start == entry->start)
            next++;
        c->limit = entry->end;
        if (next < e->count && entries_at(e, next)->start < c->limit)
            c->limit = entries_at(e, next)->start;
        rc = compile_entry(c, entry);
        if (!rc)
            rc = push_gap(c, c->limit); /* the next FDE overwrites it if it begins right there */
    }
    return rc;
}

static int pack(const struct compiler *c, struct rows *out)
{
    const struct rows_layout layout = {c->row_count, c->wide_count, c->expr_size};
    int rc = rows_allocate(&layout, out);
    if (rc)
        return rc;
    memcpy((void *)out->row, c->rows.data, c->row_count * sizeof(struct row));
    if (c->wide_count)
        memcpy((void *)out->wide, c->wides.data, c->wide_count * sizeof(struct wide));
    if (c->expr_size)
        memcpy((void *)out->expr, c->exprs.data, c->expr_size);
    out->base = c->entries.image->low;
    out->dropped = c->entries.dropped;
    return 0;
}

int rows_compile(const struct rows_image *image, struct rows *out)
{
    memset(out, 0, sizeof(*out));
    if (image->frame_size > FRAME_MAX)
        return -EFBIG;
    if (image->high <= image->low || image->high - image->low > UINT32_MAX)
        return -EBADMSG;
    struct pages self = {0};
    if (pages_reserve(&self, sizeof(struct compiler)))
        return -ENOMEM;
    struct compiler *c = self.data;
    c->entries.image = image;
    c->entries.budget = 16 * (uint64_t)image->frame_size;
    c->entries.cfi.budget = &c->entries.budget;
    c->entries.cfi.emit = emit;
    c->entries.cfi.ctx = c;
    int rc = compile_all(c);
    if (!rc)
        rc = c->row_count ? pack(c, out) : -ENODATA;
    pages_release(&c->entries.pages);
    pages_release(&c->rows);
    pages_release(&c->wides);
    pages_release(&c->exprs);
    pages_release(&self);
    return rc;
}
