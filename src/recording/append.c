/* One function a record: encodes it into its section. docs/FORMAT.md draws each. */
#include <string.h>

#include "recording/writer.h"
#include "recording/writer_internal.h"

/* Stack nodes remembered; past it the table starts over and known stacks get new identifiers. */
#define STACKS_REMEMBERED ((size_t)1 << 20)
#define STRING_LIMIT ((size_t)65535)

static uint32_t add_string(struct writer *w, const char *text)
{
    size_t len = text ? strnlen(text, STRING_LIMIT) : 0;
    size_t known = w->names.len;
    uint32_t id = names_add_len(&w->names, text ? text : "", len);
    if (id < known)
        return id;
    struct text *body = &w->strings.body;
    size_t before = body->len;
    if (!body->len)
        writer_add_varint(body, id);
    writer_add_varint(body, len);
    text_add_len(body, text, len);
    writer_gathered(w, body->len - before);
    return id;
}

static void put(struct writer *w, uint64_t v)
{
    writer_add_varint(&w->payload, v);
}

/* An identifier that may be absent: 0 for none, otherwise one more than it is. */
static void put_optional(struct writer *w, uint32_t id)
{
    put(w, (uint32_t)(id + 1));
}

void writer_meta(struct writer *w, const char *key, const char *value)
{
    uint32_t k = add_string(w, key), v = add_string(w, value);
    put(w, k);
    put(w, v);
    writer_close(w, SECTION_DEFINITIONS, RECORD_META);
}

uint32_t writer_event(struct writer *w, const char *name, enum value_unit unit, uint64_t period)
{
    uint32_t text = add_string(w, name), id = (uint32_t)w->events.len;
    put(w, id);
    put(w, text);
    put(w, unit);
    put(w, period);
    writer_close(w, SECTION_DEFINITIONS, RECORD_EVENT);
    struct writer_event *e = vector_push(&w->events);
    *e = (struct writer_event){0};
    text_init(&e->run.body);
    return id;
}

uint32_t writer_process(struct writer *w, int32_t pid, uint32_t parent, uint64_t start)
{
    uint32_t id = w->process_count++;
    put(w, id);
    put(w, (uint32_t)pid);
    put_optional(w, parent);
    put(w, start);
    writer_close(w, SECTION_DEFINITIONS, RECORD_PROCESS);
    return id;
}

void writer_exec(struct writer *w, uint32_t process, uint64_t time, const char *comm,
                 const char *exe, const char *arguments)
{
    uint32_t c = add_string(w, comm), e = add_string(w, exe), a = add_string(w, arguments);
    put(w, process);
    put(w, time);
    put(w, c);
    put(w, e);
    put(w, a);
    writer_close(w, SECTION_DEFINITIONS, RECORD_PROCESS_EXEC);
}

void writer_process_end(struct writer *w, uint32_t process, uint64_t time, int status,
                        uint64_t max_rss)
{
    put(w, process);
    put(w, time);
    put(w, (uint32_t)(status + 1));
    put(w, max_rss);
    writer_close(w, SECTION_DEFINITIONS, RECORD_PROCESS_END);
}

uint32_t writer_thread(struct writer *w, uint32_t process, int32_t tid, uint64_t start)
{
    uint32_t id = w->thread_count++;
    put(w, id);
    put(w, process);
    put(w, (uint32_t)tid);
    put(w, start);
    writer_close(w, SECTION_DEFINITIONS, RECORD_THREAD);
    return id;
}

void writer_thread_name(struct writer *w, uint32_t thread, const char *name)
{
    uint32_t text = add_string(w, name);
    put(w, thread);
    put(w, text);
    writer_close(w, SECTION_DEFINITIONS, RECORD_THREAD_NAME);
}

void writer_thread_end(struct writer *w, uint32_t thread, uint64_t time, uint64_t cpu)
{
    put(w, thread);
    put(w, time);
    put(w, cpu);
    writer_close(w, SECTION_DEFINITIONS, RECORD_THREAD_END);
}

uint32_t writer_module(struct writer *w, enum code_kind kind, const char *path,
                       const uint8_t *build_id, size_t build_id_len)
{
    if (build_id_len > 20)
        build_id_len = 20;
    uint32_t name = add_string(w, path);
    bool added;
    uint64_t *id =
        map_put(&w->modules, (uint64_t)name << 8 | kind,
                build_id_len ? hash_bytes(build_id, build_id_len) : 0, w->module_count, &added);
    if (!added)
        return (uint32_t)*id;
    put(w, w->module_count);
    put(w, kind);
    put(w, name);
    put(w, build_id_len);
    text_add_len(&w->payload, build_id, build_id_len);
    writer_close(w, SECTION_DEFINITIONS, RECORD_MODULE);
    return w->module_count++;
}

