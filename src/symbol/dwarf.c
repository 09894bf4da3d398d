/*
 * Lines and inlined functions from debug information, in the separate debug file if there is one,
 * else in the module's own. See dwarf_internal.h.
 */
#include "symbol/dwarf_internal.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

#define INFLATED_MAX ((uint64_t)3 << 30)
#define UNIT_RANGES_MAX ((size_t)1 << 24)
#define UNITS_MAX ((size_t)1 << 22)

struct unit_range {
    uint64_t low, high;
    Dwarf_CU *cu;
    uint32_t order; /* of the unit in the file */
};

struct debug_info {
    Elf *elf, *alt_elf;
    Dwarf *dwarf, *alt;
    struct image *alt_image;
    VECTOR(struct unit_range) ranges;
};

static int by_low(const void *x, const void *y)
{
    const struct unit_range *a = x, *b = y;
    if (a->low != b->low)
        return a->low < b->low ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

static Elf *elf_of(const struct image *image)
{
    elf_version(EV_CURRENT);
    if (image->memory)
        return elf_memory((char *)image->memory, image->size);
    return elf_begin(image->fd, ELF_C_READ_MMAP_PRIVATE, NULL);
}

static bool alt_fits(const struct image *image, const void *id, ssize_t len)
{
    return image && len > 0 && image_is(image, id, (size_t)len);
}

/* The file that dwz moved shared parts to: as named, beside the debug file, or by build-id. */
static void open_alt(struct debug_info *d, const struct module *m, const struct image *image)
{
    const char *name;
    const void *id;
    ssize_t len = dwelf_dwarf_gnu_debugaltlink(d->dwarf, &name, &id);
    if (len <= 0)
        return;
    struct text path = TEXT_INIT;
    const char *slash = strrchr(image->path, '/');
    if (name[0] != '/' && slash)
        text_add_len(&path, image->path, (size_t)(slash - image->path) + 1);
    text_add(&path, name);
    d->alt_image = image_open(m->request->root, path.data, NULL);
    if (!alt_fits(d->alt_image, id, len) && m->request->root) {
        image_free(d->alt_image);
        d->alt_image = image_open(NULL, path.data, NULL);
    }
    if (!alt_fits(d->alt_image, id, len)) {
        text_clear(&path);
        text_format(&path, "/usr/lib/debug/.build-id/%02x/", ((const uint8_t *)id)[0]);
        for (ssize_t i = 1; i < len; i++)
            text_format(&path, "%02x", ((const uint8_t *)id)[i]);
        text_add(&path, ".debug");
        image_free(d->alt_image);
        d->alt_image = image_open(m->request->root, path.data, NULL);
    }
    text_release(&path);
    if (!alt_fits(d->alt_image, id, len) || image_inflated(d->alt_image) > INFLATED_MAX)
        return;
    d->alt_elf = elf_of(d->alt_image);
    d->alt = d->alt_elf ? dwarf_begin_elf(d->alt_elf, DWARF_C_READ, NULL) : NULL;
    if (d->alt)
        dwarf_setalt(d->dwarf, d->alt);
}

static int debug_open(struct debug_info *d, const struct module *m, const struct image *image,
                      struct error *err)
{
    *d = (struct debug_info){0};
    if (image_inflated(image) > INFLATED_MAX)
        return error_set(err, FAULT_LIMIT,
                         "%s has compressed debug sections that claim more than 3 GiB: not read",
                         image->path);
    d->elf = elf_of(image);
    d->dwarf = d->elf ? dwarf_begin_elf(d->elf, DWARF_C_READ, NULL) : NULL;
    if (!d->dwarf)
        return error_set(err, FAULT_INPUT, "the debug information of %s cannot be read: %s",
                         image->path, dwarf_errmsg(-1));
    open_alt(d, m, image);
    return 0;
}

static void debug_close(struct debug_info *d)
{
    vector_release(&d->ranges);
    if (d->dwarf)
        dwarf_end(d->dwarf);
    if (d->elf)
        elf_end(d->elf);
    if (d->alt)
        dwarf_end(d->alt);
    if (d->alt_elf)
        elf_end(d->alt_elf);
    image_free(d->alt_image);
}

static bool wanted(const struct answers *a, uint64_t low, uint64_t high)
{
    size_t i = low < high ? answers_from(a, low) : a->count;
    return i < a->count && a->address[i] < high;
}

static void add_unit(struct debug_info *d, const struct answers *a, Dwarf_Die *die, uint32_t order)
{
    Dwarf_Addr base, low, high;
    ptrdiff_t at = 0;
    while (d->ranges.len < UNIT_RANGES_MAX) {
        ptrdiff_t next = dwarf_ranges(die, at, &base, &low, &high);
        if (next <= 0)
            return;
        at = next;
        if (low != 0 && wanted(a, low, high))
            *vector_push(&d->ranges) = (struct unit_range){low, high, die->cu, order};
    }
}

/* Which units hold addresses: from the units themselves; .debug_aranges is often left out. */
static void index_units(struct debug_info *d, const struct answers *a)
{
    Dwarf_CU *cu = NULL;
    Dwarf_Die die;
    uint8_t type;
    for (uint32_t n = 0; n < UNITS_MAX; n++) {
        if (dwarf_get_units(d->dwarf, cu, &cu, NULL, &type, &die, NULL) != 0)
            break;
        if (type == DW_UT_compile || type == DW_UT_skeleton)
            add_unit(d, a, &die, n);
    }
    if (d->ranges.len)
        qsort(d->ranges.data, d->ranges.len, sizeof *d->ranges.data, by_low);
}

static void set_locations(struct unit *u, const struct unit_address *ua)
{
    size_t n = 0, keep = 0, i = 0;
    for (uint32_t f = ua->frame; f != FRAME_NONE; f = u->frames.data[f].parent)
        n++;
    keep = n > SYMBOL_INLINE_MAX ? SYMBOL_INLINE_MAX : n;
    struct symbol_location *l = answers_place(u->answers, ua->index, keep);
    const char *file = ua->file;
    uint32_t line = ua->line;
    for (uint32_t f = ua->frame; f != FRAME_NONE; f = u->frames.data[f].parent, i++) {
        struct frame *frame = &u->frames.data[f];
        /* The outermost stays whatever the depth. */
        if (i < keep - 1 || frame->parent == FRAME_NONE) {
            const struct function_name *name = unit_name(u, &frame->die);
            *l++ = (struct symbol_location){.function = name->function,
                                            .linkage = name->linkage,
                                            .file = file ? file : name->file,
                                            .line = line,
                                            .start_line = name->line,
                                            .start = frame->start};
        }
        file = unit_file(u, u->files, frame->call_file);
        line = frame->call_line;
    }
}

static void set_answers(struct unit *u)
{
    for (size_t i = 0; i < u->count; i++) {
        const struct unit_address *a = &u->address[i];
        if (a->frame != FRAME_NONE) {
            set_locations(u, a);
            const struct answer *answer = &u->answers->item[a->index];
            const struct symbol_location *outer = &answer->location[answer->n - 1];
            if (outer->linkage || outer->function)
                answers_mark_named(u->answers, a->index);
        } else if (a->file) {
            struct symbol_location *l = answers_place(u->answers, a->index, 1);
            *l = (struct symbol_location){.file = a->file, .line = a->line};
        }
    }
}

static size_t address_from(const struct unit *u, uint64_t address)
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

static uint64_t next_address(void *context, uint64_t low)
{
    const struct unit *u = context;
    size_t i = address_from(u, low);
    return i < u->count ? u->address[i].address : UINT64_MAX;
}

/* Where sequences overlap, the first one keeps the address. */
static uint64_t take_line(void *context, uint64_t low, uint64_t high, uint64_t file, uint32_t line)
{
    struct unit *u = context;
    size_t i = address_from(u, low);
    for (; i < u->count && u->address[i].address < high; i++) {
        struct unit_address *a = &u->address[i];
        if (!a->lined)
            a->file = unit_file(u, u->lines, file);
        if (!a->lined)
            a->line = line;
        a->lined = true;
    }
    return i < u->count ? u->address[i].address : UINT64_MAX;
}

static const char *folder_of(Dwarf_Die *unit)
{
    Dwarf_Attribute a;
    return dwarf_attr(unit, DW_AT_comp_dir, &a) ? dwarf_formstring(&a) : NULL;
}

/* The table that a unit names; a .dwo file's only one, of file names, is not named. */
static bool open_lines(struct line_table *t, Dwarf_Die *unit, const struct dwarf_sections *sections,
                       bool split, const char *folder)
{
    Dwarf_Attribute a;
    Dwarf_Word offset = 0;
    Dwarf_Die die;
    uint8_t size = 8;
    *t = (struct line_table){0};
    if (!split && (!dwarf_attr(unit, DW_AT_stmt_list, &a) || dwarf_formudata(&a, &offset) != 0))
        return false;
    dwarf_cu_die(unit->cu, &die, NULL, NULL, &size, NULL, NULL, NULL);
    return line_table_open(t, sections, offset, size, folder);
}

static void read_unit(struct module *m, const struct dwarf_sections *sections, Dwarf_CU *cu,
                      struct unit_address *address, size_t count)
{
    struct unit u = {.answers = &m->answers, .address = address, .count = count};
    struct dwarf_sections split_sections = {0};
    struct line_table lines, split_lines = {0};
    Dwarf_Die split;
    uint8_t type = 0;
    if (dwarf_cu_info(cu, NULL, &type, &u.die, &split, NULL, NULL, NULL) != 0)
        return;
    bool elsewhere = type == DW_UT_skeleton && split.addr != NULL;
    m->lacks_split = m->lacks_split || (type == DW_UT_skeleton && !elsewhere);
    u.tree = elsewhere ? split : u.die;
    u.language = dwarf_srclang(&u.tree);
    const char *folder = folder_of(&u.die);
    if (open_lines(&lines, &u.die, sections, false, folder)) {
        u.lines = u.files = &lines;
        line_table_run(&lines, &(struct line_reader){next_address, take_line, &u});
    }
    if (elsewhere) {
        dwarf_sections_find(dwarf_cu_getdwarf(split.cu), true, &split_sections);
        if (open_lines(&split_lines, &split, &split_sections, true, folder))
            u.files = &split_lines;
    }
    if (raw_open(&u.raw, &u.tree, elsewhere ? &split_sections : sections))
        unit_walk(&u);
    set_answers(&u);
    unit_release_scopes(&u);
    raw_release(&u.raw);
    line_table_release(&lines);
    line_table_release(&split_lines);
    vector_release(&u.frames);
    vector_release(&u.names);
    map_release(&u.name_of);
}

struct assignment {
    Dwarf_CU *cu;
    uint32_t order;
    uint64_t address;
    size_t index;
};

static int by_unit(const void *x, const void *y)
{
    const struct assignment *a = x, *b = y;
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* Gives each address to the unit whose range begins last at or below it and still holds it. */
static size_t assign(const struct debug_info *d, const struct answers *a, struct assignment *to)
{
    VECTOR(const struct unit_range *) open = {0};
    size_t next = 0, n = 0;
    for (size_t i = 0; i < a->count; i++) {
        for (; next < d->ranges.len && d->ranges.data[next].low <= a->address[i]; next++)
            *vector_push(&open) = &d->ranges.data[next];
        while (open.len && open.data[open.len - 1]->high <= a->address[i])
            open.len--;
        if (open.len && !a->item[i].named) {
            const struct unit_range *r = open.data[open.len - 1];
            to[n++] = (struct assignment){r->cu, r->order, a->address[i], i};
        }
    }
    vector_release(&open);
    return n;
}

static void read_units(const struct debug_info *d, struct module *m)
{
    const struct answers *a = &m->answers;
    struct assignment *to = memory_array(a->count + 1, sizeof *to);
    struct unit_address *address = memory_array(a->count + 1, sizeof *address);
    size_t n = assign(d, a, to);
    struct dwarf_sections sections;
    dwarf_sections_find(d->dwarf, false, &sections);
    if (n)
        qsort(to, n, sizeof *to, by_unit);
    for (size_t from = 0, end; from < n; from = end) {
        for (end = from; end < n && to[end].order == to[from].order; end++)
            address[end - from] = (struct unit_address){
                .address = to[end].address, .index = to[end].index, .frame = FRAME_NONE};
        read_unit(m, &sections, to[from].cu, address, end - from);
    }
    free(to);
    free(address);
}

static int dwarf_run(struct module *m, struct error *err)
{
    struct image *image = m->debug ? m->debug : m->image;
    struct debug_info d;
    if (!image || m->options->no_debug_info ||
        (!module_has(image, ".debug_info") && !module_has(image, ".zdebug_info")))
        return 0;
    int status = debug_open(&d, m, image, err);
    if (status == 0) {
        size_t before = m->answers.open;
        index_units(&d, &m->answers);
        read_units(&d, m);
        m->had_debug_info = m->answers.open < before;
        if (m->had_debug_info)
            module_credit(m, image->path);
    }
    debug_close(&d);
    return status;
}

const struct resolver resolver_dwarf = {"dwarf", SYMBOL_ELF, dwarf_run};
