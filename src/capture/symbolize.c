/* Names for the frames of a recording, before it is closed. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "capture/session_internal.h"
#include "symbol/symbol.h"

struct wanted {
    uint64_t address;
    uint32_t frame;
};

/* The addresses of one module, and how they are asked for. */
struct question {
    struct module *module;
    VECTOR(struct wanted) wanted;
    uint64_t *address;
    char path[64];
};

struct answers {
    struct session *session;
    struct question *questions;
    size_t done, total;
};

static int by_address(const void *a, const void *b)
{
    const struct wanted *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

static enum symbol_kind kind_of(const struct module *m)
{
    static const enum symbol_kind kinds[CODE_KINDS] = {
        [CODE_ELF] = SYMBOL_ELF,      [CODE_KERNEL] = SYMBOL_KERNEL, [CODE_VDSO] = SYMBOL_VDSO,
        [CODE_JIT] = SYMBOL_PERF_MAP, [CODE_PYTHON] = SYMBOL_OTHER,  [CODE_UNKNOWN] = SYMBOL_OTHER,
    };
    return kinds[m->kind];
}

static void on_answer(void *context, size_t question, size_t index,
                      const struct symbol_location *at, size_t n)
{
    struct answers *a = context;
    struct writer *w = a->session->writer;
    struct writer_location out[SYMBOL_INLINE_MAX];
    const struct question *q = &a->questions[question];
    for (size_t i = 0; i < n; i++) {
        uint32_t f = writer_function(w, at[i].function, at[i].linkage, at[i].file, at[i].start_line,
                                     q->module->id);
        out[i] = (struct writer_location){.function = f, .line = at[i].line};
    }
    writer_symbol(w, q->wanted.data[index].frame, out, n);
    a->done++;
    if (a->session->options->progress && a->done % 4096 == 0) {
        struct session_progress p = {
            .phase = SESSION_SYMBOLIZING, .done = a->done, .total = a->total};
        a->session->options->progress(a->session->options->context, &p);
    }
}

static struct question *gather(struct session *s, size_t *total)
{
    size_t count;
    const struct writer_code *code = writer_frames(s->writer, &count);
    struct question *q = memory_array(s->modules.list.len, sizeof *q);
    struct map by_id = {0};
    for (size_t i = 0; i < s->modules.list.len; i++) {
        q[i].module = s->modules.list.data[i];
        map_put(&by_id, q[i].module->id, 0, i, NULL);
    }
    *total = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t *at = i == s->stacks.cut_frame ? NULL : map_get(&by_id, code[i].module, 0);
        if (!at)
            continue;
        *vector_push(&q[*at].wanted) =
            (struct wanted){.address = code[i].address, .frame = (uint32_t)i};
        ++*total;
    }
    map_release(&by_id);
    return q;
}

static void fill_request(struct question *q, struct symbol_request *r)
{
    struct module *m = q->module;
    size_t n = q->wanted.len;
    if (n)
        qsort(q->wanted.data, n, sizeof *q->wanted.data, by_address);
    q->address = memory_array(n, sizeof *q->address);
    for (size_t i = 0; i < n; i++)
        q->address[i] = q->wanted.data[i].address;
    *r = (struct symbol_request){.kind = n ? kind_of(m) : SYMBOL_OTHER,
                                 .path = m->kind == CODE_ELF ? m->path : NULL,
                                 .root = m->root,
                                 .build_id = m->build_id_len ? m->build_id : NULL,
                                 .build_id_len = m->build_id_len,
                                 .pid = m->pid,
                                 .address = q->address,
                                 .count = n};
}

/* Files that are gone or replaced are still open here: ask again through the descriptor. */
static size_t ask_again(struct question *q, struct symbol_request *request,
                        const struct symbol_result *result, size_t n, size_t *which)
{
    size_t again = 0;
    for (size_t i = 0; i < n; i++) {
        bool lost = result[i].status == SYMBOL_NOT_FOUND || result[i].status == SYMBOL_MISMATCH;
        if (!lost || q[i].module->fd < 0 || !q[i].wanted.len)
            continue;
        snprintf(q[i].path, sizeof q[i].path, "/proc/self/fd/%d", q[i].module->fd);
        request[again] = request[i];
        request[again].path = q[i].path;
        request[again].root = NULL;
        which[again++] = i;
    }
    return again;
}

static void write_notes(struct session *s, const struct question *q,
                        const struct symbol_result *result, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (q[i].wanted.len && result[i].note[0])
            writer_module_note(s->writer, q[i].module->id, result[i].note);
}

void session_symbolize(struct session *s)
{
    size_t n = s->modules.list.len;
    struct answers a = {.session = s};
    a.questions = gather(s, &a.total);
    struct symbol_request *request = memory_array(n, sizeof *request);
    struct symbol_result *result = memory_array(n, sizeof *result);
    size_t *which = memory_array(n, sizeof *which);
    for (size_t i = 0; i < n; i++)
        fill_request(&a.questions[i], &request[i]);
    struct symbol_options options = {.debuginfod = s->options->debuginfod};
    struct symbol_sink sink = {.emit = on_answer, .context = &a};
    struct error err = {0};
    if (symbol_resolve_isolated(request, n, &options, &sink, result, &err)) {
        writer_note(s->writer, NOTE_WARNING, err.text);
    } else {
        size_t again = ask_again(a.questions, request, result, n, which);
        struct answers second = {.session = s, .total = a.total};
        second.questions = memory_array(n, sizeof *second.questions);
        struct symbol_result *more = memory_array(n, sizeof *more);
        for (size_t i = 0; i < again; i++)
            second.questions[i] = a.questions[which[i]];
        sink.context = &second;
        if (again && !symbol_resolve_isolated(request, again, &options, &sink, more, &err))
            for (size_t i = 0; i < again; i++)
                result[which[i]] = more[i];
        free(second.questions);
        free(more);
        write_notes(s, a.questions, result, n);
    }
    for (size_t i = 0; i < n; i++) {
        vector_release(&a.questions[i].wanted);
        free(a.questions[i].address);
    }
    free(a.questions);
    free(request);
    free(result);
    free(which);
}
