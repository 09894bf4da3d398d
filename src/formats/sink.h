/*
 * Where a writer's bytes go: a callback behind a small buffer, so that an export
 * of any size takes the same memory. The first failure is kept and what follows
 * it is thrown away; a writer need not look before sink_finish.
 */
#ifndef SONDE_SINK_H
#define SONDE_SINK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

struct sink {
    /* Takes all `len` bytes and returns 0, or fails with a sentence. */
    int (*write)(void *context, const void *data, size_t len, struct error *err);
    void *context;
    struct text buffer;
    struct error failure; /* fault is FAULT_NONE while all is well */
};

void sink_init(struct sink *s,
               int (*write)(void *context, const void *data, size_t len, struct error *err),
               void *context);
void sink_release(struct sink *s);
void sink_add(struct sink *s, const void *data, size_t len);
void sink_text(struct sink *s, const char *text);
void sink_format(struct sink *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Has it failed? What is added now goes nowhere, so a writer of much had better stop. */
bool sink_failed(const struct sink *s);
/* Hands over what is left; 0, or the first failure there was. */
int sink_finish(struct sink *s, struct error *err);

/* For json_init: the context is the sink. */
int sink_json(void *context, const char *data, size_t len);

/* A sink that compresses into another with gzip. The outer sink is finished by the caller. */
struct gzip;
int gzip_new(struct sink *outer, struct gzip **out, struct error *err);
struct sink *gzip_sink(struct gzip *g);
/* Writes the trailer and frees. */
int gzip_free(struct gzip *g, struct error *err);

#endif
