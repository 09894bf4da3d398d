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

void json_escape(struct text *t, const char *s)
{
    struct text clean = TEXT_INIT;
    for (const char *p = s; *p;) {
        size_t plain = strcspn(p, "\"\\<>&\x01\x02\x03\x04\x05\x06\x07\x08\t\n\x0b\x0c\r\x0e\x0f"
                                  "\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e"
                                  "\x1f\x7f");
        if (plain) {
            /* Only the high bytes in here can be malformed. */
            bool ascii = true;
            for (size_t i = 0; i < plain && ascii; i++)
                ascii = (unsigned char)p[i] < 0x80;
            if (ascii) {
                text_add_len(t, p, plain);
            } else {
                struct text piece = TEXT_INIT;
                text_add_len(&piece, p, plain);
                text_clear(&clean);
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
            }
            p += plain;
            continue;
        }
        if (*p == '"' || *p == '\\')
            text_format(t, "\\%c", *p);
        else
            text_format(t, "\\u%04x", (unsigned char)*p);
        p++;
    }
    text_release(&clean);
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

void json_add_uint(struct text *t, uint64_t v)
{
    char digits[24];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + v % 10);
    while (v /= 10);
    text_add_len(t, digits + at, sizeof digits - at);
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
