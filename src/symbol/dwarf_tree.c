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

static uint32_t small_number(const struct raw_value *v)
{
    return v->form && v->number <= UINT32_MAX ? (uint32_t)v->number : 0;
}

static bool is_address_index(unsigned form)
{
    return form == DW_FORM_addrx || form == DW_FORM_GNU_addr_index ||
           (form >= DW_FORM_addrx1 && form <= DW_FORM_addrx4);
}

/* Indices into .debug_addr are libdw's to resolve. */
static uint64_t address_of(const struct unit *u, const struct raw_die *die,
                           const struct raw_value *v, unsigned name)
{
    Dwarf_Attribute a;
    Dwarf_Addr address;
    if (v->form == DW_FORM_addr)
        return v->number;
    Dwarf_Die full = raw_for_libdw(&u->raw, die->at);
    if (!dwarf_attr(&full, name, &a) || dwarf_formaddr(&a, &address) != 0)
        return 0;
    return address;
}

/* A low_pc of 0 marks code that the linker left out. */
static void read_ranges(const struct unit *u, const struct raw_die *die,
                        const struct raw_values *values, struct ranges *r)
{
    *r = (struct ranges){.several = values->ranges.form != 0};
    if (!values->low.form)
        return;
    r->low = address_of(u, die, &values->low, DW_AT_low_pc);
    if (r->low == 0 || !values->high.form)
        return;
    bool absolute = values->high.form == DW_FORM_addr || is_address_index(values->high.form);
    r->high =
        absolute ? address_of(u, die, &values->high, DW_AT_high_pc) : r->low + values->high.number;
    r->simple = r->high > r->low;
}

static size_t first_at(const struct unit *u, uint64_t address)
{
    size_t low = 0, n = u->count;
    while (n > 0) {
        size_t half = n / 2;
        bool below = u->address[low + half].address < address;
        low = below ? low + half + 1 : low;
        n = below ? n - half - 1 : half;
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

static bool claim_all(struct unit *u, const struct raw_die *die, const struct ranges *r,
                      uint32_t parent, uint32_t frame)
{
    Dwarf_Addr base, low, high;
    ptrdiff_t at = 0;
    if (r->simple)
        return claim(u, r->low, r->high, parent, frame);
    Dwarf_Die full = raw_for_libdw(&u->raw, die->at);
    bool any = false;
    for (int n = 0; r->several && n < RANGES_MAX; n++) {
        at = dwarf_ranges(&full, at, &base, &low, &high);
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

static const uint8_t *walk_list(struct walk *w, const uint8_t *at, uint32_t frame, int depth);

static const uint8_t *walk_children(struct walk *w, const struct raw_die *die, uint32_t frame,
                                    int depth)
{
    if (!die->abbrev->children || depth >= DEPTH_MAX)
        return raw_next(&w->u->raw, die);
    const uint8_t *inside = raw_inside(&w->u->raw, die);
    return inside ? walk_list(w, inside, frame, depth + 1) : NULL;
}

static const uint8_t *visit_function(struct walk *w, const struct raw_die *die, uint32_t parent,
                                     int depth)
{
    struct unit *u = w->u;
    struct raw_values values;
    struct ranges r;
    raw_values(&u->raw, die, &values);
    read_ranges(u, die, &values, &r);
    uint32_t frame = (uint32_t)u->frames.len;
    if ((r.simple || r.several) && claim_all(u, die, &r, parent, frame)) {
        struct frame f = {.die = raw_for_libdw(&u->raw, die->at),
                          .start = r.low,
                          .parent = parent,
                          .call_file = small_number(&values.call_file),
                          .call_line = small_number(&values.call_line)};
        Dwarf_Addr entry;
        if (!r.low && dwarf_entrypc(&f.die, &entry) == 0)
            f.start = entry;
        *vector_push(&u->frames) = f;
        return walk_children(w, die, frame, depth);
    }
    if (w->thorough && parent == FRAME_NONE)
        return walk_children(w, die, FRAME_NONE, depth);
    return raw_next(&u->raw, die);
}

static const uint8_t *visit_block(struct walk *w, const struct raw_die *die, uint32_t frame,
                                  int depth)
{
    struct raw_values values;
    struct ranges r;
    raw_values(&w->u->raw, die, &values);
    read_ranges(w->u, die, &values, &r);
    if (w->thorough || holds_any(w->u, &r))
        return walk_children(w, die, frame, depth);
    return raw_next(&w->u->raw, die);
}

/* Looks at one DIE and what is below it; returns where the next one begins. */
static const uint8_t *visit(struct walk *w, const struct raw_die *die, uint32_t frame, int depth)
{
    switch (die->abbrev->tag) {
    case DW_TAG_subprogram:
        return visit_function(w, die, FRAME_NONE, depth);
    case DW_TAG_inlined_subroutine:
        if (frame != FRAME_NONE)
            return visit_function(w, die, frame, depth);
        break;
    case DW_TAG_lexical_block:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
        return visit_block(w, die, frame, depth);
    case DW_TAG_namespace:
    case DW_TAG_module:
        return walk_children(w, die, frame, depth);
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type:
        if (w->thorough)
            return walk_children(w, die, FRAME_NONE, depth);
        break;
    default:
        break;
    }
    return raw_next(&w->u->raw, die);
}

static const uint8_t *walk_list(struct walk *w, const uint8_t *at, uint32_t frame, int depth)
{
    struct raw_die die;
    const uint8_t *end = NULL;
    while (at && raw_read(&w->u->raw, at, &die, &end))
        at = visit(w, &die, frame, depth);
    return at ? end : NULL;
}

static void walk_unit(struct walk *w)
{
    struct raw_die top;
    const uint8_t *end;
    if (raw_read(&w->u->raw, w->u->raw.top, &top, &end))
        walk_children(w, &top, FRAME_NONE, 0);
}

void unit_walk(struct unit *u)
{
    /* Rust puts methods inside the types that they belong to. */
    struct walk w = {.u = u, .thorough = u->language == DW_LANG_Rust};
    walk_unit(&w);
    for (size_t i = 0; i < u->count && !w.thorough; i++)
        if (u->address[i].frame == FRAME_NONE) {
            w.thorough = true;
            walk_unit(&w);
        }
}
