/* JSON from a source, token by token; see json_read.h. */
#include "formats/json_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 64 /* characters */

void json_reader_init(struct json_reader *r, struct source *in)
{
    *r = (struct json_reader){.source = in, .text = TEXT_INIT};
}

void json_reader_release(struct json_reader *r)
{
    text_release(&r->text);
}

uint64_t json_reader_offset(const struct json_reader *r)
{
    return source_offset(r->source) + (uint64_t)(r->at - r->start);
}

int json_reader_bad(const struct json_reader *r, struct error *err, const char *why)
{
    return source_bad(r->source, json_reader_offset(r), err, "%s", why);
}

/* Makes a byte available: 1, 0 at the end, or a fault. */
static int more(struct json_reader *r, struct error *err)
{
    if (r->at < r->end)
        return 1;
    int rc = r->at > r->start ? source_skip(r->source, (uint64_t)(r->at - r->start), err) : 0;
    if (rc)
        return rc;
    ssize_t n = source_peek(r->source, SOURCE_PEEK_MAX, &r->start, err);
    r->at = r->start;
    r->end = r->start + (n > 0 ? n : 0);
    return n < 0 ? (int)n : n > 0;
}

/* The next byte that is no white space, not consumed; -1 at the end with no fault. */
static int peek_byte(struct json_reader *r, int *byte, struct error *err)
{
    for (;;) {
        int rc = more(r, err);
        if (rc < 0)
            return rc;
        *byte = rc ? *r->at : -1;
        if (!rc || !strchr(" \t\r\n", *byte) || !*byte)
            return 0;
        r->at++;
    }
}

static int take_byte(struct json_reader *r, int *byte, struct error *err)
{
    int rc = more(r, err);
    if (rc < 0)
        return rc;
    if (!rc)
        return json_reader_bad(r, err, "the file ends within a value");
    *byte = *r->at++;
    return 0;
}

static int take_hex(struct json_reader *r, unsigned *out, struct error *err)
{
    *out = 0;
    for (int i = 0; i < 4; i++) {
        int byte = 0, rc = take_byte(r, &byte, err);
        if (rc)
            return rc;
        const char *digits = "0123456789abcdef";
        const char *digit =
            byte ? strchr(digits, byte >= 'A' && byte <= 'F' ? byte + 32 : byte) : NULL;
        if (!digit)
            return json_reader_bad(r, err, "\\u is followed by something else than four digits");
        *out = *out << 4 | (unsigned)(digit - digits);
    }
    return 0;
}

static void add_utf8(struct text *out, unsigned code)
{
    if (!code || (code >= 0xd800 && code < 0xe000))
        code = 0xfffd;
    if (code < 0x80) {
        text_add_char(out, (char)code);
    } else if (code < 0x800) {
        text_add_char(out, (char)(0xc0 | code >> 6));
        text_add_char(out, (char)(0x80 | (code & 63)));
    } else if (code < 0x10000) {
        text_add_char(out, (char)(0xe0 | code >> 12));
        text_add_char(out, (char)(0x80 | (code >> 6 & 63)));
        text_add_char(out, (char)(0x80 | (code & 63)));
    } else {
        text_add_char(out, (char)(0xf0 | code >> 18));
        text_add_char(out, (char)(0x80 | (code >> 12 & 63)));
        text_add_char(out, (char)(0x80 | (code >> 6 & 63)));
        text_add_char(out, (char)(0x80 | (code & 63)));
    }
}

static int take_escape(struct json_reader *r, struct text *out, struct error *err)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    int byte = 0, rc = take_byte(r, &byte, err);
    if (rc)
        return rc;
    if (byte != 'u') {
        const char *known = byte ? strchr(from, byte) : NULL;
        if (!known)
            return json_reader_bad(r, err, "a string has an unknown escape");
        text_add_char(out, to[known - from]);
        return 0;
    }
    unsigned code, low;
    rc = take_hex(r, &code, err);
    if (!rc && code >= 0xd800 && code < 0xdc00 && r->end - r->at >= 6 && r->at[0] == '\\' &&
        r->at[1] == 'u') {
        r->at += 2;
        rc = take_hex(r, &low, err);
        code = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00)
                                             : 0xfffd;
    }
    if (!rc)
        add_utf8(out, code);
    return rc;
}

/* Behind the opening quote. */
static int take_string(struct json_reader *r, struct error *err)
{
    text_clear(&r->text);
    for (;;) {
        int rc = more(r, err), byte = 0;
        const uint8_t *run = r->at;
        if (rc < 0)
            return rc;
        while (r->at < r->end && *r->at != '"' && *r->at != '\\' && *r->at)
            r->at++;
        if (r->text.len < JSON_READ_STRING)
            text_add_len(&r->text, (const char *)run, (size_t)(r->at - run));
        if (rc && r->at == r->end)
            continue;
        rc = take_byte(r, &byte, err);
        if (rc)
            return rc;
        if (byte == '"')
            return 0;
        if (!byte)
            return json_reader_bad(r, err, "a string holds a zero byte");
        rc = take_escape(r, &r->text, err);
        if (rc)
            return rc;
    }
}

