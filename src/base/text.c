/* Growing strings and numbers for people; see text.h. */
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void text_init(struct text *t)
{
    *t = (struct text)TEXT_INIT;
}

void text_release(struct text *t)
{
    if (t->cap)
        free(t->data);
    text_init(t);
}

void text_clear(struct text *t)
{
    t->len = 0;
    if (t->cap)
        t->data[0] = 0;
}

void text_reserve(struct text *t, size_t more)
{
    size_t need = t->len + more + 1;
    if (need <= t->cap)
        return;
    size_t cap = t->cap ? t->cap : 64;
    while (cap < need)
        cap *= 2;
    char *old = t->cap ? t->data : NULL;
    t->data = memory_grow(old, cap, 1);
    if (!old)
        t->data[0] = 0;
    t->cap = cap;
}

void text_add_len(struct text *t, const void *s, size_t len)
{
    if (!len)
        return;
    text_reserve(t, len);
    memcpy(t->data + t->len, s, len);
    t->len += len;
    t->data[t->len] = 0;
}

void text_add(struct text *t, const char *s)
{
    if (s)
        text_add_len(t, s, strlen(s));
}

void text_add_char(struct text *t, char c)
{
    text_add_len(t, &c, 1);
}

void text_add_repeat(struct text *t, char c, size_t times)
{
    if (!times)
        return;
    text_reserve(t, times);
    memset(t->data + t->len, c, times);
    t->len += times;
    t->data[t->len] = 0;
}

void text_vformat(struct text *t, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    if (len > 0) {
        text_reserve(t, (size_t)len);
        vsnprintf(t->data + t->len, (size_t)len + 1, format, again);
        t->len += (size_t)len;
    }
    va_end(again);
}

void text_format(struct text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_vformat(t, format, args);
    va_end(args);
}

char *text_take(struct text *t)
{
    char *s = t->cap ? t->data : memory_strdup("");
    text_init(t);
    return s;
}

/* Length of the well-formed UTF-8 sequence at s, or 0. */
static size_t utf8_sequence(const unsigned char *s)
{
    if (s[0] < 0x80)
        return 1;
    size_t len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc2 ? 2 : 0;
    if (!len || s[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return len;
}

void text_add_printable(struct text *t, const char *s)
{
    const unsigned char *p = (const unsigned char *)(s ? s : "");
    while (*p) {
        size_t len = utf8_sequence(p);
        bool control = *p < 0x20 || *p == 0x7f || (p[0] == 0xc2 && len == 2 && p[1] < 0xa0);
        if (!len || control)
            text_add_char(t, '?');
        else
            text_add_len(t, p, len);
        p += len ? len : 1;
    }
}

void text_add_duration(struct text *t, uint64_t ns)
{
    double v = (double)ns;
    if (ns >= 3600ull * 1000000000)
        text_format(t, "%.2f h", v / 3.6e12);
    else if (ns >= 600ull * 1000000000)
        text_format(t, "%.1f min", v / 6e10);
    else if (ns >= 1000000000)
        text_format(t, "%.2f s", v / 1e9);
    else if (ns >= 1000000)
        text_format(t, "%.1f ms", v / 1e6);
    else if (ns >= 1000)
        text_format(t, "%.1f µs", v / 1e3);
    else
        text_format(t, "%u ns", (unsigned)ns);
}

void text_add_bytes(struct text *t, uint64_t bytes)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double v = (double)bytes;
    size_t u = 0;
    while (v >= 1024 && u + 1 < sizeof unit / sizeof *unit) {
        v /= 1024;
        u++;
    }
    text_format(t, u ? "%.1f %s" : "%.0f %s", v, unit[u]);
}

void text_add_count(struct text *t, uint64_t count)
{
    char digits[32];
    int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            text_add_char(t, ',');
        text_add_char(t, digits[i]);
    }
}

void text_add_base64(struct text *t, const void *data, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *b = data;
    text_reserve(t, len / 3 * 4 + 4);
    char *out = t->data + t->len;
    for (size_t i = 0; i < len; i += 3) {
        size_t left = len - i;
        uint32_t three = (uint32_t)b[i] << 16 | (left > 1 ? (uint32_t)b[i + 1] << 8 : 0) |
                         (left > 2 ? b[i + 2] : 0);
        *out++ = digits[three >> 18];
        *out++ = digits[three >> 12 & 63];
        *out++ = left > 1 ? digits[three >> 6 & 63] : '=';
        *out++ = left > 2 ? digits[three & 63] : '=';
    }
    *out = 0;
    t->len = (size_t)(out - t->data);
}

size_t text_columns(const char *s)
{
    size_t n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

bool text_starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool text_ends(const char *s, const char *suffix)
{
    size_t len = strlen(s), end = strlen(suffix);
    return len >= end && memcmp(s + len - end, suffix, end) == 0;
}
