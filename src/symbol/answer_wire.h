/*
 * Answers on their way from a child that reads files to the process that asked. The child may have
 * been taken over by the file that it read, so the reading side believes nothing: counts, lengths
 * and order are checked before use.
 */
#ifndef SONDE_SYMBOL_ANSWER_WIRE_H
#define SONDE_SYMBOL_ANSWER_WIRE_H

#include "base/text.h"
#include "symbol/symbol.h"

enum wire_type { WIRE_ANSWER = 1, WIRE_RESULT = 2 };

/* Bytes of the largest message: every location with four strings of full length. */
#define WIRE_MESSAGE_MAX ((size_t)SYMBOL_INLINE_MAX * (4 * SYMBOL_TEXT_MAX + 64) + 64)

struct wire_message {
    enum wire_type type;
    uint32_t index, n;                                  /* of an answer */
    struct symbol_location location[SYMBOL_INLINE_MAX]; /* strings are in `strings` */
    struct symbol_result result;                        /* of a result */
    struct text strings;
};

void wire_put_answer(struct text *out, size_t index, const struct symbol_location *location,
                     size_t n);
void wire_put_result(struct text *out, const struct symbol_result *result);

/* Bytes that the first message of `data` took, 0 if it is not whole yet, -1 if it is not valid. */
ssize_t wire_get(const char *data, size_t len, struct wire_message *message);
void wire_release(struct wire_message *message);

#endif
