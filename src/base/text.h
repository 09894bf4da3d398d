/*
 * A growing string. `data` is always a terminated C string (also when empty);
 * text_release gives the memory back, text_take hands it to the caller.
 */
#ifndef SONDE_TEXT_H
#define SONDE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    char *data;
    size_t len;
    size_t cap;
};

#define TEXT_INIT                                                                                  \
    {                                                                                              \
        .data = (char *)"", .len = 0, .cap = 0                                                     \
    }

void text_init(struct text *t);
void text_release(struct text *t);
void text_clear(struct text *t); /* keeps the memory */
void text_reserve(struct text *t, size_t more);
void text_add(struct text *t, const char *s); /* NULL adds nothing */
void text_add_len(struct text *t, const void *s, size_t len);
void text_add_char(struct text *t, char c);
void text_add_repeat(struct text *t, char c, size_t times);
void text_add_base64(struct text *t, const void *data, size_t len); /* padded */
void text_format(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_vformat(struct text *t, const char *format, va_list args);
char *text_take(struct text *t); /* caller frees; t is empty after */

/* Names from outside, made safe for a terminal: control characters, DEL, C1 controls and
 * malformed UTF-8 become '?'. */
void text_add_printable(struct text *t, const char *s);

/* For people: "1.23 s", "45.6 ms", "12.3 MiB", "1,234,567". */
void text_add_duration(struct text *t, uint64_t ns);
void text_add_bytes(struct text *t, uint64_t bytes);
void text_add_count(struct text *t, uint64_t count);

/* Columns that a UTF-8 string takes on a terminal (every code point counted as one). */
size_t text_columns(const char *s);
bool text_starts(const char *s, const char *prefix);
bool text_ends(const char *s, const char *suffix);

#endif
