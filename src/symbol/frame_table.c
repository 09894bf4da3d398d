/*
 * Functions of stripped code, told apart by where they begin: "[cc1+0x5a3c40]". Programs keep the
 * beginnings of all their functions in .eh_frame_hdr, sorted, for exceptions, whatever else was
 * stripped off; the entry in .eh_frame says how long each is. The usual form alone is read
 * (4-byte numbers relative to the section), which every linker writes.
 *
 *   .eh_frame_hdr: | 1 u8 | encoding of pointer, count, table u8 x 3 | pointer 4 | count u32 |
 *                  then by ascending start: | start i32 | entry i32 |
 *   .eh_frame:     | length u32 | back to the CIE u32 | start i32, from here | size u32 | ...
 */
#include "symbol/symbol_internal.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_MAX ((size_t)256 << 20)
#define HEADER 12
#define ROW 8
#define PROLOGUE 24
#define LOOKED_AT 4096 /* functions, from all over the program */

struct frame_table {
    struct image *image;
    const struct image_section *header, *entries;
    uint8_t *data;
    size_t rows;
};

static int64_t number_at(const uint8_t *at)
{
    int32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint64_t start_of(const struct frame_table *t, size_t row)
{
    return t->header->address + (uint64_t)number_at(t->data + HEADER + row * ROW);
}

static bool frame_table_open(struct frame_table *t)
{
    static const uint8_t form[] = {1, 0x1b, 0x03, 0x3b};
    size_t len = 0;
    t->header = image_find(t->image, ".eh_frame_hdr");
    t->entries = image_find(t->image, ".eh_frame");
    if (!t->header || !t->entries)
        return false;
    t->data = image_load(t->image, t->header, TABLE_MAX, &len);
    if (!t->data || len < HEADER || memcmp(t->data, form, sizeof form) != 0)
        return false;
    uint32_t said = (uint32_t)number_at(t->data + 8);
    size_t room = (len - HEADER) / ROW;
    t->rows = said < room ? said : room;
    return t->rows > 0;
}

/* The last row that begins at or before `address`; `rows` if there is none. */
static size_t row_of(const struct frame_table *t, uint64_t address)
{
    size_t low = 0, n = t->rows;
    while (n > 0) {
        size_t half = n / 2;
        bool begun = start_of(t, low + half) <= address;
        low = begun ? low + half + 1 : low;
        n = begun ? n - half - 1 : half;
    }
    return low ? low - 1 : t->rows;
}

/* Bytes of the function, by its entry; 0 if that is not one of the usual form, or another's. */
static uint64_t size_of(const struct frame_table *t, size_t row, uint64_t start)
{
    const struct image_section *s = t->entries;
    uint64_t entry = t->header->address + (uint64_t)number_at(t->data + HEADER + row * ROW + 4);
    uint64_t at = entry - s->address;
    uint8_t head[16];
    if (at >= s->size || s->size - at < sizeof head ||
        !image_read(t->image, s->offset + at, head, sizeof head))
        return 0;
    if (entry + 8 + (uint64_t)number_at(head + 8) != start)
        return 0;
    return (uint32_t)number_at(head + 12);
}

static void name_address(struct module *m, const struct frame_table *t, size_t index)
{
    uint64_t address = m->answers.address[index];
    size_t row = row_of(t, address);
    uint64_t start = row < t->rows ? start_of(t, row) : 0;
    if (row == t->rows || address - start >= size_of(t, row, start))
        return;
    const char *path = m->request->path, *slash = strrchr(path, '/');
    char name[256];
    snprintf(name, sizeof name, "[%.200s+0x%" PRIx64 "]", slash ? slash + 1 : path, start);
    answers_name(&m->answers, index, name, start);
}

static int frame_table_run(struct module *m, struct error *err)
{
    (void)err;
    struct frame_table t = {.image = m->image};
    if (!m->image || !m->request->path || !m->answers.open)
        return 0;
    if (frame_table_open(&t))
        for (size_t i = 0; i < m->answers.count; i++)
            if (!m->answers.item[i].named)
                name_address(m, &t, i);
    free(t.data);
    return 0;
}

/* push %rbp, after an endbr64 where there is one, and soon mov %rsp, %rbp; stp x29, x30, [sp,
 * ...]!. */
static bool sets_frame_pointer(const struct image *image, const uint8_t *code, size_t len)
{
    static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa}, set[] = {0x48, 0x89, 0xe5};
    if (image->machine == EM_AARCH64)
        return code[0] == 0xfd && code[1] == 0x7b && code[3] == 0xa9;
    size_t at = memcmp(code, endbr, sizeof endbr) ? 0 : sizeof endbr;
    return code[at] == 0x55 && memmem(code + at, len - at, set, sizeof set);
}

size_t symbol_frame_pointers(const char *path, size_t *functions)
{
    struct frame_table t = {.image = image_open(NULL, path, NULL)};
    size_t with = 0;
    *functions = 0;
    if (t.image && frame_table_open(&t)) {
        size_t step = t.rows / LOOKED_AT + 1;
        for (size_t row = 0; row < t.rows; row += step) {
            uint64_t start = start_of(&t, row);
            const struct image_section *s = image_code_at(t.image, start);
            uint8_t code[PROLOGUE];
            if (!s || strcmp(s->name, ".text") != 0 ||
                !image_read(t.image, s->offset + (start - s->address), code, sizeof code))
                continue;
            ++*functions;
            with += sets_frame_pointer(t.image, code, sizeof code);
        }
    }
    free(t.data);
    image_free(t.image);
    return with;
}

const struct resolver resolver_frame_table = {"frame table", SYMBOL_ELF, frame_table_run};
