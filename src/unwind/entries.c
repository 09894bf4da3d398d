/*
 * Walks .eh_frame or .debug_frame:
 *
 *   length 4 | 0xffffffff length 8      0 ends the section (.eh_frame)
 *   id     4 | 8                        CIE: 0 (.eh_frame), all ones (.debug_frame)
 *                                       FDE: distance back to its CIE | offset of its CIE
 *   FDE: first address, size, augmentation length and data if its CIE has 'z', instructions
 */
#include "unwind/entries.h"

#include <errno.h>
#include <string.h>

/* The frame of one entry. */
struct raw {
    uint64_t id_at; /* offset of the id field */
    uint64_t id;
    bool cie;
    struct cursor body; /* after the id */
};

static uint64_t offset_of(const struct entries *e, const uint8_t *p)
{
    return (uint64_t)(p - e->image->frame);
}

/* Reads the entry at *c and steps over it. 0; 1 at the end; -EBADMSG if the rest is lost too. */
static int next_entry(const struct entries *e, struct cursor *c, struct raw *raw)
{
    size_t offset_size = 4;
    uint64_t length;
    do {
        if (cursor_left(c) < 4)
            return 1;
        length = cursor_u32(c);
        if (!length && !e->image->exact_size)
            return 1;
    } while (!length);
    if (length == UINT32_MAX) {
        length = cursor_fixed(c, 8);
        offset_size = 8;
    }
    const uint8_t *start = cursor_take(c, length);
    if (!start)
        return -EBADMSG;
    raw->body = (struct cursor){.at = start, .end = start + length};
    raw->id_at = offset_of(e, start);
    raw->id = cursor_fixed(&raw->body, offset_size);
    uint64_t all_ones = offset_size == 4 ? UINT32_MAX : UINT64_MAX;
    raw->cie = e->image->debug_frame ? raw->id == all_ones : raw->id == 0;
    if (!e->image->debug_frame && offset_size == 4)
        raw->id = (uint64_t)(int64_t)(int32_t)raw->id;
    return 0;
}

static struct pointer_bases bases(const struct entries *e)
{
    return (struct pointer_bases){.section = e->image->frame,
                                  .vaddr = e->image->frame_vaddr,
                                  .text = e->image->text_vaddr,
                                  .data = e->image->hdr_vaddr};
}

const struct cie *entries_cie(struct entries *e, uint64_t offset)
{
    if (offset >= e->image->frame_size)
        return NULL;
    unsigned slot = (unsigned)(offset >> 3) % CIE_CACHE;
    struct cie *cie = &e->cache[slot].cie;
    if (e->cache[slot].offset == offset + 1)
        return cie->valid ? cie : NULL;
    const uint8_t *frame = e->image->frame;
    struct cursor c = {.at = frame + offset, .end = frame + e->image->frame_size};
    struct raw raw;
    e->cache[slot].offset = (uint32_t)offset + 1;
    cie->valid = false;
    if (next_entry(e, &c, &raw) || raw.body.bad || !raw.cie)
        return NULL;
    e->cfi.bases = bases(e);
    return cfi_read_cie(&e->cfi, &raw.body, e->image->debug_frame, cie) ? NULL : cie;
}

/* Whether the FDE lies in the module and can be compiled; fills *entry. */
static bool read_fde(struct entries *e, struct raw *raw, struct entry *entry)
{
    const struct rows_image *image = e->image;
    uint64_t at = image->debug_frame ? raw->id : raw->id_at - raw->id;
    const struct cie *cie = raw->body.bad ? NULL : entries_cie(e, at);
    if (!cie)
        return false;
    struct pointer_bases b = bases(e);
    uint64_t start = cursor_pointer(&raw->body, cie->pointer_encoding, &b);
    uint64_t size = cursor_pointer_plain(&raw->body, cie->pointer_encoding);
    if (cie->has_z)
        cursor_take(&raw->body, cursor_uleb(&raw->body));
    if (raw->body.bad || !size || start < image->low || start >= image->high ||
        size > image->high - start)
        return false;
    entry->start = (uint32_t)(start - image->low);
    entry->end = (uint32_t)(start - image->low + size);
    entry->code = (uint32_t)offset_of(e, raw->body.at);
    entry->code_end = (uint32_t)offset_of(e, raw->body.end);
    entry->cie = (uint32_t)at;
    return true;
}

/* Merge sort, because it is stable and never quadratic, and qsort may call malloc. */
static int sort(struct entries *e)
{
    struct entry *from = e->pages.data;
    uint32_t n = e->count;
    uint32_t sorted = 1;
    while (sorted < n && from[sorted - 1].start <= from[sorted].start)
        sorted++;
    if (sorted >= n)
        return 0;
    struct pages spare = {0};
    if (pages_reserve(&spare, e->pages.size))
        return -ENOMEM;
    struct entry *to = spare.data;
    for (uint64_t width = 1; width < n; width *= 2) {
        for (uint64_t low = 0; low < n; low += 2 * width) {
            uint64_t mid = low + width < n ? low + width : n;
            uint64_t high = low + 2 * width < n ? low + 2 * width : n;
            uint64_t a = low, b = mid;
            for (uint64_t k = low; k < high; k++)
                to[k] = a < mid && (b >= high || from[a].start <= from[b].start) ? from[a++]
                                                                                 : from[b++];
        }
        struct entry *swap = from;
        from = to;
        to = swap;
    }
    if (from != e->pages.data) {
        struct pages swap = e->pages;
        e->pages = spare;
        spare = swap;
    }
    pages_release(&spare);
    return 0;
}

int entries_read(struct entries *e)
{
    struct cursor c = {.at = e->image->frame, .end = e->image->frame + e->image->frame_size};
    struct raw raw;
    int rc;
    while ((rc = next_entry(e, &c, &raw)) == 0) {
        if (raw.cie)
            continue;
        if (pages_reserve(&e->pages, ((size_t)e->count + 1) * sizeof(struct entry)))
            return -ENOMEM;
        struct entry *entry = (struct entry *)e->pages.data + e->count;
        if (read_fde(e, &raw, entry))
            e->count++;
        else
            e->dropped++;
    }
    e->dropped += rc < 0;
    return sort(e);
}
