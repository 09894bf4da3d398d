/* Python's str objects; never leaves the room. */
#ifndef SONDE_CPYTHON_TEXT_H
#define SONDE_CPYTHON_TEXT_H

#include "cpython/cpython.h"

#define TEXT_HEAD (LAYOUT_TEXT_STATE + 4) /* bytes of a str that say where its characters are */

/* Where the characters of a str are. */
struct text_place {
    uint64_t address;
    uint64_t length; /* characters */
    uint8_t width;   /* bytes a character */
};

/* From the first TEXT_HEAD bytes of the object at `address`. */
bool text_place(const struct cpython *py, const struct cpython_memory *memory, uint64_t address,
                const uint8_t *head, struct text_place *out);

/* Writes *count characters of `width` bytes as UTF-8 and a NUL, or as many as fit (*count then);
 * the length without the NUL. size > 0. Pure. */
size_t text_encode(const uint8_t *from, size_t *count, uint8_t width, char *to, size_t size);

#endif
