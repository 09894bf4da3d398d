/*
 * Python's str objects as UTF-8; see text.h. A str has one, two or four bytes a character, right
 * after its head; the head is shorter for pure ASCII. The state word:
 *
 *     | interned 2 | kind 3: bytes a character | compact 1 | ascii 1 | ...
 */
#include "cpython/text.h"

#include <string.h>

#include "cpython/memory.h"

#define LENGTH_MAX (1u << 24)

bool text_place(const struct cpython *py, const struct cpython_memory *memory, uint64_t address,
                const uint8_t *head, struct text_place *out)
{
    const struct layout *l = &py->layout;
    uint32_t state = half_of(head, LAYOUT_TEXT_STATE);
    bool compact = state >> 5 & 1, ascii = state >> 6 & 1;
    out->width = state >> 2 & 7;
    out->length = word_of(head, LAYOUT_TEXT_LENGTH);
    if ((out->width != 1 && out->width != 2 && out->width != 4) || (ascii && out->width != 1) ||
        out->length > LENGTH_MAX)
        return false;
    if (compact)
        out->address = address + (ascii ? l->text_ascii : l->text_compact);
    else if (!memory_word(memory, address + l->text_compact, &out->address))
        return false;
    return true;
}

static uint32_t character(const uint8_t *from, size_t i, uint8_t width)
{
    uint32_t c = 0;
    memcpy(&c, from + i * width, width);
    return c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0xfffd : c;
}

static size_t encode(uint32_t c, char to[4])
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    size_t more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    to[0] = (char)(lead[more] | c >> 6 * more);
    for (size_t i = 1; i <= more; i++)
        to[i] = (char)(0x80 | (c >> 6 * (more - i) & 63));
    return more + 1;
}

size_t text_encode(const uint8_t *from, size_t *count, uint8_t width, char *to, size_t size)
{
    size_t length = 0, i = 0;
    for (; i < *count; i++) {
        char bytes[4];
        size_t need = encode(character(from, i, width), bytes);
        if (need >= size - length)
            break;
        memcpy(to + length, bytes, need);
        length += need;
    }
    *count = i;
    to[length] = '\0';
    return length;
}

ssize_t cpython_text(const struct cpython *py, const struct cpython_memory *memory,
                     uint64_t address, char *to, size_t size)
{
    uint8_t head[TEXT_HEAD], piece[256];
    struct text_place place;
    size_t length = 0;
    if (!size)
        return CPYTHON_DAMAGED;
    to[0] = '\0';
    if (!address_is_sane(address))
        return CPYTHON_DAMAGED;
    if (!memory_read(memory, address, head, sizeof(head)))
        return CPYTHON_UNREADABLE;
    if (!text_place(py, memory, address, head, &place))
        return CPYTHON_DAMAGED;
    for (uint64_t done = 0; done < place.length && length + 1 < size;) {
        size_t left = place.length - done, room = size - 1 - length;
        size_t count = sizeof(piece) / place.width;
        count = count > left ? left : count;
        count = count > room ? room : count; /* no character takes less than a byte */
        if (!memory_read(memory, place.address + done * place.width, piece, count * place.width))
            return CPYTHON_UNREADABLE;
        size_t fit = count;
        length += text_encode(piece, &fit, place.width, to + length, size - length);
        done += count;
        if (fit < count)
            break;
    }
    return (ssize_t)length;
}
