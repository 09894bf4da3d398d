/* Nearest words by edit distance; see spelling.h. */
#include "cmd/spelling.h"

#include <string.h>

#define WORD_MAX 64 /* nobody means a known word with something longer */

static size_t least(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/* Insertions, deletions, replacements and swaps of neighbours that turn a into b. */
static size_t edit_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t rows[3][WORD_MAX + 1];
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b_len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t *oldest = before;
        before = above;
        above = row;
        row = oldest;
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t change = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = least(above[j] + 1, row[j - 1] + 1, change);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
    }
    return row[b_len];
}

void spelling_init(struct spelling *s, const char *word)
{
    *s = (struct spelling){.word = word, .distance = (size_t)-1};
}

void spelling_offer(struct spelling *s, const char *known)
{
    size_t typed = strlen(s->word), len = strlen(known);
    if (!typed || typed > WORD_MAX || len > WORD_MAX)
        return;
    size_t distance = edit_distance(s->word, typed, known, len);
    if (typed >= 3 && typed < len && strncmp(s->word, known, typed) == 0)
        distance = 1; /* the start of a word is as good as one slip */
    if (distance < s->distance) {
        s->distance = distance;
        s->best = known;
    }
}

const char *spelling_nearest(const struct spelling *s)
{
    size_t tolerated = (strlen(s->word) + 2) / 3;
    return s->best && s->distance <= tolerated ? s->best : NULL;
}
