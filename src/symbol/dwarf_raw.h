/*
 * The bytes of one unit's tree, stepped through directly: libdw finds units, sections and names,
 * but looks each attribute up anew, which costs most of the time of a walk. Every step is checked
 * against the unit's end.
 */
#ifndef SONDE_SYMBOL_DWARF_RAW_H
#define SONDE_SYMBOL_DWARF_RAW_H

#include "base/vector.h"
#include "symbol/dwarf_bytes.h"

struct raw_attribute {
    uint16_t name, form;
    int8_t size;      /* in bytes; -1: depends on the content */
    int64_t constant; /* of DW_FORM_implicit_const */
};

struct raw_abbrev {
    uint32_t first, count; /* of the unit's attributes */
    int32_t size;          /* bytes of all attributes; -1: depends on their content */
    int32_t sibling; /* where DW_AT_sibling lies, if that is fixed and it is a ref4; else -1 */
    uint16_t tag;    /* 0: no such code */
    bool children;
};

struct raw_unit {
    Dwarf_CU *cu;
    const uint8_t *start, *end; /* of the unit with its header */
    const uint8_t *top;         /* the unit's own DIE */
    uint16_t version;
    uint8_t address_size, offset_size;
    VECTOR(struct raw_attribute) attributes;
    VECTOR(struct raw_abbrev) abbrevs; /* by code */
};

struct raw_die {
    const uint8_t *at;   /* where it begins */
    const uint8_t *data; /* its attributes */
    const struct raw_abbrev *abbrev;
};

/* What the walk wants to know of a DIE. A value is absent where its form is 0. */
struct raw_value {
    uint16_t form;
    uint64_t number;
};

struct raw_values {
    struct raw_value low, high, ranges, call_file, call_line;
};

/* False if the unit's bytes cannot be had or its abbreviations make no sense; release all the same.
 */
bool raw_open(struct raw_unit *u, Dwarf_Die *unit, const struct dwarf_sections *sections);
void raw_release(struct raw_unit *u);

/* The DIE at `at`. False at the end of a list of siblings (then *end is what follows it), and,
 * with *end NULL, where the bytes make no sense. */
bool raw_read(const struct raw_unit *u, const uint8_t *at, struct raw_die *die,
              const uint8_t **end);
/* Behind its attributes: its first child, if it has children. NULL: broken. */
const uint8_t *raw_inside(const struct raw_unit *u, const struct raw_die *die);
/* Behind all its children. NULL: broken. */
const uint8_t *raw_next(const struct raw_unit *u, const struct raw_die *die);
void raw_values(const struct raw_unit *u, const struct raw_die *die, struct raw_values *values);
/* The same DIE for libdw. */
Dwarf_Die raw_for_libdw(const struct raw_unit *u, const uint8_t *at);

#endif
