/*
 * Debug information through libdw's primitives. A unit that covers an address asked for is read
 * once: its line table in step with the sorted addresses, its tree only where a range holds one of
 * them.
 */
#ifndef SONDE_SYMBOL_DWARF_INTERNAL_H
#define SONDE_SYMBOL_DWARF_INTERNAL_H

#include "base/map.h"
#include "base/vector.h"
#include "symbol/dwarf_lines.h"
#include "symbol/dwarf_raw.h"
#include "symbol/symbol_internal.h"

#define FRAME_NONE UINT32_MAX

/* A function, or a function inlined into its parent, whose code holds an address. */
struct frame {
    Dwarf_Die die;
    uint64_t start;
    uint32_t parent; /* FRAME_NONE: a function of its own */
    uint32_t call_file, call_line;
};

/* What a function is called; found once for all its inlined copies. */
struct function_name {
    const char *linkage; /* NULL: the symbol table may know */
    const char *function;
    const char *file;
    uint32_t line;
};

struct unit_address {
    uint64_t address;
    size_t index;     /* among the request's */
    uint32_t frame;   /* innermost so far */
    const char *file; /* from the line table */
    uint32_t line;
    bool lined;
};

/* One unit being read. */
struct unit {
    struct answers *answers;
    Dwarf_Die die;            /* of the unit; the skeleton where the rest is in a .dwo file */
    Dwarf_Die tree;           /* where functions are */
    struct raw_unit raw;      /* of the tree */
    struct line_table *lines; /* NULL: none */
    struct line_table *files; /* what file numbers in the tree mean; NULL: nothing */
    int language;
    struct unit_address *address; /* ascending */
    size_t count;
    VECTOR(struct frame) frames;
    VECTOR(struct function_name) names;
    struct map name_of;        /* address of a DIE -> index of names */
    struct scope_list *scopes; /* made when first needed */
};

/* Finds each address's innermost frame. */
void unit_walk(struct unit *u);
/* The name of a frame's function. */
const struct function_name *unit_name(struct unit *u, Dwarf_Die *die);
/* A file by its number: made absolute, without "." and "..", and kept; NULL if unknown. */
const char *unit_file(struct unit *u, struct line_table *t, uint64_t number);
void unit_release_scopes(struct unit *u);

/* C++, Rust, D and the like: names outside a namespace are not whole. */
bool language_mangles(int language);

#endif
