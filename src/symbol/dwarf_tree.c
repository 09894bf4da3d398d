/*
 * The walk over a unit's tree. Frames are met parents first, so an address's innermost frame is
 * the last whose range holds it; siblings that hold none are stepped over with all below them.
 * Types are stepped over too: only if an address is still without a function are they searched.
 */
#include "symbol/dwarf_internal.h"

#include <dwarf.h>

/* Deeper nesting than any compiler makes; the tree of a hostile file has no floor. */
#define DEPTH_MAX 256
#define RANGES_MAX 65536

struct ranges {
    uint64_t low, high;
    bool simple;  /* one range: low and high */
    bool several; /* DW_AT_ranges */
};

struct walk {
    struct unit *u;
    bool thorough; /* look inside types and functions that hold no address themselves */
};

struct attributes {
    Dwarf_Attribute low, high, call_file, call_line, ranges, sibling;
};

static int take_attribute(Dwarf_Attribute *attribute, void *context)
{
    struct attributes *a = context;
    switch (dwarf_whatattr(attribute)) {
    case DW_AT_low_pc:
        a->low = *attribute;
        break;
    case DW_AT_high_pc:
        a->high = *attribute;
        break;
    case DW_AT_ranges:
        a->ranges = *attribute;
        break;
    case DW_AT_call_file:
        a->call_file = *attribute;
        break;
    case DW_AT_call_line:
        a->call_line = *attribute;
        break;
    default:
        break;
    }
    return DWARF_CB_OK;
}

static uint32_t small_number(Dwarf_Attribute *attribute)
{
    Dwarf_Word value;
    if (!attribute->valp || dwarf_formudata(attribute, &value) != 0 || value > UINT32_MAX)
        return 0;
    return (uint32_t)value;
}

/* A low_pc of 0 marks code that the linker left out. */
static void read_ranges(struct attributes *a, struct ranges *r)
{
    Dwarf_Addr low, high;
    Dwarf_Word size;
    *r = (struct ranges){.several = a->ranges.valp != NULL};
    if (!a->low.valp || dwarf_formaddr(&a->low, &low) != 0 || low == 0)
        return;
    r->low = low;
    if (!a->high.valp)
        return;
    if (dwarf_formaddr(&a->high, &high) != 0) {
        if (dwarf_formudata(&a->high, &size) != 0)
            return;
        high = low + size;
    }
    r->high = high;
    r->simple = high > low;
}

static size_t first_at(const struct unit *u, uint64_t address)
{
    size_t low = 0, n = u->count;
    while (n > 0) {
        size_t half = n / 2;
        if (u->address[low + half].address < address) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return low;
}

/* Gives the addresses in [low, high) that are at `parent` to `frame`; whether there were any. An
 * address elsewhere belongs to a sibling whose range overlaps: the first one keeps it. */
static bool claim(struct unit *u, uint64_t low, uint64_t high, uint32_t parent, uint32_t frame)
{
    bool any = false;
    for (size_t i = first_at(u, low); i < u->count && u->address[i].address < high; i++)
        if (u->address[i].frame == parent) {
            u->address[i].frame = frame;
            any = true;
        }
    return any;
}

static bool claim_all(struct unit *u, Dwarf_Die *die, const struct ranges *r, uint32_t parent,
                      uint32_t frame)
{
    Dwarf_Addr base, low, high;
    ptrdiff_t at = 0;
    if (r->simple)
        return claim(u, r->low, r->high, parent, frame);
    bool any = false;
    for (int n = 0; r->several && n < RANGES_MAX; n++) {
        at = dwarf_ranges(die, at, &base, &low, &high);
        if (at <= 0)
            break;
        if (low != 0)
            any |= claim(u, low, high, parent, frame);
    }
    return any;
}

static bool holds_any(const struct unit *u, const struct ranges *r)
{
    if (!r->simple)
        return true; /* several or none: cheaper to look inside than to read them */
    size_t i = first_at(u, r->low);
    return i < u->count && u->address[i].address < r->high;
}

static void walk_children(struct walk *w, Dwarf_Die *parent, uint32_t frame, int depth);

static void visit_function(struct walk *w, Dwarf_Die *die, uint32_t parent, int depth)
{
    struct unit *u = w->u;
    struct attributes a = {0};
    struct ranges r;
    dwarf_getattrs(die, take_attribute, &a, 0);
    read_ranges(&a, &r);
    uint32_t frame = (uint32_t)u->frames.len;
    if (r.simple || r.several) {
        *vector_push(&u->frames) = (struct frame){.die = *die,
                                                  .start = r.low,
                                                  .parent = parent,
                                                  .call_file = small_number(&a.call_file),
                                                  .call_line = small_number(&a.call_line)};
        if (claim_all(u, die, &r, parent, frame)) {
            Dwarf_Addr entry;
            if (!r.low && dwarf_entrypc(die, &entry) == 0)
                u->frames.data[frame].start = entry;
            walk_children(w, die, frame, depth + 1);
            return;
        }
        u->frames.len--;
    }
    if (w->thorough && parent == FRAME_NONE)
        walk_children(w, die, FRAME_NONE, depth + 1);
}

static void visit(struct walk *w, Dwarf_Die *die, uint32_t frame, int depth)
{
    switch (dwarf_tag(die)) {
    case DW_TAG_subprogram:
        visit_function(w, die, FRAME_NONE, depth);
        break;
    case DW_TAG_inlined_subroutine:
        if (frame != FRAME_NONE)
            visit_function(w, die, frame, depth);
        break;
    case DW_TAG_lexical_block:
    case DW_TAG_try_block:
    case DW_TAG_catch_block: {
        struct attributes a = {0};
        struct ranges r;
        dwarf_getattrs(die, take_attribute, &a, 0);
        read_ranges(&a, &r);
        if (w->thorough || holds_any(w->u, &r))
            walk_children(w, die, frame, depth + 1);
        break;
    }
    case DW_TAG_namespace:
    case DW_TAG_module:
        walk_children(w, die, frame, depth + 1);
        break;
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type:
        if (w->thorough)
            walk_children(w, die, FRAME_NONE, depth + 1);
        break;
    default:
        break;
    }
}

static void walk_children(struct walk *w, Dwarf_Die *parent, uint32_t frame, int depth)
{
    Dwarf_Die die, next;
    if (depth > DEPTH_MAX || dwarf_child(parent, &die) != 0)
        return;
    for (;;) {
        visit(w, &die, frame, depth);
        if (dwarf_siblingof(&die, &next) != 0 || next.addr <= die.addr)
            return;
        die = next;
    }
}

void unit_walk(struct unit *u)
{
    /* Rust puts methods inside the types that they belong to. */
    struct walk w = {.u = u, .thorough = u->language == DW_LANG_Rust};
    walk_children(&w, &u->tree, FRAME_NONE, 0);
    if (w.thorough)
        return;
    for (size_t i = 0; i < u->count; i++)
        if (u->address[i].frame == FRAME_NONE) {
            w.thorough = true;
            walk_children(&w, &u->tree, FRAME_NONE, 0);
            return;
        }
}
