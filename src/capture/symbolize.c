/* Names for the frames of a recording, before it is closed. */
#include "capture/session_internal.h"
#include "symbol/batch.h"
#include "symbol/profile.h"

#define PROGRESS_EVERY 4096

struct naming {
    struct session *session;
    size_t done, total;
};

static void on_answer(void *context, size_t module, uint32_t frame,
                      const struct symbol_location *at, size_t n)
{
    struct naming *k = context;
    struct session *s = k->session;
    struct writer_location out[SYMBOL_INLINE_MAX];
    for (size_t i = 0; i < n; i++) {
        uint32_t f = writer_function(s->writer, at[i].function, at[i].linkage, at[i].file,
                                     at[i].start_line, s->modules.list.data[module]->id);
        out[i] = (struct writer_location){.function = f, .line = at[i].line};
    }
    writer_symbol(s->writer, frame, out, n);
    if (s->options->progress && ++k->done % PROGRESS_EVERY == 0) {
        struct session_progress p = {
            .phase = SESSION_SYMBOLIZING, .done = k->done, .total = k->total};
        s->options->progress(s->options->context, &p);
    }
}

static void gather(struct session *s, struct symbol_batch *b)
{
    size_t count;
    const struct writer_code *code = writer_frames(s->writer, &count);
    struct map by_id = {0};
    for (size_t i = 0; i < s->modules.list.len; i++) {
        const struct module *m = s->modules.list.data[i];
        struct symbol_request r = {.kind = m->dump ? SYMBOL_JITDUMP : symbol_kind_of(m->kind),
                                   .path = m->kind == CODE_ELF ? m->path : m->dump,
                                   .root = m->root,
                                   .build_id = m->build_id_len ? m->build_id : NULL,
                                   .build_id_len = m->build_id_len,
                                   .pid = m->pid};
        symbol_batch_module(b, i, &r, m->fd);
        map_put(&by_id, m->id, 0, i, NULL);
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t *module = map_get(&by_id, code[i].module, 0);
        if (module && !code[i].named)
            symbol_batch_add(b, *module, code[i].address, (uint32_t)i);
    }
    map_release(&by_id);
}

void session_symbolize(struct session *s)
{
    struct error err = {0};
    struct symbol_batch *b = symbol_batch_new(s->modules.list.len);
    gather(s, b);
    struct symbol_options options = {.debuginfod = s->options->debuginfod};
    struct naming k = {.session = s, .total = symbol_batch_count(b)};
    if (symbol_batch_run(b, &options, on_answer, &k, &err))
        writer_note(s->writer, NOTE_WARNING, err.text);
    for (size_t i = 0; i < s->modules.list.len; i++) {
        const struct symbol_result *r = symbol_batch_result(b, i);
        if (r && r->note[0])
            writer_module_note(s->writer, s->modules.list.data[i]->id, r->note);
    }
    symbol_batch_free(b);
}
