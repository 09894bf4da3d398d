/*
 * JSON from a source, token by token, in constant memory: for files that may be larger
 * than memory and are hostile. Strings come as UTF-8 without NULs. Syntax is checked as far as it
 * is read; nesting is bounded.
 */
#ifndef SONDE_JSON_READ_H
#define SONDE_JSON_READ_H

#include <stdbool.h>

#include "base/text.h"
#include "formats/source.h"

#define JSON_READ_DEPTH 512
#define JSON_READ_STRING                                                                           \
    ((size_t)1 << 20) /* bytes of a string; the rest of a longer one is cut                        \
                       */

enum json_token {
    JSON_OBJECT,
    JSON_ARRAY,
    JSON_END, /* of the innermost object or array */
    JSON_KEY,
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
    JSON_FINISHED, /* the value is complete; what follows it has not been looked at */
};

struct json_reader {
    struct source *source;
    const uint8_t *at, *end; /* bytes at hand */
    const uint8_t *start;
    enum json_token token;
    struct text text; /* of a key or a string */
    double number;
    int depth;
    bool in_object[JSON_READ_DEPTH];
    bool begun[JSON_READ_DEPTH]; /* has an item */
    bool after_key;
    bool may_lack_end; /* set by the caller: if all is a list, the file may end after any item */
    bool lacked_end;   /* and did */
};

void json_reader_init(struct json_reader *r, struct source *in);
void json_reader_release(struct json_reader *r);
/* The next token, in r->token; 0 or FAULT_INPUT with its place. */
int json_read(struct json_reader *r, struct error *err);
/* Passes over the value that follows (after a key or in an array: the one that json_read would
 * begin). */
int json_read_skip(struct json_reader *r, struct error *err);
/* Having read a token: passes over the rest of it, if it opened an object or array. */
int json_read_rest(struct json_reader *r, struct error *err);
/* The value that follows, if it is a string or number; others are passed over. */
int json_read_text(struct json_reader *r, struct text *out, struct error *err);
int json_read_number(struct json_reader *r, double *out, struct error *err);
uint64_t json_reader_offset(const struct json_reader *r);
int json_reader_bad(const struct json_reader *r, struct error *err, const char *why);

/* Numbers as they are wanted: rounded, within bounds. */
uint64_t json_to_unsigned(double number);
int32_t json_to_int32(double number);

#endif
