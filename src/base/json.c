/* Streaming JSON; see json.h. */
#include "base/json.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define JSON_BUFFER ((size_t)64 * 1024)

void json_init(struct json *j, int (*flush)(void *, const char *, size_t), void *context)
{
    *j = (struct json){.flush = flush, .context = context};
    text_init(&j->out);
}

static void drain(struct json *j, size_t over)
{
    if (!j->flush || j->out.len <= over)
        return;
    if (!j->failed)
        j->failed = j->flush(j->context, j->out.data, j->out.len);
    text_clear(&j->out);
}

static void newline(struct json *j)
{
    if (!j->pretty)
        return;
    text_add_char(&j->out, '\n');
    text_add_repeat(&j->out, ' ', (size_t)j->depth * 2);
}

/* Comma and place for the next value. */
static void before_value(struct json *j)
{
    if (j->after_key) {
        j->after_key = false;
        return;
    }
    if (!j->depth)
        return;
    assert(!j->in_object[j->depth - 1]);
    if (j->has_items[j->depth - 1])
        text_add_char(&j->out, ',');
    j->has_items[j->depth - 1] = true;
    newline(j);
}

static void open_group(struct json *j, bool object)
{
    before_value(j);
    assert(j->depth < JSON_DEPTH);
    text_add_char(&j->out, object ? '{' : '[');
    j->in_object[j->depth] = object;
    j->has_items[j->depth] = false;
    j->depth++;
}

void json_open_object(struct json *j)
{
    open_group(j, true);
}

void json_open_array(struct json *j)
{
    open_group(j, false);
}

void json_end(struct json *j)
{
    assert(j->depth > 0 && !j->after_key);
    j->depth--;
    if (j->has_items[j->depth])
        newline(j);
    text_add_char(&j->out, j->in_object[j->depth] ? '}' : ']');
    drain(j, JSON_BUFFER);
}

void json_key(struct json *j, const char *key)
{
    assert(j->depth > 0 && j->in_object[j->depth - 1] && !j->after_key);
    if (j->has_items[j->depth - 1])
        text_add_char(&j->out, ',');
    j->has_items[j->depth - 1] = true;
    newline(j);
    text_add_char(&j->out, '"');
    json_escape(&j->out, key);
    text_add(&j->out, j->pretty ? "\": " : "\":");
    j->after_key = true;
}

/* What may stand in a string as it is, high bytes aside. */
static bool is_plain(unsigned char c)
{
    return c >= ' ' && c < 0x7f && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&';
}

static void escape_one(struct text *t, char c)
{
    static const char hex[] = "0123456789abcdef";
    char out[6] = {'\\', 'u', '0', '0', hex[(unsigned char)c >> 4], hex[c & 15]};
    if (c == '"' || c == '\\') {
        out[1] = c;
        text_add_len(t, out, 2);
    } else {
        text_add_len(t, out, sizeof out);
    }
}

/* A run of high bytes, some of which may be malformed. */
static void escape_high(struct text *t, const char *s, size_t len)
{
    struct text piece = TEXT_INIT, clean = TEXT_INIT;
    text_add_len(&piece, s, len);
    text_add_printable(&clean, piece.data);
    for (const char *c = clean.data; *c; c++) {
        if (!strncmp(c, "\xe2\x80\xa8", 3) || !strncmp(c, "\xe2\x80\xa9", 3)) {
            text_add(t, c[2] == '\xa8' ? "\\u2028" : "\\u2029");
            c += 2;
        } else {
            text_add_char(t, *c);
        }
    }
    text_release(&piece);
    text_release(&clean);
}

void json_escape(struct text *t, const char *s)
{
    for (size_t n; *s; s += n) {
        for (n = 0; is_plain((unsigned char)s[n]);)
            n++;
        if (n) {
            text_add_len(t, s, n);
            continue;
        }
        while ((unsigned char)s[n] >= 0x80)
            n++;
        if (n) {
            escape_high(t, s, n);
            continue;
        }
        escape_one(t, *s);
        n = 1;
    }
}

void json_text(struct json *j, const char *s)
{
    if (!s) {
        json_nothing(j);
        return;
    }
    before_value(j);
    text_add_char(&j->out, '"');
    json_escape(&j->out, s);
    text_add_char(&j->out, '"');
    drain(j, JSON_BUFFER);
}

static void raw(struct json *j, const char *s)
{
    before_value(j);
    text_add(&j->out, s);
    drain(j, JSON_BUFFER);
}

static unsigned digits_of(uint64_t v)
{
    unsigned n = 1;
    for (; v >= 10000; v /= 10000)
        n += 4;
    return n + (v >= 10) + (v >= 100) + (v >= 1000);
}

char *json_put_digits(char *at, uint64_t v)
{
    static const char two[] = "00010203040506070809101112131415161718192021222324"
                              "25262728293031323334353637383940414243444546474849"
                              "50515253545556575859606162636465666768697071727374"
                              "75767778798081828384858687888990919293949596979899";
    char *end = at + digits_of(v), *p = end;
    for (; v >= 100; v /= 100)
        memcpy(p -= 2, two + v % 100 * 2, 2);
    if (v >= 10)
        memcpy(p - 2, two + v * 2, 2);
    else
        p[-1] = (char)('0' + v);
    return end;
}

void json_add_uint(struct text *t, uint64_t v)
{
    char digits[JSON_DIGITS];
    text_add_len(t, digits, (size_t)(json_put_digits(digits, v) - digits));
}

void json_uint(struct json *j, uint64_t v)
{
    before_value(j);
    json_add_uint(&j->out, v);
    drain(j, JSON_BUFFER);
}

void json_raw(struct json *j, const char *text, size_t len)
{
    before_value(j);
    text_add_len(&j->out, text, len);
    drain(j, JSON_BUFFER);
}

void json_int(struct json *j, int64_t v)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)v);
    raw(j, digits);
}

void json_double(struct json *j, double v)
{
    char digits[40];
    if (!isfinite(v)) {
        json_nothing(j);
        return;
    }
    snprintf(digits, sizeof digits, "%.10g", v);
    raw(j, digits);
}

void json_bool(struct json *j, bool v)
{
    raw(j, v ? "true" : "false");
}

void json_nothing(struct json *j)
{
    raw(j, "null");
}

int json_finish(struct json *j)
{
    assert(j->depth == 0);
    drain(j, 0);
    return j->failed;
}

void json_release(struct json *j)
{
    text_release(&j->out);
}

void json_put_string(struct json *j, const char *key, const char *s)
{
    json_key(j, key);
    json_text(j, s);
}

void json_put_uint(struct json *j, const char *key, uint64_t v)
{
    json_key(j, key);
    json_uint(j, v);
}

void json_put_int(struct json *j, const char *key, int64_t v)
{
    json_key(j, key);
    json_int(j, v);
}

void json_put_double(struct json *j, const char *key, double v)
{
    json_key(j, key);
    json_double(j, v);
}

void json_put_bool(struct json *j, const char *key, bool v)
{
    json_key(j, key);
    json_bool(j, v);
}
