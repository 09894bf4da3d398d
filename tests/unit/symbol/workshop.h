/*
 * A folder in which a test compiles, strips and breaks small programs, and a collector of what the
 * symboliser says about them. Everything is gone after workshop_close.
 */
#ifndef SONDE_TEST_WORKSHOP_H
#define SONDE_TEST_WORKSHOP_H

#include "base/arena.h"
#include "symbol/symbol.h"

struct workshop {
    char folder[64];
};

void workshop_open(struct workshop *w);
void workshop_close(struct workshop *w);
/* A path in the folder; valid until eight more are asked for. */
const char *workshop_path(const struct workshop *w, const char *name);
void workshop_write(const struct workshop *w, const char *name, const char *content);
void workshop_write_bytes(const struct workshop *w, const char *name, const void *data, size_t len);
/* A shell command in the folder; its status is returned. */
int workshop_try(const struct workshop *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same, which must succeed. */
void workshop_run(const struct workshop *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* What a command prints; the caller frees. */
char *workshop_output(const struct workshop *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The address of a symbol, from nm; fails the test if it is not there. */
uint64_t workshop_symbol(const struct workshop *w, const char *file, const char *name);
bool workshop_has(const char *command); /* is it installed? */

/* What came out for each address of one request: copies. */
struct found {
    struct symbol_location *location;
    size_t n; /* 0: no answer */
};

struct catch
{
    struct arena arena;
    struct found *found;
    size_t count;
    size_t emitted, twice;
    struct symbol_result result;
};

/* In this process, and in a child. `options` may be NULL. */
void catch_resolve(struct catch *c, const struct symbol_request *r, const struct symbol_options *o);
void catch_isolated(struct catch *c, const struct symbol_request *r,
                    const struct symbol_options *o);
void catch_release(struct catch *c);

#endif
