/*
 * What a client of Pyroscope says of a profile, and how it wraps it up: nothing of it is trusted,
 * all of it is read without a request at hand. For any thread.
 */
#ifndef SONDE_SERVE_PYROSCOPE_H
#define SONDE_SERVE_PYROSCOPE_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

struct pyroscope_app {
    char name[256]; /* without labels and event */
    char event[64]; /* "cpu", "" if it is not said */
    char host[256]; /* of the labels hostname, host, instance or pod */
    uint32_t job;   /* 0: by name */
};

/* "app.cpu{host=web1,job=2001}" */
void pyroscope_name(const char *text, struct pyroscope_app *out);
/* Narrows the body to the part "profile" of a form, if `type`, which may be NULL, says it is one.
 */
void pyroscope_unwrap(const char *type, const char **body, size_t *len);
/* A stack a line, each counted once: as folded text. */
void pyroscope_count_lines(const char *body, size_t len, struct text *out);

#endif
