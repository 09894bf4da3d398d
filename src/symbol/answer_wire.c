/*
 * message: type, bytes after these two (u32)
 *   answer:   index, n (u32), then n times
 *     location: line, start line (u32), start (u64), lengths of function, linkage, file, module
 * (u16), then these strings without NUL result:   status (u32), lengths of note and source (u16),
 * then these
 *
 * The length ABSENT stands for NULL, SAME (of linkage) for "as function".
 */
#include "symbol/answer_wire.h"

#include <string.h>

#define ABSENT 0xffffu
#define SAME 0xfffeu
#define HEAD 8

static void put16(struct text *out, size_t value)
{
    uint16_t v = (uint16_t)value;
    text_add_len(out, &v, sizeof v);
}

static void put32(struct text *out, uint32_t v)
{
    text_add_len(out, &v, sizeof v);
}

static size_t length_of(const char *s)
{
    return s ? strnlen(s, SYMBOL_TEXT_MAX - 1) : ABSENT;
}

static void put_location(struct text *out, const struct symbol_location *l)
{
    bool same = strcmp(l->function, l->linkage) == 0;
    const char *string[4] = {l->function, same ? NULL : l->linkage, l->file, l->module};
    put32(out, l->line);
    put32(out, l->start_line);
    text_add_len(out, &l->start, sizeof l->start);
    for (int i = 0; i < 4; i++)
        put16(out, i == 1 && same ? SAME : length_of(string[i]));
    for (int i = 0; i < 4; i++)
        if (string[i])
            text_add_len(out, string[i], length_of(string[i]));
}

static void close_message(struct text *out, size_t start, uint32_t type)
{
    uint32_t head[2] = {type, (uint32_t)(out->len - start - HEAD)};
    memcpy(out->data + start, head, HEAD);
}

void wire_put_answer(struct text *out, size_t index, const struct symbol_location *location,
                     size_t n)
{
    size_t start = out->len;
    put32(out, 0);
    put32(out, 0);
    put32(out, (uint32_t)index);
    put32(out, (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        put_location(out, &location[i]);
    close_message(out, start, WIRE_ANSWER);
}

void wire_put_result(struct text *out, const struct symbol_result *result)
{
    size_t start = out->len;
    put32(out, 0);
    put32(out, 0);
    put32(out, (uint32_t)result->status);
    put16(out, strlen(result->note));
    put16(out, strlen(result->source));
    text_add(out, result->note);
    text_add(out, result->source);
    close_message(out, start, WIRE_RESULT);
}

struct cursor {
    const char *at;
    size_t left;
};

static bool take(struct cursor *c, void *value, size_t len)
{
    if (len > c->left)
        return false;
    memcpy(value, c->at, len);
    c->at += len;
    c->left -= len;
    return true;
}

/* Strings are gathered with a NUL each; the buffer has room for all, so it does not move. */
static bool take_string(struct cursor *c, uint16_t len, struct text *strings, const char **out)
{
    *out = NULL;
    if (len == ABSENT)
        return true;
    if (len >= SYMBOL_TEXT_MAX || len > c->left || memchr(c->at, '\0', len))
        return false;
    *out = strings->data + strings->len;
    text_add_len(strings, c->at, len);
    text_add_char(strings, '\0');
    c->at += len;
    c->left -= len;
    return true;
}

static bool take_location(struct cursor *c, struct text *strings, struct symbol_location *l)
{
    uint16_t len[4];
    if (!take(c, &l->line, 4) || !take(c, &l->start_line, 4) || !take(c, &l->start, 8) ||
        !take(c, len, sizeof len) || len[0] == ABSENT)
        return false;
    bool same = len[1] == SAME;
    if (!take_string(c, len[0], strings, &l->function) ||
        !take_string(c, same ? ABSENT : len[1], strings, &l->linkage) ||
        !take_string(c, len[2], strings, &l->file) || !take_string(c, len[3], strings, &l->module))
        return false;
    if (same)
        l->linkage = l->function;
    return l->linkage != NULL;
}

static bool take_answer(struct cursor *c, struct wire_message *m)
{
    if (!take(c, &m->index, 4) || !take(c, &m->n, 4) || m->n == 0 || m->n > SYMBOL_INLINE_MAX)
        return false;
    text_clear(&m->strings);
    text_reserve(&m->strings, c->left + 4 * (size_t)m->n + 1);
    for (uint32_t i = 0; i < m->n; i++)
        if (!take_location(c, &m->strings, &m->location[i]))
            return false;
    return c->left == 0;
}

static bool take_note(struct cursor *c, char *out, size_t size, uint16_t len)
{
    if (len >= size || !take(c, out, len))
        return false;
    out[len] = '\0';
    for (uint16_t i = 0; i < len; i++)
        if ((unsigned char)out[i] < ' ' || out[i] == 127)
            out[i] = '?';
    return true;
}

static bool take_result(struct cursor *c, struct wire_message *m)
{
    uint32_t status;
    uint16_t len[2];
    m->result = (struct symbol_result){0};
    if (!take(c, &status, 4) || !take(c, len, sizeof len) || status > SYMBOL_NONE)
        return false;
    m->result.status = (enum symbol_status)status;
    return take_note(c, m->result.note, sizeof m->result.note, len[0]) &&
           take_note(c, m->result.source, sizeof m->result.source, len[1]) && c->left == 0;
}

ssize_t wire_get(const char *data, size_t len, struct wire_message *message)
{
    uint32_t head[2];
    if (len < HEAD)
        return 0;
    memcpy(head, data, HEAD);
    if (head[1] > WIRE_MESSAGE_MAX || (head[0] != WIRE_ANSWER && head[0] != WIRE_RESULT))
        return -1;
    if (len - HEAD < head[1])
        return 0;
    struct cursor c = {data + HEAD, head[1]};
    message->type = (enum wire_type)head[0];
    bool valid = head[0] == WIRE_ANSWER ? take_answer(&c, message) : take_result(&c, message);
    return valid ? (ssize_t)(HEAD + head[1]) : -1;
}

void wire_release(struct wire_message *message)
{
    text_release(&message->strings);
}
