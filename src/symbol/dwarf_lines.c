#include "symbol/dwarf_lines.h"

#include <dwarf.h>

#define ENTRIES_MAX ((size_t)1 << 20)
#define FORMAT_MAX 16

struct format {
    uint64_t content, form;
};

struct formats {
    struct format item[FORMAT_MAX];
    size_t n;
};

/* Folders and files of versions 2 to 4: strings, ended by an empty one; files count from 1. */
static bool read_old_lists(struct line_table *t, struct bytes *b)
{
    *vector_push(&t->folders) = t->base;
    *vector_push(&t->files) = (struct line_file){0};
    for (;;) {
        const char *name = bytes_string(b);
        if (!name || t->folders.len > ENTRIES_MAX)
            return false;
        if (!*name)
            break;
        *vector_push(&t->folders) = name;
    }
    for (;;) {
        struct line_file f = {.name = bytes_string(b)};
        uint64_t time, size;
        if (!f.name || t->files.len > ENTRIES_MAX)
            return false;
        if (!*f.name)
            return true;
        if (!bytes_uleb(b, &f.folder) || !bytes_uleb(b, &time) || !bytes_uleb(b, &size))
            return false;
        *vector_push(&t->files) = f;
    }
}

static bool read_formats(struct bytes *b, struct formats *f)
{
    uint64_t n;
    if (!bytes_fixed(b, 1, &n) || n > FORMAT_MAX)
        return false;
    f->n = n;
    for (size_t i = 0; i < f->n; i++)
        if (!bytes_uleb(b, &f->item[i].content) || !bytes_uleb(b, &f->item[i].form))
            return false;
    return true;
}

/* A value of a version 5 list. Every form takes at least a byte, so lists end. */
static bool read_value(const struct line_table *t, struct bytes *b, uint64_t form,
                       const char **string, uint64_t *number)
{
    *string = NULL;
    *number = 0;
    switch (form) {
    case DW_FORM_string:
        return (*string = bytes_string(b)) != NULL;
    case DW_FORM_line_strp:
    case DW_FORM_strp: {
        bool own = form == DW_FORM_line_strp;
        if (!bytes_fixed(b, t->offset_size, number))
            return false;
        *string = bytes_string_at(own ? t->sections->line_str : t->sections->str, *number);
        return true;
    }
    case DW_FORM_udata:
    case DW_FORM_strx:
        return bytes_uleb(b, number);
    case DW_FORM_data1:
    case DW_FORM_strx1:
        return bytes_fixed(b, 1, number);
    case DW_FORM_data2:
    case DW_FORM_strx2:
        return bytes_fixed(b, 2, number);
    case DW_FORM_strx3:
        return bytes_fixed(b, 3, number);
    case DW_FORM_data4:
    case DW_FORM_strx4:
        return bytes_fixed(b, 4, number);
    case DW_FORM_data8:
        return bytes_fixed(b, 8, number);
    case DW_FORM_data16:
        return bytes_skip(b, 16);
    case DW_FORM_strp_sup:
        return bytes_fixed(b, t->offset_size, number);
    case DW_FORM_block:
        return bytes_uleb(b, number) && bytes_skip(b, *number);
    default:
        return false;
    }
}

static bool read_entry(const struct line_table *t, struct bytes *b, const struct formats *f,
                       struct line_file *file)
{
    *file = (struct line_file){0};
    for (size_t i = 0; i < f->n; i++) {
        const char *string;
        uint64_t number;
        if (!read_value(t, b, f->item[i].form, &string, &number))
            return false;
        if (f->item[i].content == DW_LNCT_path)
            file->name = string;
        else if (f->item[i].content == DW_LNCT_directory_index)
            file->folder = number;
    }
    return true;
}

static bool read_new_lists(struct line_table *t, struct bytes *b)
{
    struct formats f;
    struct line_file entry;
    uint64_t n;
    if (!read_formats(b, &f) || !bytes_uleb(b, &n) || (n && !f.n) || n > ENTRIES_MAX)
        return false;
    for (uint64_t i = 0; i < n; i++) {
        if (!read_entry(t, b, &f, &entry))
            return false;
        *vector_push(&t->folders) = entry.name;
    }
    if (!read_formats(b, &f) || !bytes_uleb(b, &n) || (n && !f.n) || n > ENTRIES_MAX)
        return false;
    for (uint64_t i = 0; i < n; i++) {
        if (!read_entry(t, b, &f, &entry))
            return false;
        *vector_push(&t->files) = entry;
    }
    return true;
}

/* Length, version, sizes (5), header length: up to where the header proper begins. */
static bool read_start(struct line_table *t, struct bytes *b, struct bytes *header)
{
    uint64_t length, version, size, skip, header_length;
    t->offset_size = 4;
    if (!bytes_fixed(b, 4, &length))
        return false;
    if (length == 0xffffffff) {
        t->offset_size = 8;
        if (!bytes_fixed(b, 8, &length))
            return false;
    }
    if (length > bytes_left(b))
        return false;
    b->end = b->at + length;
    if (!bytes_fixed(b, 2, &version) || version < 2 || version > 5)
        return false;
    t->version = (uint16_t)version;
    if (version == 5) {
        if (!bytes_fixed(b, 1, &size) || !bytes_fixed(b, 1, &skip))
            return false;
        t->address_size = (uint8_t)size;
    }
    if (!bytes_fixed(b, t->offset_size, &header_length) || header_length > bytes_left(b))
        return false;
    *header = (struct bytes){b->at, b->at + header_length};
    t->program = (struct bytes){b->at + header_length, b->end};
    return true;
}

