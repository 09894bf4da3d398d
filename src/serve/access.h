/*
 * Who may do what: a file of tokens, of which only hashes are kept. It is read again when it
 * changes, so that a token given or taken back counts at once. For the loop's thread.
 *
 *     name role sha256
 */
#ifndef SONDE_SERVE_ACCESS_H
#define SONDE_SERVE_ACCESS_H

#include "base/text.h"
#include "serve/http.h"
#include "serve/token.h"

struct access;

struct access *access_new(const char *path);
void access_free(struct access *a);
/* Are there any tokens? A file that is damaged or cannot be read counts as some. */
bool access_any(struct access *a);
/* For http_options.check: the context is the access. Takes the same time for every wrong token. */
enum http_role access_check(void *context, const char *token);

/* Makes a token of that role and name ([A-Za-z0-9._-]+, not there yet) and keeps its hash. */
int access_add(const char *path, const char *name, enum http_role role, char token[TOKEN_TEXT],
               struct error *err);
/* FAULT_MISSING if there is none of that name. */
int access_remove(const char *path, const char *name, struct error *err);
/* A line for each: name and role. */
int access_list(const char *path, struct text *out, struct error *err);

/* "read", "write", "admin"; HTTP_ROLE_NONE for anything else. */
enum http_role access_role(const char *name);

#endif