void writer_module_note(struct writer *w, uint32_t module, const char *note)
{
    uint32_t text = add_string(w, note);
    put(w, module);
    put(w, text);
    writer_close(w, SECTION_DEFINITIONS, RECORD_MODULE_NOTE);
}

void writer_mapping(struct writer *w, uint32_t process, uint32_t module, uint64_t start,
                    uint64_t end, uint64_t offset, uint64_t time)
{
    put(w, process);
    put(w, module);
    put(w, start);
    put(w, end - start);
    put(w, offset);
    put(w, time);
    writer_close(w, SECTION_DEFINITIONS, RECORD_MAPPING);
}

static uint32_t add_frame(struct writer *w, uint64_t head, uint64_t b, bool named)
{
    bool added;
    uint64_t *id = map_put(&w->frame_index, head, b, w->code.len, &added);
    uint32_t frame = (uint32_t)*id;
    if (!added)
        return frame;
    *vector_push(&w->code) =
        (struct writer_code){.module = (uint32_t)(head >> 1), .named = named, .address = b};
    struct run *run = &w->frames;
    size_t before = run->body.len;
    if (!run->body.len)
        writer_add_varint(&run->body, frame);
    writer_add_varint(&run->body, head);
    if (named) {
        writer_add_varint(&run->body, b >> 32);
        writer_add_varint(&run->body, (uint32_t)b);
    } else {
        writer_add_signed(&run->body, (int64_t)(b - run->previous[0]));
        run->previous[0] = b;
    }
    writer_gathered(w, run->body.len - before);
    return frame;
}

uint32_t writer_frame(struct writer *w, uint32_t module, uint64_t address)
{
    return add_frame(w, (uint64_t)module << 1, address, false);
}

uint32_t writer_frame_named(struct writer *w, uint32_t module, uint32_t function, uint32_t line)
{
    return add_frame(w, (uint64_t)module << 1 | 1, (uint64_t)function << 32 | line, true);
}

uint32_t writer_stack(struct writer *w, uint32_t parent, uint32_t frame)
{
    bool added;
    uint64_t *id = map_put(&w->stack_index, parent, frame, w->stack_count, &added);
    uint32_t stack = (uint32_t)*id;
    if (!added)
        return stack;
    if (w->stack_index.len > STACKS_REMEMBERED)
        map_release(&w->stack_index);
    return writer_stack_new(w, parent, frame);
}

uint32_t writer_stack_new(struct writer *w, uint32_t parent, uint32_t frame)
{
    uint32_t stack = w->stack_count++;
    struct run *run = &w->stacks;
    size_t before = run->body.len;
    if (!run->body.len)
        writer_add_varint(&run->body, stack);
    writer_add_varint(&run->body, stack - parent);
    writer_add_signed(&run->body, (int64_t)frame - (int64_t)run->previous[0]);
    run->previous[0] = frame;
    writer_gathered(w, run->body.len - before);
    return stack;
}

void writer_sample(struct writer *w, uint32_t event, uint64_t time, uint32_t thread, uint32_t stack,
                   uint64_t value)
{
    if (w->failed) {
        w->dropped++;
        return;
    }
    struct run *run = &w->events.data[event].run;
    struct text *body = &run->body;
    size_t before = body->len;
    if (!body->len)
        writer_add_varint(body, event);
    writer_add_signed(body, (int64_t)(time - run->previous[0]));
    writer_add_signed(body, (int64_t)thread - (int64_t)run->previous[1]);
    writer_add_signed(body, (int64_t)stack - (int64_t)run->previous[2]);
    writer_add_varint(body, value);
    run->previous[0] = time;
    run->previous[1] = thread;
    run->previous[2] = stack;
    w->samples++;
    writer_gathered(w, body->len - before);
}

void writer_sum(struct writer *w, uint32_t event, uint32_t thread, uint32_t stack, uint64_t count,
                uint64_t value)
{
    put(w, event);
    put(w, thread);
    put(w, stack);
    put(w, count);
    put(w, value);
    writer_close(w, SECTION_VALUES, RECORD_CELLS);
}

void writer_cell(struct writer *w, uint32_t event, uint32_t thread, uint32_t stack, uint64_t count,
                 uint64_t value)
{
    writer_sum(w, event, thread, stack, count, value);
    w->samples += count;
}

