/*
 * One unit's line table: its file names, and its program run once over the unit's addresses. libdw
 * would keep and sort every row; here a row lives until the next one.
 */
#ifndef SONDE_SYMBOL_DWARF_LINES_H
#define SONDE_SYMBOL_DWARF_LINES_H

#include "base/vector.h"
#include "symbol/dwarf_bytes.h"

struct line_file {
    const char *name;
    uint64_t folder;
    const char *path; /* whole, once asked for */
};

struct line_table {
    const struct dwarf_sections *sections;
    const char *base; /* the unit's own folder; may be NULL */
    struct bytes program;
    uint16_t version;
    uint8_t address_size, offset_size;
    uint8_t step, line_range, opcode_base;
    int8_t line_base;
    uint8_t length[256]; /* operands of standard opcodes */
    VECTOR(const char *) folders;
    VECTOR(struct line_file) files; /* by the number that the version gives them */
};

/* Reads the header at `offset` of .debug_line. False if it makes no sense; release all the same. */
bool line_table_open(struct line_table *t, const struct dwarf_sections *sections, uint64_t offset,
                     uint8_t address_size, const char *base);
void line_table_release(struct line_table *t);

/*
 * Runs the program. For every piece of code [low, high) whose file and line it gives, `take` is
 * called, in ascending order within a sequence, unless `high` is at or below what `take` last
 * returned: the next address of interest, UINT64_MAX if there is none. `begin` is asked for it at
 * the start of a sequence.
 */
struct line_reader {
    uint64_t (*begin)(void *context, uint64_t low);
    uint64_t (*take)(void *context, uint64_t low, uint64_t high, uint64_t file, uint32_t line);
    void *context;
};
void line_table_run(const struct line_table *t, const struct line_reader *reader);

#endif
