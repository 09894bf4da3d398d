/* Secrets that open routes: made from the system's randomness, compared in constant time. */
#ifndef SONDE_SERVE_TOKEN_H
#define SONDE_SERVE_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define TOKEN_TEXT 44 /* characters of a token and its NUL */
#define TOKEN_HASH 65 /* the same for its SHA-256 in hex */

/* 256 random bits, as text that may stand in an address. */
int token_make(char out[TOKEN_TEXT], struct error *err);
/* What to keep in its place. */
void token_hash(const char *token, char out[TOKEN_HASH]);
/* Takes the same time for all that differ, however long they are. */
bool token_equal(const char *a, const char *b);

#endif