void writer_detail(struct writer *w, const struct writer_detail *d)
{
    struct run *run = &w->details[d->kind];
    struct text *body = &run->body;
    size_t before = body->len;
    if (!body->len)
        writer_add_varint(body, d->kind);
    writer_add_signed(body, (int64_t)d->thread - (int64_t)run->previous[0]);
    writer_add_signed(body, (int64_t)d->stack - (int64_t)run->previous[1]);
    writer_add_signed(body, (int64_t)(d->key - run->previous[2]));
    writer_add_varint(body, d->count);
    writer_add_varint(body, d->value);
    run->previous[0] = d->thread;
    run->previous[1] = d->stack;
    run->previous[2] = d->key;
    writer_gathered(w, body->len - before);
}

void writer_heap(struct writer *w, uint32_t process, const struct writer_heap *h)
{
    put(w, process);
    put(w, h->time);
    put(w, h->peak);
    put(w, h->peak_time);
    put(w, h->live);
    put(w, h->live_blocks);
    put(w, h->allocations);
    put(w, h->lost);
    put(w, h->frees);
    put(w, h->unknown_frees);
    writer_close(w, SECTION_VALUES, RECORD_HEAP);
}

uint32_t writer_function(struct writer *w, const char *name, const char *linkage, const char *file,
                         uint32_t start_line, uint32_t module)
{
    uint32_t n = add_string(w, name), l = add_string(w, linkage), f = add_string(w, file);
    bool added;
    uint64_t *id =
        map_put(&w->function_index, (uint64_t)n << 32 | l,
                hash_mix((uint64_t)f << 32 | start_line, module), w->function_count, &added);
    if (!added)
        return (uint32_t)*id;
    struct text *body = &w->functions.body;
    size_t before = body->len;
    if (!body->len)
        writer_add_varint(body, w->function_count);
    writer_add_varint(body, n);
    writer_add_varint(body, l);
    writer_add_varint(body, f);
    writer_add_varint(body, start_line);
    writer_add_varint(body, (uint32_t)(module + 1));
    writer_gathered(w, body->len - before);
    return w->function_count++;
}

void writer_symbol(struct writer *w, uint32_t frame, const struct writer_location *at, size_t n)
{
    put(w, frame);
    put(w, n);
    for (size_t i = 0; i < n; i++) {
        put(w, at[i].function);
        put(w, at[i].line);
    }
    writer_close(w, SECTION_VALUES, RECORD_SYMBOLS);
}

uint32_t writer_series(struct writer *w, const char *name, enum value_unit unit, uint32_t process,
                       uint32_t thread)
{
    uint32_t text = add_string(w, name), id = (uint32_t)w->series.len;
    put(w, id);
    put(w, text);
    put(w, unit);
    put_optional(w, process);
    put_optional(w, thread);
    writer_close(w, SECTION_DEFINITIONS, RECORD_SERIES);
    struct writer_series *s = vector_push(&w->series);
    *s = (struct writer_series){0};
    text_init(&s->run.body);
    return id;
}

void writer_point(struct writer *w, uint32_t series, uint64_t time, int64_t value)
{
    struct run *run = &w->series.data[series].run;
    size_t before = run->body.len;
    if (!run->body.len)
        writer_add_varint(&run->body, series);
    writer_add_signed(&run->body, (int64_t)(time - run->previous[0]));
    writer_add_signed(&run->body, value - (int64_t)run->previous[1]);
    run->previous[0] = time;
    run->previous[1] = (uint64_t)value;
    writer_gathered(w, run->body.len - before);
}

void writer_loss(struct writer *w, enum loss_reason reason, uint32_t event, uint32_t thread,
                 uint64_t count)
{
    put(w, reason);
    put_optional(w, event);
    put_optional(w, thread);
    put(w, count);
    writer_close(w, SECTION_VALUES, RECORD_LOSS);
}

void writer_note(struct writer *w, enum note_level level, const char *text)
{
    uint32_t s = add_string(w, text);
    put(w, level);
    put(w, s);
    writer_close(w, SECTION_DEFINITIONS, RECORD_NOTE);
}

void writer_mark(struct writer *w, uint64_t time, const char *text)
{
    uint32_t s = add_string(w, text);
    put(w, time);
    put(w, s);
    writer_close(w, SECTION_DEFINITIONS, RECORD_MARK);
}

void writer_set_cost(struct writer *w, const struct writer_cost *cost)
{
    put(w, cost->collector_cpu);
    put(w, cost->collector_rss);
    put(w, cost->target_extra);
    put(w, cost->stacks_whole);
    put(w, cost->stacks_cut);
    put(w, writer_bytes(w));
    writer_close(w, SECTION_VALUES, RECORD_COST);
}
