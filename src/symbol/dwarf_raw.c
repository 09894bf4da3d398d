#include "symbol/dwarf_raw.h"

#include <dwarf.h>

#define CODES_MAX ((uint64_t)1 << 20)
#define ATTRIBUTES_MAX ((size_t)1 << 24)
#define VARIABLE -1
#define UNKNOWN -2

/* Sizes that depend on the unit, beside VARIABLE and UNKNOWN. */
#define OFFSET -3
#define ADDRESS -4
#define REFERENCE -5
#define NOTHING -6 /* no bytes at all; 0 is what the table does not know */

/* Bytes of a value by its form. */
static const int8_t form_sizes[] = {
    [DW_FORM_addr] = ADDRESS,
    [DW_FORM_block2] = VARIABLE,
    [DW_FORM_block4] = VARIABLE,
    [DW_FORM_data2] = 2,
    [DW_FORM_data4] = 4,
    [DW_FORM_data8] = 8,
    [DW_FORM_string] = VARIABLE,
    [DW_FORM_block] = VARIABLE,
    [DW_FORM_block1] = VARIABLE,
    [DW_FORM_data1] = 1,
    [DW_FORM_flag] = 1,
    [DW_FORM_sdata] = VARIABLE,
    [DW_FORM_strp] = OFFSET,
    [DW_FORM_udata] = VARIABLE,
    [DW_FORM_ref_addr] = REFERENCE,
    [DW_FORM_ref1] = 1,
    [DW_FORM_ref2] = 2,
    [DW_FORM_ref4] = 4,
    [DW_FORM_ref8] = 8,
    [DW_FORM_ref_udata] = VARIABLE,
    [DW_FORM_indirect] = VARIABLE,
    [DW_FORM_sec_offset] = OFFSET,
    [DW_FORM_exprloc] = VARIABLE,
    [DW_FORM_flag_present] = NOTHING,
    [DW_FORM_strx] = VARIABLE,
    [DW_FORM_addrx] = VARIABLE,
    [DW_FORM_ref_sup4] = 4,
    [DW_FORM_strp_sup] = OFFSET,
    [DW_FORM_data16] = 16,
    [DW_FORM_line_strp] = OFFSET,
    [DW_FORM_ref_sig8] = 8,
    [DW_FORM_implicit_const] = NOTHING,
    [DW_FORM_loclistx] = VARIABLE,
    [DW_FORM_rnglistx] = VARIABLE,
    [DW_FORM_ref_sup8] = 8,
    [DW_FORM_strx1] = 1,
    [DW_FORM_strx2] = 2,
    [DW_FORM_strx3] = 3,
    [DW_FORM_strx4] = 4,
    [DW_FORM_addrx1] = 1,
    [DW_FORM_addrx2] = 2,
    [DW_FORM_addrx3] = 3,
    [DW_FORM_addrx4] = 4,
};

/* Bytes, VARIABLE or UNKNOWN. */
static int form_size(const struct raw_unit *u, unsigned form)
{
    if (form == DW_FORM_GNU_str_index || form == DW_FORM_GNU_addr_index)
        return VARIABLE;
    if (form == DW_FORM_GNU_ref_alt || form == DW_FORM_GNU_strp_alt)
        return u->offset_size;
    int size = form < sizeof form_sizes ? form_sizes[form] : 0;
    switch (size) {
    case 0:
        return UNKNOWN;
    case NOTHING:
        return 0;
    case OFFSET:
        return u->offset_size;
    case ADDRESS:
        return u->address_size;
    case REFERENCE:
        return u->version == 2 ? u->address_size : u->offset_size;
    default:
        return size;
    }
}

