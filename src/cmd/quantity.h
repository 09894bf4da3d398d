/*
 * Numbers as people type them: 10k, 500ms, 512K, 1.5%. Independent of the locale.
 * Each returns false when the text is not entirely such a number or does not fit.
 */
#ifndef SONDE_QUANTITY_H
#define SONDE_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

bool quantity_unsigned(const char *text, bool suffix, uint64_t *value); /* k, M, G: decimal */
bool quantity_double(const char *text, double *value);                  /* finite, decimal */
bool quantity_percent(const char *text, double *value);                 /* "1%", "1" -> 1.0 */
bool quantity_duration(const char *text, uint64_t *ns);                 /* bare: seconds */
bool quantity_size(const char *text, uint64_t *bytes);                  /* K, M, G, T: 1024s */

/* The way back, exact, in the largest unit that divides: "500ms", "64M". */
void quantity_add_duration(struct text *t, uint64_t ns);
void quantity_add_size(struct text *t, uint64_t bytes);

#endif
