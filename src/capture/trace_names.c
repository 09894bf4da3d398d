/* Names that an agent gave to the ids of its trace: see wire/trace.h. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "capture/python.h"
#include "capture/trace_internal.h"

#define LINES_OF_FUNCTION 65536

const struct trace_function *trace_function_of(const struct trace_image *m, uint32_t id)
{
    static const struct trace_function none = {.kind = TRACE_NAME_SPAN, .frame = WRITER_NONE};
    return id < m->functions.len ? &m->functions.data[id] : &none;
}

static struct trace_function *function_make(struct trace_image *m, uint32_t id)
{
    size_t before = m->functions.len;
    if (id >= before) {
        vector_reserve(&m->functions, (size_t)id + 1);
        memset(m->functions.data + before, 0, (id + 1 - before) * sizeof *m->functions.data);
        m->functions.len = (size_t)id + 1;
    }
    return &m->functions.data[id];
}

static uint32_t named_frame(struct trace_image *m, bool builtin, const char *name)
{
    struct writer *w = m->all->session->writer;
    uint32_t module = builtin ? writer_module(w, CODE_PYTHON, "[built-in]", NULL, 0)
                              : writer_module(w, CODE_SPAN, "", NULL, 0);
    return writer_frame_named(w, module, writer_function(w, name, "", "", 0, module), 0);
}

static void lines_take(struct trace_image *m, const struct trace_name *n)
{
    if (n->address > m->lines || n->count > m->lines - n->address || n->count > LINES_OF_FUNCTION) {
        m->damaged = true;
        return;
    }
    *vector_push(&m->line_sets) = (struct trace_lines){
        .id = n->id, .first = (uint32_t)n->address, .count = n->count, .line = n->line};
}

static void name_take(struct trace_image *m, const struct trace_name *n, const char *bytes)
{
    struct writer *w = m->all->session->writer;
    if (n->kind == TRACE_NAME_LINES) {
        lines_take(m, n);
        return;
    }
    struct trace_function *f = function_make(m, n->id);
    char *name = memory_strndup(bytes, n->name);
    *f = (struct trace_function){
        .known = true, .kind = n->kind, .frame = WRITER_NONE, .address = n->address};
    switch (n->kind) {
    case TRACE_NAME_PYTHON:
        f->function =
            python_function(m->python, name, bytes + n->name, n->path, n->line, &f->module);
        f->frame =
            writer_frame_named(w, f->module, f->function, n->line > 0 ? (uint32_t)n->line : 0);
        break;
    case TRACE_NAME_BUILTIN:
        f->frame = named_frame(m, true, name);
        break;
    case TRACE_NAME_COUNTER:
        f->series = writer_series(w, name, UNIT_COUNT, m->process, WRITER_NONE);
        break;
    case TRACE_NAME_SPAN:
        f->frame = named_frame(m, false, name);
        break;
    default:
        break;
    }
    free(name);
}

void trace_names_read(struct trace_image *m)
{
    const struct trace_header *h = (const struct trace_header *)m->base;
    uint32_t used = __atomic_load_n(&h->names_used, __ATOMIC_ACQUIRE);
    if (used > m->names_size) {
        m->damaged = true;
        used = m->names_size;
    }
    while (m->names_read < used && used - m->names_read >= sizeof(struct trace_name)) {
        const uint8_t *at = m->base + m->layout.names + m->names_read;
        char bytes[2 * TRACE_TEXT_MAX];
        struct trace_name n;
        memcpy(&n, at, sizeof n);
        if (n.size < sizeof n || n.size > used - m->names_read || n.size % 8 ||
            n.name > TRACE_TEXT_MAX || n.path > TRACE_TEXT_MAX ||
            sizeof n + n.name + n.path > n.size || n.kind >= TRACE_NAME_KINDS ||
            n.id >= TRACE_IDS || n.id > m->functions.len + 1) {
            m->damaged = true;
            m->names_read = used;
            return;
        }
        memcpy(bytes, at + sizeof n, (size_t)n.name + n.path);
        name_take(m, &n, bytes);
        m->names_read += n.size;
    }
}

uint32_t trace_frame_of(void *image, uint32_t id)
{
    struct trace_image *m = image;
    struct session *s = m->all->session;
    if (id >= m->functions.len || !m->functions.data[id].known)
        return named_frame(m, false, "[more functions than names]");
    struct trace_function *f = &m->functions.data[id];
    if (f->frame == WRITER_NONE)
        f->frame = stacks_user_frame(&s->stacks, m->space, f->address, false);
    return f->frame;
}