static int take_number(struct json_reader *r, struct error *err)
{
    char digits[NUMBER_MAX + 1];
    size_t len = 0;
    for (;;) {
        int rc = more(r, err);
        if (rc < 0)
            return rc;
        if (!rc || !*r->at || !strchr("+-.0123456789eE", *r->at))
            break;
        if (len == NUMBER_MAX)
            return json_reader_bad(r, err, "a number has too many digits");
        digits[len++] = (char)*r->at++;
    }
    digits[len] = 0;
    char *end;
    r->number = strtod(digits, &end);
    if (!len || *end || !isfinite(r->number))
        return json_reader_bad(r, err, "this is no number");
    r->token = JSON_NUMBER;
    return 0;
}

static int take_word(struct json_reader *r, const char *word, enum json_token token,
                     struct error *err)
{
    for (; *word; word++) {
        int byte = 0, rc = take_byte(r, &byte, err);
        if (rc)
            return rc;
        if (byte != *word)
            return json_reader_bad(r, err, "this is no value");
    }
    r->token = token;
    return 0;
}

static int open_level(struct json_reader *r, bool object, struct error *err)
{
    if (r->depth == JSON_READ_DEPTH)
        return json_reader_bad(r, err, "values are nested too deeply");
    r->at++;
    r->in_object[r->depth] = object;
    r->begun[r->depth] = false;
    r->depth++;
    r->token = object ? JSON_OBJECT : JSON_ARRAY;
    return 0;
}

static int take_value(struct json_reader *r, int byte, struct error *err)
{
    int rc;
    switch (byte) {
    case '{':
    case '[':
        return open_level(r, byte == '{', err);
    case '"':
        r->at++;
        rc = take_string(r, err);
        r->token = JSON_STRING;
        return rc;
    case 't':
        return take_word(r, "true", JSON_TRUE, err);
    case 'f':
        return take_word(r, "false", JSON_FALSE, err);
    case 'n':
        return take_word(r, "null", JSON_NULL, err);
    case -1:
        return json_reader_bad(r, err, "the file ends where a value should be");
    default:
        return take_number(r, err);
    }
}

static int take_key(struct json_reader *r, int byte, struct error *err)
{
    if (byte != '"')
        return json_reader_bad(r, err, "a key should be here");
    r->at++;
    int rc = take_string(r, err);
    if (!rc)
        rc = peek_byte(r, &byte, err);
    if (!rc && byte != ':')
        rc = json_reader_bad(r, err, "a colon should be here");
    if (rc)
        return rc;
    r->at++;
    r->after_key = true;
    r->token = JSON_KEY;
    return 0;
}

/* The end of the file, where that may stand for the end of the list. */
static bool ends_here(struct json_reader *r, int byte)
{
    if (byte >= 0 || !r->may_lack_end || r->depth != 1 || r->in_object[0] || !r->begun[0])
        return false;
    r->lacked_end = true;
    r->depth--;
    r->token = JSON_END;
    return true;
}

int json_read(struct json_reader *r, struct error *err)
{
    int byte, rc;
    if (!r->depth && r->token == JSON_END) {
        r->token = JSON_FINISHED;
        return 0;
    }
    rc = peek_byte(r, &byte, err);
    if (rc)
        return rc;
    if (r->after_key || !r->depth) {
        r->after_key = false;
        return take_value(r, byte, err);
    }
    int level = r->depth - 1;
    bool object = r->in_object[level];
    if (byte == (object ? '}' : ']')) {
        r->at++;
        r->depth--;
        r->token = JSON_END;
        return 0;
    }
    if (ends_here(r, byte))
        return 0;
    if (r->begun[level]) {
        if (byte != ',')
            return json_reader_bad(r, err, "a comma or the end of a list should be here");
        r->at++;
        rc = peek_byte(r, &byte, err);
        if (rc || ends_here(r, byte))
            return rc;
    }
    r->begun[level] = true;
    return object ? take_key(r, byte, err) : take_value(r, byte, err);
}

int json_read_rest(struct json_reader *r, struct error *err)
{
    int rc = 0, until = r->depth - 1;
    if (r->token != JSON_OBJECT && r->token != JSON_ARRAY)
        return 0;
    while (!rc && r->depth > until)
        rc = json_read(r, err);
    return rc;
}

int json_read_skip(struct json_reader *r, struct error *err)
{
    int rc = json_read(r, err);
    return rc ? rc : json_read_rest(r, err);
}

int json_read_text(struct json_reader *r, struct text *out, struct error *err)
{
    int rc = json_read(r, err);
    text_clear(out);
    if (!rc && r->token == JSON_STRING)
        text_add(out, r->text.data);
    else if (!rc && r->token == JSON_NUMBER)
        text_format(out, "%.15g", r->number);
    return rc ? rc : json_read_rest(r, err);
}

int json_read_number(struct json_reader *r, double *out, struct error *err)
{
    int rc = json_read(r, err);
    if (!rc && r->token == JSON_NUMBER)
        *out = r->number;
    else if (!rc && r->token == JSON_STRING)
        *out = strtod(r->text.data, NULL);
    if (!isfinite(*out))
        *out = 0;
    return rc ? rc : json_read_rest(r, err);
}

uint64_t json_to_unsigned(double number)
{
    return number >= 9.2e18 ? (uint64_t)9200000000000000000
           : number > 0     ? (uint64_t)(number + 0.5)
                            : 0;
}

int32_t json_to_int32(double number)
{
    return number >= INT32_MAX ? INT32_MAX : number <= INT32_MIN ? INT32_MIN : (int32_t)number;
}
