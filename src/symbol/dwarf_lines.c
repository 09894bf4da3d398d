/* A unit's line table, walked once in step with the unit's addresses. */
#include "symbol/dwarf_internal.h"

#include <string.h>

struct row {
    Dwarf_Line *line;
    Dwarf_Addr address;
    bool end;
};

static bool read_row(Dwarf_Lines *lines, size_t i, struct row *row)
{
    row->line = dwarf_onesrcline(lines, i);
    return row->line && dwarf_lineaddr(row->line, &row->address) == 0 &&
           dwarf_lineendsequence(row->line, &row->end) == 0;
}

/* The last row at or below `address`, from `from` on; rows ascend. */
static size_t last_row(Dwarf_Lines *lines, size_t from, size_t count, uint64_t address)
{
    size_t low = from, n = count - from;
    while (n > 0) {
        size_t half = n / 2;
        struct row row;
        if (read_row(lines, low + half, &row) && row.address <= address) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return low;
}

void unit_lines(struct unit *u)
{
    Dwarf_Lines *lines;
    size_t count, from = 0;
    if (dwarf_getsrclines(&u->die, &lines, &count) != 0)
        return;
    for (size_t i = 0; i < u->count; i++) {
        struct unit_address *a = &u->address[i];
        size_t after = last_row(lines, from, count, a->address);
        struct row row;
        if (after == 0 || !read_row(lines, after - 1, &row) || row.end)
            continue;
        from = after - 1;
        int line = 0;
        a->file = answers_keep(u->answers, dwarf_linesrc(row.line, NULL, NULL));
        if (dwarf_lineno(row.line, &line) == 0 && line > 0)
            a->line = (uint32_t)line;
    }
}