/* Steps over a value whose length is in its content, and gives it where it is a number. */
static bool step_variable(const struct raw_unit *u, unsigned form, struct bytes *b,
                          uint64_t *number)
{
    switch (form) {
    case DW_FORM_string:
        return bytes_string(b) != NULL;
    case DW_FORM_block1:
        return bytes_fixed(b, 1, number) && bytes_skip(b, *number);
    case DW_FORM_block2:
        return bytes_fixed(b, 2, number) && bytes_skip(b, *number);
    case DW_FORM_block4:
        return bytes_fixed(b, 4, number) && bytes_skip(b, *number);
    case DW_FORM_block:
    case DW_FORM_exprloc:
        return bytes_uleb(b, number) && bytes_skip(b, *number);
    case DW_FORM_sdata:
        return bytes_sleb(b, (int64_t *)number);
    case DW_FORM_indirect: {
        uint64_t real;
        if (!bytes_uleb(b, &real) || real == DW_FORM_indirect || real > UINT16_MAX)
            return false;
        int size = form_size(u, (unsigned)real);
        if (size >= 0)
            return bytes_fixed(b, (size_t)size, number);
        return size == VARIABLE && step_variable(u, (unsigned)real, b, number);
    }
    default:
        return bytes_uleb(b, number);
    }
}

static inline bool step(const struct raw_unit *u, const struct raw_attribute *a, struct bytes *b,
                        uint64_t *number)
{
    if (a->size >= 0)
        return bytes_fixed(b, (size_t)a->size, number);
    return step_variable(u, a->form, b, number);
}

/* One attribute after the other, until the pair 0, 0. */
static bool read_attributes(struct raw_unit *u, struct raw_abbrev *a, struct bytes *b)
{
    a->first = (uint32_t)u->attributes.len;
    a->sibling = -1;
    for (;;) {
        uint64_t name, form;
        struct raw_attribute attribute = {0};
        if (!bytes_uleb(b, &name) || !bytes_uleb(b, &form) || name > UINT16_MAX ||
            form > UINT16_MAX || u->attributes.len > ATTRIBUTES_MAX)
            return false;
        if (form == DW_FORM_implicit_const && !bytes_sleb(b, &attribute.constant))
            return false;
        if (name == 0 && form == 0)
            return true;
        attribute.name = (uint16_t)name;
        attribute.form = (uint16_t)form;
        int size = form_size(u, attribute.form);
        if (size == UNKNOWN)
            return false;
        attribute.size = (int8_t)size;
        if (name == DW_AT_sibling && form == DW_FORM_ref4 && a->size >= 0)
            a->sibling = a->size;
        a->size = size < 0 || a->size < 0 || a->size > INT32_MAX / 2 ? -1 : a->size + size;
        *vector_push(&u->attributes) = attribute;
        a->count++;
    }
}

static bool read_abbrevs(struct raw_unit *u, struct bytes b)
{
    for (;;) {
        uint64_t code, tag, children;
        struct raw_abbrev a = {0};
        if (!bytes_uleb(&b, &code))
            return false;
        if (code == 0)
            return true;
        if (code > CODES_MAX || !bytes_uleb(&b, &tag) || tag == 0 || tag > UINT16_MAX ||
            !bytes_fixed(&b, 1, &children))
            return false;
        a.tag = (uint16_t)tag;
        a.children = children != 0;
        if (!read_attributes(u, &a, &b))
            return false;
        while (u->abbrevs.len <= code)
            *vector_push(&u->abbrevs) = (struct raw_abbrev){0};
        u->abbrevs.data[code] = a;
    }
}

bool raw_open(struct raw_unit *u, Dwarf_Die *unit, const struct dwarf_sections *sections)
{
    Dwarf_Die die;
    Dwarf_Off at = dwarf_dieoffset(unit), inside = dwarf_cuoffset(unit), next, abbrevs;
    *u = (struct raw_unit){.cu = unit->cu, .top = unit->addr};
    const struct bytes *info = &sections->info;
    if (u->top < info->at || u->top >= info->end || inside > at ||
        at != (Dwarf_Off)(u->top - info->at))
        return false;
    if (!dwarf_cu_die(unit->cu, &die, &u->version, &abbrevs, &u->address_size, &u->offset_size,
                      NULL, NULL) ||
        dwarf_next_unit(dwarf_cu_getdwarf(unit->cu), at - inside, &next, NULL, NULL, NULL, NULL,
                        NULL, NULL, NULL) != 0)
        return false;
    u->start = u->top - inside;
    uint64_t size = next - (at - inside);
    u->end = next <= at || size > (uint64_t)(info->end - u->start) ? info->end : u->start + size;
    struct bytes b = sections->abbrev;
    return u->address_size <= 8 && u->offset_size <= 8 && bytes_skip(&b, abbrevs) &&
           read_abbrevs(u, b);
}

