/* The nearest known word to one that is not known: "did you mean --rate?" */
#ifndef SONDE_SPELLING_H
#define SONDE_SPELLING_H

#include <stddef.h>

struct spelling {
    const char *word; /* what was typed */
    const char *best; /* nearest so far, or NULL */
    size_t distance;
};

void spelling_init(struct spelling *s, const char *word);
void spelling_offer(struct spelling *s, const char *known);
/* The nearest word offered if it is near enough to be worth a mention, else NULL. */
const char *spelling_nearest(const struct spelling *s);

#endif
