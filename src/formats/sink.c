/* A writer's way out, plain and compressed; see sink.h. */
#include "formats/sink.h"

#include <stdlib.h>
#include <zlib.h>

#include "base/memory.h"

#define SINK_BUFFER ((size_t)64 * 1024)

void sink_init(struct sink *s,
               int (*write)(void *context, const void *data, size_t len, struct error *err),
               void *context)
{
    *s = (struct sink){.write = write, .context = context};
    text_init(&s->buffer);
}

void sink_release(struct sink *s)
{
    text_release(&s->buffer);
}

static void hand_over(struct sink *s, const void *data, size_t len)
{
    if (len && !s->failure.fault && s->write(s->context, data, len, &s->failure) &&
        !s->failure.fault)
        error_set(&s->failure, FAULT_SYSTEM, "the output could not be written");
}

static void drain(struct sink *s, size_t over)
{
    if (s->buffer.len <= over)
        return;
    hand_over(s, s->buffer.data, s->buffer.len);
    text_clear(&s->buffer);
}

void sink_add(struct sink *s, const void *data, size_t len)
{
    if (len >= SINK_BUFFER) {
        drain(s, 0);
        hand_over(s, data, len);
        return;
    }
    text_add_len(&s->buffer, data, len);
    drain(s, SINK_BUFFER);
}

void sink_text(struct sink *s, const char *text)
{
    sink_add(s, text, strlen(text));
}

void sink_format(struct sink *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_vformat(&s->buffer, format, args);
    va_end(args);
    drain(s, SINK_BUFFER);
}

bool sink_failed(const struct sink *s)
{
    return s->failure.fault != FAULT_NONE;
}

int sink_finish(struct sink *s, struct error *err)
{
    drain(s, 0);
    if (s->failure.fault && err)
        *err = s->failure;
    return s->failure.fault;
}

int sink_json(void *context, const char *data, size_t len)
{
    struct sink *s = context;
    sink_add(s, data, len);
    return s->failure.fault;
}

struct gzip {
    struct sink inner;
    struct sink *outer;
    z_stream z;
};

/* Runs the compressor until it has taken all input (and, at the end, given all output). */
static int deflate_into(struct gzip *g, int flush, struct error *err)
{
    unsigned char out[16384];
    int rc;
    do {
        g->z.next_out = out;
        g->z.avail_out = sizeof out;
        rc = deflate(&g->z, flush);
        if (rc == Z_STREAM_ERROR)
            return error_set(err, FAULT_SYSTEM, "zlib failed to compress the output");
        sink_add(g->outer, out, sizeof out - g->z.avail_out);
    } while (g->z.avail_out == 0 || (flush == Z_FINISH && rc != Z_STREAM_END));
    return 0;
}

static int gzip_write(void *context, const void *data, size_t len, struct error *err)
{
    struct gzip *g = context;
    g->z.next_in = (unsigned char *)data;
    g->z.avail_in = (unsigned)len; /* never more than a string of the profile */
    return deflate_into(g, Z_NO_FLUSH, err);
}

int gzip_new(struct sink *outer, struct gzip **out, struct error *err)
{
    struct gzip *g = memory_alloc(sizeof *g);
    g->outer = outer;
    if (deflateInit2(&g->z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        free(g);
        return error_set(err, FAULT_SYSTEM, "zlib could not be started");
    }
    sink_init(&g->inner, gzip_write, g);
    *out = g;
    return 0;
}

struct sink *gzip_sink(struct gzip *g)
{
    return &g->inner;
}

int gzip_free(struct gzip *g, struct error *err)
{
    int rc = sink_finish(&g->inner, err);
    if (!rc)
        rc = deflate_into(g, Z_FINISH, err);
    deflateEnd(&g->z);
    sink_release(&g->inner);
    free(g);
    return rc;
}