void raw_release(struct raw_unit *u)
{
    vector_release(&u->attributes);
    vector_release(&u->abbrevs);
}

bool raw_read(const struct raw_unit *u, const uint8_t *at, struct raw_die *die, const uint8_t **end)
{
    uint64_t code;
    die->at = at;
    *end = NULL;
    if (at >= u->end) {
        *end = at == u->end ? at : NULL;
        return false;
    }
    struct bytes b = {at, u->end};
    if (!bytes_uleb(&b, &code))
        return false;
    if (code == 0) {
        *end = b.at;
        return false;
    }
    if (code >= u->abbrevs.len || u->abbrevs.data[code].tag == 0)
        return false;
    die->abbrev = &u->abbrevs.data[code];
    die->data = b.at;
    return true;
}

const uint8_t *raw_inside(const struct raw_unit *u, const struct raw_die *die)
{
    const struct raw_abbrev *a = die->abbrev;
    if (a->size >= 0)
        return a->size <= u->end - die->data ? die->data + a->size : NULL;
    struct bytes b = {die->data, u->end};
    const struct raw_attribute *attribute = &u->attributes.data[a->first];
    uint64_t number;
    for (uint32_t i = 0; i < a->count; i++)
        if (!step(u, &attribute[i], &b, &number))
            return NULL;
    return b.at;
}

/* By DW_AT_sibling where there is one that leads forward. */
static const uint8_t *jump(const struct raw_unit *u, const struct raw_die *die)
{
    const struct raw_abbrev *a = die->abbrev;
    struct bytes b = {die->data, u->end};
    uint64_t offset;
    if (a->sibling >= 0 && bytes_skip(&b, (uint64_t)a->sibling) && bytes_fixed(&b, 4, &offset)) {
        if (offset < (uint64_t)(u->end - u->start) && u->start + offset > die->data)
            return u->start + offset;
    }
    return NULL;
}

const uint8_t *raw_next(const struct raw_unit *u, const struct raw_die *die)
{
    const uint8_t *at = die->abbrev->children ? jump(u, die) : NULL;
    if (at)
        return at;
    at = raw_inside(u, die);
    size_t depth = die->abbrev->children ? 1 : 0;
    while (at && depth > 0) {
        struct raw_die child;
        const uint8_t *end;
        if (!raw_read(u, at, &child, &end)) {
            at = end;
            depth--;
            continue;
        }
        const uint8_t *over = child.abbrev->children ? jump(u, &child) : NULL;
        at = over ? over : raw_inside(u, &child);
        depth += child.abbrev->children && !over;
    }
    return at;
}

void raw_values(const struct raw_unit *u, const struct raw_die *die, struct raw_values *values)
{
    const struct raw_attribute *attribute = &u->attributes.data[die->abbrev->first];
    struct bytes b = {die->data, u->end};
    *values = (struct raw_values){0};
    for (uint32_t i = 0; i < die->abbrev->count; i++) {
        struct raw_value *v = NULL;
        switch (attribute[i].name) {
        case DW_AT_low_pc:
            v = &values->low;
            break;
        case DW_AT_high_pc:
            v = &values->high;
            break;
        case DW_AT_ranges:
            v = &values->ranges;
            break;
        case DW_AT_call_file:
            v = &values->call_file;
            break;
        case DW_AT_call_line:
            v = &values->call_line;
            break;
        default:
            break;
        }
        uint64_t number;
        if (!step(u, &attribute[i], &b, &number))
            return;
        if (v)
            *v = (struct raw_value){attribute[i].form, attribute[i].form == DW_FORM_implicit_const
                                                           ? (uint64_t)attribute[i].constant
                                                           : number};
    }
}

Dwarf_Die raw_for_libdw(const struct raw_unit *u, const uint8_t *at)
{
    return (Dwarf_Die){.addr = (void *)at, .cu = u->cu};
}
