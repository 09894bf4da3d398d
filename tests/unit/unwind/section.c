/* See section.h. */
#include "section.h"

#include <assert.h>
#include <string.h>

void section_bytes(struct section *s, const void *bytes, size_t size)
{
    assert(size <= sizeof(s->data) - s->size);
    if (size)
        memcpy(s->data + s->size, bytes, size);
    s->size += size;
}

void section_number(struct section *s, uint64_t value, size_t size)
{
    section_bytes(s, &value, size);
}

static void begin(struct section *s)
{
    if (s->wide)
        section_number(s, UINT32_MAX, 4);
    s->entry = s->size;
    section_number(s, 0, s->wide ? 8 : 4);
}

static void end(struct section *s)
{
    while ((s->size - s->entry) % 8)
        section_number(s, 0, 1); /* DW_CFA_nop */
    size_t field = s->wide ? 8 : 4;
    uint64_t length = s->size - s->entry - field;
    memcpy(s->data + s->entry, &length, field);
}

size_t section_cie(struct section *s, uint8_t version, const void *code, size_t size)
{
    static const uint8_t rules[] = {0x0c, 7, 8, 0x80 | 16, 1};
    size_t offset = s->size;
    begin(s);
    section_number(s, s->debug ? UINT64_MAX : 0, s->wide ? 8 : 4);
    section_number(s, version, 1);
    section_bytes(s, s->debug ? "" : "zR", s->debug ? 1 : 3);
    if (version == 4)
        section_bytes(s, "\x08\x00", 2);
    section_bytes(s, "\x01\x78\x10", 3); /* code 1, data -8, return address in 16 */
    if (!s->debug)
        section_bytes(s, "\x01\x1b", 2);
    section_bytes(s, rules, sizeof(rules));
    section_bytes(s, code, size);
    end(s);
    return offset;
}

void section_fde(struct section *s, size_t cie, uint64_t start, uint32_t length, const void *code,
                 size_t size)
{
    begin(s);
    section_number(s, s->debug ? cie : s->size - cie, s->wide ? 8 : 4);
    if (s->debug) {
        section_number(s, start, 8);
        section_number(s, length, 8);
    } else {
        section_number(s, start - (SECTION_VADDR + s->size), 4);
        section_number(s, length, 4);
        section_number(s, 0, 1);
    }
    section_bytes(s, code, size);
    end(s);
}

struct rows_image section_image(const struct section *s)
{
    return (struct rows_image){.frame = s->data,
                               .frame_size = s->size,
                               .frame_vaddr = SECTION_VADDR,
                               .low = SECTION_LOW,
                               .high = SECTION_HIGH,
                               .debug_frame = s->debug};
}
