/* Holding, checking and searching rows; see rows.h. */
#include "unwind/rows.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "unwind/expression.h"
#include "unwind/rows_internal.h"

size_t rows_payload(const struct rows_layout *layout)
{
    return layout->rows * sizeof(struct row) + layout->wides * sizeof(struct wide) +
           layout->expr_size;
}

void rows_place(const void *data, const struct rows_layout *layout, struct rows *out)
{
    memset(out, 0, sizeof(*out));
    out->row = data;
    out->wide = (const struct wide *)(out->row + layout->rows);
    out->expr = (const uint8_t *)(out->wide + layout->wides);
    out->count = layout->rows;
    out->wide_count = layout->wides;
    out->expr_size = layout->expr_size;
}

int rows_allocate(const struct rows_layout *layout, struct rows *out)
{
    size_t size = rows_payload(layout);
    char *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return -ENOMEM;
    rows_place(data, layout, out);
    out->mapping = data;
    out->mapping_size = size;
    return 0;
}

void rows_release(struct rows *rows)
{
    if (!rows)
        return;
    if (rows->mapping)
        munmap(rows->mapping, rows->mapping_size);
    memset(rows, 0, sizeof(*rows));
}

static bool rule_valid(const struct rows *rows, const struct rule *rule)
{
    if (rule->kind > RULE_VAL_EXPR || rule->reg >= UNWIND_REGS)
        return false;
    if (rule->kind != RULE_EXPR && rule->kind != RULE_VAL_EXPR)
        return true;
    return rule->value >= 0 && (uint32_t)rule->value <= rows->expr_size &&
           rule->size <= rows->expr_size - (uint32_t)rule->value &&
           expression_valid(rows->expr + rule->value, rule->size);
}

bool rows_valid(const struct rows *rows)
{
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct row *row = &rows->row[i];
        if ((i && row->pc <= row[-1].pc) || row->kind > ROW_END || row->cfa_reg >= UNWIND_REGS)
            return false;
        if (row->kind == ROW_WIDE && (uint32_t)row->cfa_offset >= rows->wide_count)
            return false;
    }
    for (uint32_t i = 0; i < rows->wide_count; i++) {
        const struct rule *cfa = &rows->wide[i].cfa;
        if ((cfa->kind != RULE_REGISTER && cfa->kind != RULE_EXPR) || !rule_valid(rows, cfa))
            return false;
        for (int reg = 0; reg < UNWIND_REGS; reg++) {
            if (!rule_valid(rows, &rows->wide[i].reg[reg]))
                return false;
        }
    }
    return true;
}

const struct row *rows_find(const struct rows *rows, uint64_t vaddr)
{
    uint64_t pc = vaddr - rows->base;
    if (vaddr < rows->base || pc > UINT32_MAX || !rows->count || pc < rows->row[0].pc)
        return NULL;
    /* Halving without a branch on the comparison: the outcome is a coin toss for any predictor. */
    const struct row *row = rows->row;
    for (uint32_t n = rows->count; n > 1;) {
        uint32_t half = n / 2;
        row += row[half].pc <= pc ? half : 0;
        n -= half;
    }
    return row;
}
