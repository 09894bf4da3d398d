/*
 * The places of a profile as most formats want them: one entry for each function and
 * line (or address without symbols), inlined ones on their own, and a stack as a list
 * of them from the root.
 */
#ifndef SONDE_PLACES_H
#define SONDE_PLACES_H

#include "formats/format.h"

struct place {
    uint32_t function; /* PROFILE_NONE: no symbol, see frame */
    uint32_t line;
    uint32_t frame; /* the first frame it was met in */
};

struct places {
    const struct profile *p;
    VECTOR(struct place) items;
    struct map index;
    uint32_t *by_location, *by_frame; /* what was found before, plus one */
    VECTOR(uint32_t) path;            /* what places_path gave last */
};

void places_init(struct places *s, const struct profile *p);
void places_release(struct places *s);
/* Enters the places of every frame that a stack uses. */
void places_add_all(struct places *s);
/* The place at location k of a frame (any k where it has none). */
uint32_t places_find(struct places *s, uint32_t frame, uint32_t k);
/* Fills s->path with the stack's places, root first; the empty stack has none. */
void places_path(struct places *s, uint32_t stack);
/* Its name, fit for a terminal, and its source file ("" if unknown). */
void places_name(const struct places *s, uint32_t place, struct text *out);
const char *places_file(const struct places *s, uint32_t place);
/* "worker 43 of app 42": a thread for people. */
void places_thread(const struct profile *p, uint32_t thread, struct text *out);

#endif