bool line_table_open(struct line_table *t, const struct dwarf_sections *sections, uint64_t offset,
                     uint8_t address_size, const char *base)
{
    struct bytes b = sections->line, h;
    uint64_t v[6] = {0};
    *t = (struct line_table){.sections = sections, .base = base, .address_size = address_size};
    if (!bytes_skip(&b, offset) || !read_start(t, &b, &h) || t->address_size > 8)
        return false;
    /* step, operations an instruction (4 and later), is_stmt, line base and range, opcode base */
    for (int i = 0; i < 6; i++)
        if ((i != 1 || t->version >= 4) && !bytes_fixed(&h, 1, &v[i]))
            return false;
    t->step = (uint8_t)v[0];
    t->line_base = (int8_t)v[3];
    t->line_range = (uint8_t)v[4];
    t->opcode_base = (uint8_t)v[5];
    if (t->line_range == 0 || t->opcode_base == 0)
        return false;
    for (unsigned i = 1; i < t->opcode_base; i++) {
        uint64_t length;
        if (!bytes_fixed(&h, 1, &length))
            return false;
        t->length[i] = (uint8_t)length;
    }
    return t->version == 5 ? read_new_lists(t, &h) : read_old_lists(t, &h);
}

void line_table_release(struct line_table *t)
{
    vector_release(&t->folders);
    vector_release(&t->files);
}

struct machine {
    const struct line_table *t;
    const struct line_reader *reader;
    struct bytes b;
    uint64_t address, file;
    uint32_t line;
    uint64_t from, from_file; /* the row before */
    uint32_t from_line;
    bool running; /* there is a row before */
    bool dropped; /* the sequence is of code that the linker left out */
    uint64_t next;
};

static void reset(struct machine *m)
{
    m->address = 0;
    m->file = m->line = 1;
    m->running = m->dropped = false;
}

/* The row before ends where this one begins. */
static inline void put_row(struct machine *m)
{
    if (!m->running) {
        m->running = true;
        m->dropped = m->address == 0;
        m->next = m->dropped ? UINT64_MAX : m->reader->begin(m->reader->context, m->address);
    } else if (m->address > m->next && m->address > m->from) {
        m->next =
            m->reader->take(m->reader->context, m->from, m->address, m->from_file, m->from_line);
    }
    m->from = m->address;
    m->from_file = m->file;
    m->from_line = m->line;
}

static bool extended(struct machine *m)
{
    uint64_t len, code, address;
    if (!bytes_uleb(&m->b, &len) || len == 0 || len > bytes_left(&m->b))
        return false;
    struct bytes in = {m->b.at, m->b.at + len};
    m->b.at += len;
    bytes_fixed(&in, 1, &code);
    if (code == DW_LNE_end_sequence) {
        put_row(m);
        reset(m);
    } else if (code == DW_LNE_set_address && bytes_left(&in) <= 8) {
        bytes_fixed(&in, bytes_left(&in), &address);
        m->address = address;
    }
    return true;
}

static bool standard(struct machine *m, uint8_t opcode)
{
    uint64_t u = 0;
    int64_t s;
    switch (opcode) {
    case DW_LNS_copy:
        put_row(m);
        return true;
    case DW_LNS_advance_pc:
        if (!bytes_uleb(&m->b, &u))
            return false;
        m->address += u * m->t->step;
        return true;
    case DW_LNS_advance_line:
        if (!bytes_sleb(&m->b, &s))
            return false;
        m->line += (uint32_t)s;
        return true;
    case DW_LNS_set_file:
        return bytes_uleb(&m->b, &m->file);
    case DW_LNS_const_add_pc:
        m->address += (uint64_t)((255 - m->t->opcode_base) / m->t->line_range) * m->t->step;
        return true;
    case DW_LNS_fixed_advance_pc:
        if (!bytes_fixed(&m->b, 2, &u))
            return false;
        m->address += u;
        return true;
    default:
        for (unsigned i = 0; i < m->t->length[opcode]; i++)
            if (!bytes_uleb(&m->b, &u))
                return false;
        return true;
    }
}

void line_table_run(const struct line_table *t, const struct line_reader *reader)
{
    struct machine m = {.t = t, .reader = reader, .b = t->program, .next = UINT64_MAX};
    uint32_t line_step[256];
    uint64_t address_step[256];
    for (unsigned op = t->opcode_base; op < 256; op++) {
        unsigned adjusted = op - t->opcode_base;
        line_step[op] = (uint32_t)(t->line_base + (int)(adjusted % t->line_range));
        address_step[op] = (uint64_t)(adjusted / t->line_range) * t->step;
    }
    reset(&m);
    while (m.b.at < m.b.end) {
        uint8_t op = *m.b.at++;
        if (op >= t->opcode_base) {
            m.address += address_step[op];
            m.line += line_step[op];
            put_row(&m);
        } else if (!(op == 0 ? extended(&m) : standard(&m, op))) {
            return;
        }
    }
}
