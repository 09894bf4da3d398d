/*
 * What was answered last to each question, for when the store is away: readers then get what was
 * known, marked as stale, rather than nothing. Bounded; what was not asked for lately goes first.
 * For any thread.
 */
#ifndef SONDE_SERVE_RECALL_H
#define SONDE_SERVE_RECALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

struct recall;

struct recall *recall_new(size_t bytes_max);
void recall_free(struct recall *a); /* NULL is fine */

/* Keeps a copy of it, unless it is too large to be worth that. */
void recall_keep(struct recall *a, const char *question, const char *type, const void *data,
                 size_t len);
/* Adds it to `out` and says how old it is in ns; NULL if there is none, else its type. */
const char *recall_find(struct recall *a, const char *question, struct text *out, uint64_t *age);
/* Something was taken away for good: nothing of before is to be shown again. */
void recall_forget(struct recall *a);

#endif
