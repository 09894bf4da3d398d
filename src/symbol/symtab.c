/*
 * Names from ELF symbol tables, in one pass without sorting the table: a symbol is looked up
 * among the addresses asked for, and only those that could answer one are kept. The kept ones are
 * then swept once in order of address.
 */
#include "symbol/symbol_internal.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/vector.h"

#define TABLE_MAX ((size_t)1 << 30)
#define SYMBOLS_KEPT_MAX ((size_t)1 << 24)

struct candidate {
    uint64_t start, end; /* end == start: the table gives no size */
    uint64_t limit;      /* end of the section */
    const char *name;
    uint8_t rank; /* more is better */
};

struct finder {
    uint64_t *query; /* ascending, distinct */
    size_t queries;
    uint64_t *nearest; /* per query: the highest symbol at or below it that fell into its slot */
    struct candidate *best;
    VECTOR(struct candidate) kept;
};

struct entry {
    uint64_t value, size;
    uint32_t name;
    uint8_t info;
    uint16_t section;
};

static unsigned underscores(const char *name)
{
    return (unsigned)strspn(name, "_");
}

/* Which of two names for the same code people know it by. */
static int better(const struct candidate *a, const struct candidate *b)
{
    if (a->rank != b->rank)
        return a->rank > b->rank ? 1 : -1;
    unsigned ua = underscores(a->name), ub = underscores(b->name);
    bool mangled = a->name[ua] == 'Z' || b->name[ub] == 'Z';
    if (ua != ub && !mangled)
        return ua < ub ? 1 : -1;
    size_t la = strlen(a->name), lb = strlen(b->name);
    if (la != lb)
        return la < lb ? 1 : -1;
    return -strcmp(a->name, b->name);
}

static int by_start(const void *x, const void *y)
{
    const struct candidate *a = x, *b = y;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return better(a, b);
}

static int by_value(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

static size_t query_from(const struct finder *f, uint64_t address)
{
    size_t low = 0, n = f->queries;
    while (n > 0) {
        size_t half = n / 2;
        bool below = f->query[low + half] < address;
        low = below ? low + half + 1 : low;
        n = below ? n - half - 1 : half;
    }
    return low;
}

/* What still needs a name, and the beginnings of functions whose linkage name is not known. */
static void finder_init(struct finder *f, const struct answers *a)
{
    *f = (struct finder){0};
    f->query = memory_array(2 * a->count + 1, sizeof *f->query);
    for (size_t i = 0; i < a->count; i++) {
        const struct answer *answer = &a->item[i];
        if (!answer->named)
            f->query[f->queries++] = a->address[i];
        else if (answer->n && !answer->location[answer->n - 1].linkage)
            f->query[f->queries++] = answer->location[answer->n - 1].start;
    }
    qsort(f->query, f->queries, sizeof *f->query, by_value);
    size_t kept = 0;
    for (size_t i = 0; i < f->queries; i++)
        if (kept == 0 || f->query[kept - 1] != f->query[i])
            f->query[kept++] = f->query[i];
    f->queries = kept;
    f->nearest = memory_array(kept + 1, sizeof *f->nearest);
    f->best = memory_array(kept + 1, sizeof *f->best);
}

static void finder_release(struct finder *f)
{
    free(f->query);
    free(f->nearest);
    free(f->best);
    vector_release(&f->kept);
}

static void finder_offer(struct finder *f, const struct candidate *c)
{
    size_t slot = query_from(f, c->start);
    if (slot == f->queries)
        return;
    if (c->start > f->nearest[slot])
        f->nearest[slot] = c->start;
    bool sized = c->end > c->start;
    if (sized ? f->query[slot] >= c->end
              : f->query[slot] >= c->limit || c->start < f->nearest[slot])
        return;
    if (f->kept.len < SYMBOLS_KEPT_MAX)
        *vector_push(&f->kept) = *c;
}

/* Candidates by ascending start; those still open form a stack whose top began last. */
static void finder_sweep(struct finder *f)
{
    if (f->kept.len)
        qsort(f->kept.data, f->kept.len, sizeof *f->kept.data, by_start);
    VECTOR(const struct candidate *) open = {0};
    const struct candidate *unsized = NULL;
    uint64_t nearest = 0;
    size_t next = 0;
    for (size_t q = 0; q < f->queries; q++) {
        uint64_t address = f->query[q];
        for (; next < f->kept.len && f->kept.data[next].start <= address; next++) {
            const struct candidate *c = &f->kept.data[next];
            if (c->end > c->start)
                *vector_push(&open) = c;
            else
                unsized = c;
        }
        if (f->nearest[q] > nearest)
            nearest = f->nearest[q];
        while (open.len && open.data[open.len - 1]->end <= address)
            open.len--;
        if (open.len)
            f->best[q] = *open.data[open.len - 1];
        else if (unsized && unsized->start == nearest && address < unsized->limit)
            f->best[q] = *unsized;
    }
    vector_release(&open);
}

static bool is_label(const char *name)
{
    return name[0] == '\0' || (name[0] == '.' && name[1] == 'L') || name[0] == '$';
}

static uint8_t rank_of(uint8_t info)
{
    unsigned bind = info >> 4, type = info & 15;
    uint8_t rank = bind == STB_GLOBAL || bind == STB_GNU_UNIQUE ? 3 : bind == STB_WEAK ? 2 : 1;
    return (uint8_t)(rank + (type == STT_NOTYPE ? 0 : 4));
}

static void read_entry(const struct image *image, const uint8_t *at, struct entry *e)
{
    if (image->wide) {
        Elf64_Sym s;
        memcpy(&s, at, sizeof s);
        *e = (struct entry){s.st_value, s.st_size, s.st_name, s.st_info, s.st_shndx};
    } else {
        Elf32_Sym s;
        memcpy(&s, at, sizeof s);
        *e = (struct entry){s.st_value, s.st_size, s.st_name, s.st_info, s.st_shndx};
    }
}

static size_t scan_table(struct finder *f, const struct image *image, const uint8_t *table,
                         size_t len, const char *strings, size_t strings_len)
{
    size_t step = image->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym), seen = 0;
    for (size_t at = 0; len - at >= step; at += step) {
        struct entry e;
        read_entry(image, table + at, &e);
        unsigned type = e.info & 15;
        if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
            continue;
        if (e.section == SHN_UNDEF || e.section >= image->sections || e.name >= strings_len)
            continue;
        const struct image_section *s = &image->section[e.section];
        if (!(s->flags & SHF_EXECINSTR) || is_label(strings + e.name))
            continue;
        seen++;
        uint64_t end = e.size > UINT64_MAX - e.value ? UINT64_MAX : e.value + e.size;
        uint64_t limit = s->size > UINT64_MAX - s->address ? UINT64_MAX : s->address + s->size;
        finder_offer(f,
                     &(struct candidate){e.value, end, limit, strings + e.name, rank_of(e.info)});
    }
    return seen;
}

