/* Files that appear whole or not at all; see sink_file.h. */
#include "formats/sink_file.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/output.h"

struct sink_file {
    struct sink sink;
    struct output out;
    uint64_t written;
    void (*progress)(void *context, uint64_t done, uint64_t size);
    void *context;
};

static int write_file(void *context, const void *data, size_t len, struct error *err)
{
    struct sink_file *f = context;
    if (output_write(&f->out, data, len))
        return output_failed(&f->out, err);
    f->written += len;
    if (f->progress)
        f->progress(f->context, f->written, 0);
    return 0;
}

int sink_file_new(const char *path, bool replace, struct sink_file **out, struct error *err)
{
    struct sink_file *f = memory_alloc(sizeof *f);
    int rc = output_open(&f->out, path, replace, 0600, err);
    if (rc) {
        free(f);
        return rc;
    }
    sink_init(&f->sink, write_file, f);
    *out = f;
    return 0;
}

struct sink *sink_file_sink(struct sink_file *f)
{
    return &f->sink;
}

void sink_file_watch(struct sink_file *f,
                     void (*progress)(void *context, uint64_t done, uint64_t size), void *context)
{
    f->progress = progress;
    f->context = context;
}

bool sink_file_abandoned(const struct sink_file *f)
{
    return f->out.abandoned;
}

int sink_file_free(struct sink_file *f, bool keep, struct error *err)
{
    int rc = keep ? sink_finish(&f->sink, err) : 0;
    int closed = output_close(&f->out, keep && !rc, rc ? NULL : err);
    sink_release(&f->sink);
    free(f);
    return rc ? rc : closed;
}
