/* The chunked coding; see chunks.h. A step a byte, but for the data itself. */
#include "serve/chunks.h"

#define SIZE_DIGITS_MAX 15
#define TRAILER_MAX 8192

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void on_size(struct chunks *c, char byte)
{
    int digit = digit_of(byte);
    if (digit >= 0 && c->digits < SIZE_DIGITS_MAX) {
        c->left = c->left << 4 | (uint64_t)digit;
        c->digits++;
    } else if (c->digits && digit < 0 && (byte == ';' || byte == ' ' || byte == '\t')) {
        c->state = CHUNK_EXTENSION;
    } else {
        c->state = c->digits && byte == '\r' ? CHUNK_SIZE_END : CHUNK_BAD;
    }
}

static void begin_size(struct chunks *c)
{
    c->state = CHUNK_SIZE;
    c->left = 0;
    c->digits = 0;
}

/* Lines up to an empty one; what they say is of no use here. */
static void on_trailer(struct chunks *c, char byte)
{
    if (++c->trailer > TRAILER_MAX)
        c->state = CHUNK_BAD;
    else if (byte == '\n' && c->line == 0)
        c->state = CHUNK_DONE;
    else if (byte == '\n')
        c->line = 0;
    else if (byte != '\r')
        c->line++;
}

static void step(struct chunks *c, char byte)
{
    switch (c->state) {
    case CHUNK_SIZE:
        on_size(c, byte);
        break;
    case CHUNK_EXTENSION:
        if (++c->trailer > TRAILER_MAX || byte == '\n')
            c->state = CHUNK_BAD;
        else if (byte == '\r')
            c->state = CHUNK_SIZE_END;
        break;
    case CHUNK_SIZE_END:
        c->state = byte != '\n' ? CHUNK_BAD : c->left ? CHUNK_DATA : CHUNK_TRAILER;
        break;
    case CHUNK_DATA_END:
        c->state = byte == '\r' ? CHUNK_DATA_FEED : CHUNK_BAD;
        break;
    case CHUNK_DATA_FEED:
        begin_size(c);
        if (byte != '\n')
            c->state = CHUNK_BAD;
        break;
    case CHUNK_TRAILER:
        on_trailer(c, byte);
        break;
    case CHUNK_DATA:
    case CHUNK_DONE:
    case CHUNK_BAD:
        break;
    }
}

size_t chunks_feed(struct chunks *c, const char *data, size_t len, size_t max, struct text *out)
{
    size_t at = 0;
    while (at < len && c->state != CHUNK_DONE && c->state != CHUNK_BAD && out->len <= max) {
        if (c->state != CHUNK_DATA) {
            step(c, data[at++]);
            continue;
        }
        size_t n = len - at < c->left ? len - at : (size_t)c->left;
        size_t room = max + 1 - out->len;
        n = n < room ? n : room;
        text_add_len(out, data + at, n);
        at += n;
        c->left -= n;
        if (!c->left)
            c->state = CHUNK_DATA_END;
    }
    return at;
}