/* Without the symbol version that newer linkers put into .symtab ("memcpy@@GLIBC_2.14"). */
static const char *keep_name(struct answers *a, const char *name)
{
    char plain[SYMBOL_TEXT_MAX];
    const char *at = strchr(name, '@');
    size_t len = at && at > name ? (size_t)(at - name) : strlen(name);
    if (len >= sizeof plain)
        len = sizeof plain - 1;
    memcpy(plain, name, len);
    plain[len] = '\0';
    return answers_keep(a, plain);
}

static size_t apply(struct answers *a, const struct finder *f)
{
    size_t named = 0;
    for (size_t i = 0; i < a->count; i++) {
        struct answer *answer = &a->item[i];
        bool open = !answer->named;
        struct symbol_location *outer = answer->n ? &answer->location[answer->n - 1] : NULL;
        if (!open && outer->linkage)
            continue;
        uint64_t address = open ? a->address[i] : outer->start;
        size_t q = query_from(f, address);
        if (q == f->queries || f->query[q] != address || !f->best[q].name)
            continue;
        if (open)
            answers_name(a, i, keep_name(a, f->best[q].name), f->best[q].start);
        else if (f->best[q].start == address)
            outer->linkage = keep_name(a, f->best[q].name);
        named += open;
    }
    return named;
}

size_t symtab_resolve(struct module *m, const struct image *image, const char *section)
{
    const struct image_section *s = image_find(image, section);
    size_t len = 0, strings_len = 0, seen = 0;
    if (!s || s->link >= image->sections)
        return 0;
    struct finder f;
    finder_init(&f, &m->answers);
    if (f.queries == 0) {
        finder_release(&f);
        return 1;
    }
    uint8_t *table = image_load(image, s, TABLE_MAX, &len);
    char *strings = (char *)image_load(image, &image->section[s->link], TABLE_MAX, &strings_len);
    if (table && strings) {
        seen = scan_table(&f, image, table, len, strings, strings_len);
        finder_sweep(&f);
        if (apply(&m->answers, &f))
            module_credit(m, image->path);
    }
    finder_release(&f);
    free(table);
    free(strings);
    return seen;
}

static int symtab_run(struct module *m, struct error *err)
{
    (void)err;
    const struct image *from[] = {m->debug, m->image};
    for (size_t i = 0; i < 2; i++)
        if (from[i] && symtab_resolve(m, from[i], ".symtab"))
            m->had_symtab = true;
    if (m->image && m->answers.open)
        symtab_resolve(m, m->image, ".dynsym");
    return 0;
}

const struct resolver resolver_symtab = {"symtab", SYMBOL_ELF, symtab_run};
