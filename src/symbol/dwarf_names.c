/*
 * What a function is called. Compilers leave the linkage name out where only one file sees the
 * function (static, or in an anonymous namespace); the scopes around its declaration then complete
 * its name.
 */
#include "symbol/dwarf_internal.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

#define DEPTH_MAX 64
#define SCOPES_MAX ((size_t)1 << 20)

struct scope {
    const uint8_t *start, *end; /* its DIE with all that is below */
    uint32_t parent;            /* UINT32_MAX: the unit */
    uint32_t first, count;      /* its own scopes, once looked into */
    bool expanded;
};

/* A tree that grows where names are looked for; the unit itself is the first. */
struct scope_list {
    VECTOR(struct scope) list;
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

/* "/a/./b//c/../d" becomes "/a/b/d": the same header is reached over many ways. */
static void add_folded(struct text *t, const char *path)
{
    while (*path) {
        size_t len = strcspn(path, "/");
        if (len == 2 && memcmp(path, "..", 2) == 0) {
            while (t->len > 0 && t->data[--t->len] != '/')
                ;
            if (t->cap)
                t->data[t->len] = '\0';
        } else if (len > 0 && !(len == 1 && *path == '.')) {
            text_add_char(t, '/');
            text_add_len(t, path, len);
        }
        path += len + (path[len] == '/');
    }
}

static void add_part(struct text *t, const char *part)
{
    if (part && part[0] == '/')
        text_clear(t);
    if (part)
        add_folded(t, part);
}

const char *unit_file(struct unit *u, struct line_table *t, uint64_t number)
{
    if (!t || number >= t->files.len || !t->files.data[number].name)
        return NULL;
    struct line_file *f = &t->files.data[number];
    if (f->path)
        return f->path;
    const char *folder = f->folder < t->folders.len ? t->folders.data[f->folder] : NULL;
    struct text path = TEXT_INIT;
    add_part(&path, t->base);
    add_part(&path, folder == t->base ? NULL : folder);
    add_part(&path, f->name);
    bool whole =
        f->name[0] == '/' || (folder && folder[0] == '/') || (t->base && t->base[0] == '/');
    f->path = answers_keep(u->answers, path.data + (!whole && path.len ? 1 : 0));
    text_release(&path);
    return f->path;
}

static bool is_scope(unsigned tag)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
           tag == DW_TAG_union_type || tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block;
}

/* Puts the scopes right below one into the list. */
static void expand(const struct raw_unit *raw, struct scope_list *s, uint32_t parent)
{
    struct raw_die die, child;
    const uint8_t *end;
    s->list.data[parent].expanded = true;
    s->list.data[parent].first = (uint32_t)s->list.len;
    if (!raw_read(raw, s->list.data[parent].start, &die, &end) || !die.abbrev->children)
        return;
    const uint8_t *at = raw_inside(raw, &die);
    while (at && s->list.len < SCOPES_MAX && raw_read(raw, at, &child, &end)) {
        const uint8_t *next = raw_next(raw, &child);
        if (next && child.abbrev->children && is_scope(child.abbrev->tag)) {
            *vector_push(&s->list) = (struct scope){.start = at, .end = next, .parent = parent};
            s->list.data[parent].count++;
        }
        at = next;
    }
}

static struct scope_list *scopes_of(struct unit *u)
{
    if (!u->scopes) {
        u->scopes = memory_alloc(sizeof *u->scopes);
        *vector_push(&u->scopes->list) =
            (struct scope){.start = u->raw.top, .end = u->raw.end, .parent = UINT32_MAX};
    }
    return u->scopes;
}

void unit_release_scopes(struct unit *u)
{
    if (u->scopes)
        vector_release(&u->scopes->list);
    free(u->scopes);
    u->scopes = NULL;
}

/* The scope right below `parent` that holds a DIE and is not that DIE, or UINT32_MAX. */
static uint32_t scope_below(const struct scope_list *s, uint32_t parent, const uint8_t *at)
{
    const struct scope *p = &s->list.data[parent];
    size_t low = p->first, n = p->count;
    while (n > 0) {
        size_t half = n / 2;
        bool before = s->list.data[low + half].start < at;
        low = before ? low + half + 1 : low;
        n = before ? n - half - 1 : half;
    }
    return low > p->first && at < s->list.data[low - 1].end ? (uint32_t)(low - 1) : UINT32_MAX;
}

static const char *scope_name(struct unit *u, const struct scope *scope, const char *inner)
{
    Dwarf_Die die = raw_for_libdw(&u->raw, scope->start);
    const char *name = dwarf_diename(&die);
    int tag = dwarf_tag(&die);
    if (name || tag == DW_TAG_lexical_block)
        return name;
    if (tag == DW_TAG_namespace)
        return "(anonymous namespace)";
    return strncmp(inner, "operator()", 10) == 0 ? "{lambda}" : "{unnamed}";
}

/* With the names of the namespaces, classes and functions around it. */
static const char *qualified(struct unit *u, Dwarf_Die *die, const char *name)
{
    struct text t = TEXT_INIT;
    struct scope_list *s = scopes_of(u);
    uint32_t scope = die->cu == u->tree.cu ? 0 : UINT32_MAX; /* not in a file shared by dwz */
    for (int depth = 0; scope != UINT32_MAX && depth < DEPTH_MAX; depth++) {
        const char *outer = depth ? scope_name(u, &s->list.data[scope], name) : NULL;
        if (outer) {
            text_add(&t, outer);
            text_add(&t, "::");
        }
        if (!s->list.data[scope].expanded)
            expand(&u->raw, s, scope);
        scope = scope_below(s, scope, die->addr);
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

/* glibc's inner aliases: nobody outside of it knows __GI___libc_malloc. */
static const char *without_alias(const char *name)
{
    return name && text_starts(name, "__GI_") && name[5] ? name + 5 : name;
}

static const char *linkage_name(Dwarf_Die *die)
{
    Dwarf_Attribute a;
    if (dwarf_attr_integrate(die, DW_AT_linkage_name, &a) ||
        dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &a))
        return without_alias(dwarf_formstring(&a));
    return NULL;
}

/* File numbers of other units mean other files; dwarf_decl_file would read their line tables. */
static const char *declared_in(struct unit *u, Dwarf_Die *die)
{
    Dwarf_Attribute a;
    Dwarf_Word number;
    if (!dwarf_attr_integrate(die, DW_AT_decl_file, &a) || a.cu != u->tree.cu ||
        dwarf_formudata(&a, &number) != 0)
        return NULL;
    return unit_file(u, u->files, number);
}

static struct function_name find_name(struct unit *u, Dwarf_Die *origin)
{
    struct function_name f = {0};
    int line = 0;
    f.linkage = answers_keep(u->answers, linkage_name(origin));
    f.file = declared_in(u, origin);
    if (dwarf_decl_line(origin, &line) == 0 && line > 0)
        f.line = (uint32_t)line;
    if (f.linkage)
        return f;
    const char *name = dwarf_diename(origin);
    if (!name)
        return f;
    if (!language_mangles(u->language)) {
        f.linkage = f.function = answers_keep(u->answers, without_alias(name));
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
