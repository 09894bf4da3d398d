/* Instructions of x86-64; see instruction.h. */
#include "agent/instruction.h"

#include <string.h>

enum shape {
    BAD,    /* unknown, or one that no compiler writes */
    NONE,   /* the opcode is all */
    BYTE,   /* + an immediate byte */
    WORD,   /* + an immediate of two or four bytes */
    MEMORY, /* + a mod-r/m byte and what it asks for */
    MEMORY_BYTE,
    MEMORY_WORD,
};

struct reading {
    const uint8_t *bytes;
    size_t size, used;
    bool short_words, wide; /* prefixes 66 and REX.W */
};

static enum shape shape_of(uint8_t op)
{
    static const uint8_t arithmetic[8] = {MEMORY, MEMORY, MEMORY, MEMORY, BYTE, WORD, BAD, BAD};
    if (op < 0x40)
        return arithmetic[op & 7];
    if ((op >= 0x50 && op <= 0x5f) || (op >= 0x90 && op <= 0x99) || op == 0xc3 || op == 0xc9 ||
        op == 0xcc)
        return NONE;
    if (op == 0x63 || (op >= 0x84 && op <= 0x8b) || op == 0x8d || op == 0x8f ||
        (op >= 0xd0 && op <= 0xd3) || op == 0xfe || op == 0xff)
        return MEMORY;
    if (op == 0x6b || op == 0x80 || op == 0x83 || op == 0xc0 || op == 0xc1 || op == 0xc6)
        return MEMORY_BYTE;
    if (op == 0x69 || op == 0x81 || op == 0xc7)
        return MEMORY_WORD;
    if (op == 0x6a || op == 0xa8 || (op >= 0xb0 && op <= 0xb7) || op == 0xeb ||
        (op >= 0x70 && op <= 0x7f))
        return BYTE;
    if (op == 0x68 || op == 0xa9 || op == 0xe8 || op == 0xe9 || (op >= 0xb8 && op <= 0xbf))
        return WORD;
    return BAD;
}

/* Of those behind 0f. */
static enum shape shape_of_second(uint8_t op)
{
    if (op == 0x05 || op == 0x0b || op == 0xa2 || (op >= 0xc8 && op <= 0xcf))
        return NONE;
    if (op >= 0x80 && op <= 0x8f)
        return WORD;
    if ((op >= 0x70 && op <= 0x73) || op == 0xa4 || op == 0xac || op == 0xba || op == 0xc2 ||
        (op >= 0xc4 && op <= 0xc6))
        return MEMORY_BYTE;
    if (op == 0x0d || (op >= 0x10 && op <= 0x1f) || (op >= 0x28 && op <= 0x2f) ||
        (op >= 0x40 && op <= 0x6f) || (op >= 0x74 && op <= 0x7f && op != 0x77) ||
        (op >= 0x90 && op <= 0x9f) || op == 0xa3 || op == 0xa5 || op == 0xab || op == 0xad ||
        (op >= 0xae && op <= 0xb7) || (op >= 0xbb && op <= 0xc1) || (op >= 0xd0 && op <= 0xfe))
        return MEMORY;
    return BAD;
}

static bool take(struct reading *r, size_t count)
{
    r->used += count;
    return r->used <= r->size && r->used <= INSTRUCTION_MAX;
}

static void prefixes_read(struct reading *r)
{
    while (r->used < r->size) {
        uint8_t b = r->bytes[r->used];
        if (b == 0x66)
            r->short_words = true;
        else if (b != 0xf2 && b != 0xf3 && b != 0x2e && b != 0x36 && b != 0x3e && b != 0x26 &&
                 b != 0x64 && b != 0x65 && b != 0xf0)
            break;
        r->used++;
    }
    if (r->used < r->size && (r->bytes[r->used] & 0xf0) == 0x40)
        r->wide = r->bytes[r->used++] & 8;
}

/* mod-r/m, the byte behind it, and the displacement. *reg is its middle field. */
static bool memory_read(struct reading *r, struct instruction *out, uint8_t *reg)
{
    if (!take(r, 1))
        return false;
    uint8_t modrm = r->bytes[r->used - 1], mod = modrm >> 6, rm = modrm & 7;
    *reg = modrm >> 3 & 7;
    if (mod == 3)
        return true;
    if (rm == 4) {
        if (!take(r, 1))
            return false;
        if (mod == 0 && (r->bytes[r->used - 1] & 7) == 5)
            return take(r, 4);
    } else if (mod == 0 && rm == 5) {
        out->kind = INSTRUCTION_RELATIVE;
        out->at = (uint8_t)r->used;
        out->width = 4;
        return take(r, 4);
    }
    return take(r, mod == 0 ? 0 : mod == 1 ? 1 : 4);
}

static size_t word_size(const struct reading *r, uint8_t op, bool second)
{
    if (!second && op >= 0xb8 && op <= 0xbf && r->wide)
        return 8;
    bool jump = second || op == 0xe8 || op == 0xe9;
    return r->short_words && !jump ? 2 : 4;
}

