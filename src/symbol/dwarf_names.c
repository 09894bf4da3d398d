/*
 * What a function is called. Compilers leave the linkage name out where only one file sees the
 * function (static, or in an anonymous namespace); the scopes around its declaration then complete
 * its name.
 */
#include "symbol/dwarf_internal.h"

#include <dwarf.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"

#define DEPTH_MAX 64
#define SCOPES_MAX ((size_t)1 << 20)

struct scope {
    const void *start, *end; /* where its DIE and the next sibling's lie */
    const char *name;
    uint32_t parent; /* UINT32_MAX: none */
};

struct scope_list {
    VECTOR(struct scope) list; /* by ascending start, parents first */
};

bool language_mangles(int language)
{
    switch (language) {
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
    case DW_LANG_Rust:
    case DW_LANG_D:
    case DW_LANG_Swift:
        return true;
    default:
        return false;
    }
}

static const char *scope_name(Dwarf_Die *die)
{
    const char *name = dwarf_diename(die);
    if (name)
        return name;
    return dwarf_tag(die) == DW_TAG_namespace ? "(anonymous namespace)" : NULL;
}

static bool is_scope(int tag)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
           tag == DW_TAG_union_type;
}

static void collect(struct scope_list *s, Dwarf_Die *parent, uint32_t above, const void *end,
                    int depth)
{
    Dwarf_Die die, next;
    if (depth > DEPTH_MAX || dwarf_child(parent, &die) != 0)
        return;
    for (;;) {
        bool last = dwarf_siblingof(&die, &next) != 0 || next.addr <= die.addr;
        if (is_scope(dwarf_tag(&die)) && dwarf_haschildren(&die) == 1 && s->list.len < SCOPES_MAX) {
            uint32_t here = (uint32_t)s->list.len;
            const void *stop = last ? end : next.addr;
            *vector_push(&s->list) = (struct scope){die.addr, stop, scope_name(&die), above};
            collect(s, &die, here, stop, depth + 1);
        }
        if (last)
            return;
        die = next;
    }
}

void unit_release_scopes(struct unit *u)
{
    if (u->scopes)
        vector_release(&u->scopes->list);
    free(u->scopes);
    u->scopes = NULL;
}

/* The innermost scope around a DIE, or UINT32_MAX. */
static uint32_t scope_of(const struct scope_list *s, const void *addr)
{
    size_t low = 0, n = s->list.len;
    while (n > 0) {
        size_t half = n / 2;
        if ((const char *)s->list.data[low + half].start <= (const char *)addr) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    uint32_t at = low ? (uint32_t)(low - 1) : UINT32_MAX;
    while (at != UINT32_MAX) {
        const struct scope *scope = &s->list.data[at];
        if ((const char *)addr < (const char *)scope->end)
            return at;
        at = scope->parent;
    }
    return UINT32_MAX;
}

static const char *qualified(struct unit *u, Dwarf_Die *die, const char *name)
{
    const struct scope *chain[DEPTH_MAX + 2];
    size_t n = 0;
    if (die->cu != u->tree.cu) /* in a file shared by dwz, or another unit */
        return answers_keep(u->answers, name);
    if (!u->scopes) {
        u->scopes = memory_alloc(sizeof *u->scopes);
        collect(u->scopes, &u->tree, UINT32_MAX, (const void *)UINTPTR_MAX, 0);
    }
    for (uint32_t at = scope_of(u->scopes, die->addr); at != UINT32_MAX && n < DEPTH_MAX;
         at = u->scopes->list.data[at].parent)
        chain[n++] = &u->scopes->list.data[at];
    if (n == 0)
        return answers_keep(u->answers, name);
    struct text t = TEXT_INIT;
    while (n-- > 0) {
        text_add(&t, chain[n]->name ? chain[n]->name : "(anonymous)");
        text_add(&t, "::");
    }
    text_add(&t, name);
    const char *kept = answers_keep(u->answers, t.data);
    text_release(&t);
    return kept;
}

/* From a copy to its abstract origin, and from a definition to its declaration in a class. */
static void follow(Dwarf_Die *die, unsigned attribute)
{
    Dwarf_Attribute a;
    Dwarf_Die to;
    for (int i = 0; i < 16; i++) {
        if (!dwarf_attr(die, attribute, &a) || !dwarf_formref_die(&a, &to))
            return;
        *die = to;
    }
}

static const char *linkage_name(Dwarf_Die *die)
{
    Dwarf_Attribute a;
    if (dwarf_attr_integrate(die, DW_AT_linkage_name, &a) ||
        dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &a))
        return dwarf_formstring(&a);
    return NULL;
}

static struct function_name find_name(struct unit *u, Dwarf_Die *origin)
{
    struct function_name f = {0};
    int line = 0;
    f.linkage = answers_keep(u->answers, linkage_name(origin));
    f.file = answers_keep(u->answers, dwarf_decl_file(origin));
    if (dwarf_decl_line(origin, &line) == 0 && line > 0)
        f.line = (uint32_t)line;
    if (f.linkage)
        return f;
    const char *name = dwarf_diename(origin);
    if (!name)
        return f;
    if (!language_mangles(u->language)) {
        f.linkage = f.function = answers_keep(u->answers, name);
        return f;
    }
    Dwarf_Die declared = *origin;
    follow(&declared, DW_AT_specification);
    f.function = qualified(u, &declared, name);
    return f;
}

const struct function_name *unit_name(struct unit *u, Dwarf_Die *die)
{
    bool added;
    /* A concrete function may carry its linkage name itself, where its origin has none. */
    const char *own = NULL;
    Dwarf_Attribute a;
    if (dwarf_attr(die, DW_AT_linkage_name, &a))
        own = dwarf_formstring(&a);
    Dwarf_Die origin = *die;
    if (!own)
        follow(&origin, DW_AT_abstract_origin);
    uint64_t *index =
        map_put(&u->name_of, (uint64_t)(uintptr_t)origin.addr, 0, u->names.len, &added);
    if (added) {
        size_t at = u->names.len;
        *vector_push(&u->names) = find_name(u, &origin);
        return &u->names.data[at];
    }
    return &u->names.data[*index];
}
