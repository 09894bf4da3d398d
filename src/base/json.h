/*
 * A streaming JSON writer: nothing is held but a small buffer and the nesting.
 * Output is valid UTF-8 and safe inside an HTML script element ('<', '>', '&'
 * and U+2028/9 are escaped). Misuse (a value without a key in an object) asserts.
 */
#ifndef SONDE_JSON_H
#define SONDE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

#define JSON_DEPTH 64

struct json {
    struct text out;
    int (*flush)(void *context, const char *data, size_t len); /* NULL: all stays in `out` */
    void *context;
    int failed; /* first non-zero result of flush: what follows goes nowhere */
    int depth;
    bool pretty;
    bool after_key;
    bool in_object[JSON_DEPTH];
    bool has_items[JSON_DEPTH];
};

void json_init(struct json *j, int (*flush)(void *, const char *, size_t), void *context);
void json_open_object(struct json *j);
void json_open_array(struct json *j);
void json_end(struct json *j); /* of the innermost object or array */
void json_key(struct json *j, const char *key);
void json_text(struct json *j, const char *s); /* NULL becomes null */
void json_uint(struct json *j, uint64_t v);
void json_int(struct json *j, int64_t v);
void json_double(struct json *j, double v); /* shortest form; NaN and infinities become null */
void json_bool(struct json *j, bool v);
/* A value that is JSON already: for writers that make millions of equal ones. */
void json_raw(struct json *j, const char *text, size_t len);
void json_nothing(struct json *j);
int json_finish(struct json *j); /* flushes what is left; returns `failed` */
void json_release(struct json *j);

/* Key and value in one call. */
void json_put_string(struct json *j, const char *key, const char *s);
void json_put_uint(struct json *j, const char *key, uint64_t v);
void json_put_int(struct json *j, const char *key, int64_t v);
void json_put_double(struct json *j, const char *key, double v);
void json_put_bool(struct json *j, const char *key, bool v);

/* `v` in decimal, faster than a format does it. */
void json_add_uint(struct text *t, uint64_t v);
/* The same into a buffer that has JSON_DIGITS left; where it ends. */
#define JSON_DIGITS 20
char *json_put_digits(char *at, uint64_t v);

/* `s` as the inside of a JSON string, without the quotes. */
void json_escape(struct text *t, const char *s);

#endif