static bool operands_read(struct reading *r, uint8_t op, bool second, struct instruction *out)
{
    enum shape shape = second ? shape_of_second(op) : shape_of(op);
    uint8_t reg = 0;
    if (shape == BAD)
        return false;
    if (shape >= MEMORY && !memory_read(r, out, &reg))
        return false;
    if (shape == BYTE || shape == MEMORY_BYTE)
        return take(r, 1);
    if (shape == WORD || shape == MEMORY_WORD)
        return take(r, word_size(r, op, second));
    return true;
}

/* test, not, neg, mul, div: only the first has an immediate. */
static bool group_read(struct reading *r, uint8_t op, struct instruction *out)
{
    uint8_t reg;
    if (!memory_read(r, out, &reg))
        return false;
    return reg > 1 || take(r, op == 0xf6 ? 1 : r->short_words ? 2 : 4);
}

static void kind_find(const struct reading *r, uint8_t op, bool second, struct instruction *out)
{
    bool near = !second && (op == 0xeb || (op >= 0x70 && op <= 0x7f));
    bool far = second ? op >= 0x80 && op <= 0x8f : op == 0xe8 || op == 0xe9;
    if (near || far) {
        out->width = near ? 1 : 4;
        out->at = (uint8_t)(r->used - out->width);
        out->condition = op & 15;
        out->kind = INSTRUCTION_BRANCH;
        if (!second && op >= 0xe8)
            out->kind = op == 0xe8 ? INSTRUCTION_CALL : INSTRUCTION_JUMP;
    } else if (!second && op == 0xc3) {
        out->kind = INSTRUCTION_RETURN;
    } else if ((!second && (op == 0x90 || op == 0xcc)) || (second && op == 0x1f)) {
        out->kind = INSTRUCTION_NOTHING;
    }
}

bool instruction_read(const uint8_t *bytes, size_t size, struct instruction *out)
{
    struct reading r = {.bytes = bytes, .size = size};
    *out = (struct instruction){0};
    prefixes_read(&r);
    if (!take(&r, 1))
        return false;
    uint8_t op = bytes[r.used - 1];
    bool second = op == 0x0f;
    if (second) {
        if (!take(&r, 1))
            return false;
        op = bytes[r.used - 1];
    }
    if (!second && (op == 0xf6 || op == 0xf7)) {
        if (!group_read(&r, op, out))
            return false;
    } else if (!operands_read(&r, op, second, out)) {
        return false;
    }
    kind_find(&r, op, second, out);
    out->size = (uint8_t)r.used;
    return true;
}

int32_t instruction_distance(const uint8_t *bytes, const struct instruction *i)
{
    int32_t distance = 0;
    if (i->width == 1)
        return (int8_t)bytes[i->at];
    memcpy(&distance, bytes + i->at, i->width);
    return distance;
}

static bool distance_put(uint8_t *to, uint64_t target, uint64_t end)
{
    int64_t far = (int64_t)(target - end);
    int32_t distance = (int32_t)far;
    memcpy(to, &distance, sizeof distance);
    return far == distance;
}

/* A jump or a branch, with a distance of four bytes. */
static size_t jump_put(const struct instruction *i, uint64_t target, uint64_t at, uint8_t *out,
                       size_t max)
{
    size_t before = i->kind == INSTRUCTION_BRANCH ? 2 : 1;
    if (max < before + 4)
        return 0;
    out[0] = before == 2 ? 0x0f : 0xe9;
    if (before == 2)
        out[1] = 0x80 | i->condition;
    return distance_put(out + before, target, at + before + 4) ? before + 4 : 0;
}

static size_t one_move(const uint8_t *from, const struct instruction *i, uint64_t at, uint8_t *out,
                       size_t max)
{
    uint64_t target = (uint64_t)(uintptr_t)from + i->size + (uint64_t)instruction_distance(from, i);
    if (i->kind == INSTRUCTION_JUMP || i->kind == INSTRUCTION_BRANCH)
        return jump_put(i, target, at, out, max);
    /* A call would leave a return address that no walk knows. */
    if (i->size > max || i->kind == INSTRUCTION_CALL)
        return 0;
    memcpy(out, from, i->size);
    if (i->kind == INSTRUCTION_RELATIVE && !distance_put(out + i->at, target, at + i->size))
        return 0;
    return i->size;
}

size_t instruction_move(const uint8_t *from, size_t size, uint64_t at, uint8_t *out, size_t max)
{
    size_t done = 0, put = 0;
    uint64_t start = (uint64_t)(uintptr_t)from;
    while (done < size) {
        struct instruction i;
        if (!instruction_read(from + done, size - done, &i))
            return 0;
        /* A jump into what is moved would have to land in the copy. */
        bool jumps = i.kind == INSTRUCTION_JUMP || i.kind == INSTRUCTION_BRANCH;
        uint64_t target = start + done + i.size + (uint64_t)instruction_distance(from + done, &i);
        if (jumps && target - start < size)
            return 0;
        size_t n = one_move(from + done, &i, at + put, out + put, max - put);
        if (n == 0)
            return 0;
        done += i.size;
        put += n;
    }
    return put;
}
