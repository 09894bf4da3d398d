/* Counts; see counts.h. */
#include "profile/counts.h"

#include <stdarg.h>
#include <string.h>

#include "base/text.h"

void counts_init(struct counts *c, const char *subject)
{
    *c = (struct counts){0};
    c->subject = arena_strdup(&c->arena, subject);
}

void counts_release(struct counts *c)
{
    vector_release(&c->events);
    vector_release(&c->runs);
    vector_release(&c->threads);
    vector_release(&c->intervals);
    vector_release(&c->notes);
    arena_release(&c->arena);
}

struct counts_event *counts_add_event(struct counts *c, const char *name, const char *plain)
{
    struct counts_event *e = vector_push(&c->events);
    *e = (struct counts_event){.name = arena_strdup(&c->arena, name),
                               .plain = arena_strdup(&c->arena, plain),
                               .measure = "",
                               .scale = 1};
    return e;
}

struct counts_value *counts_values(struct counts *c)
{
    size_t n = c->events.len ? c->events.len : 1;
    return arena_alloc(&c->arena, n * sizeof(struct counts_value));
}

void counts_note(struct counts *c, enum note_level level, const char *format, ...)
{
    struct text t = TEXT_INIT;
    va_list args;
    va_start(args, format);
    text_vformat(&t, format, args);
    va_end(args);
    bool known = false;
    for (size_t i = 0; i < c->notes.len; i++)
        known |= !strcmp(c->notes.data[i].text, t.data);
    if (!known) /* each run would say the same again */
        *vector_push(&c->notes) =
            (struct counts_note){.level = level, .text = arena_strdup(&c->arena, t.data)};
    text_release(&t);
}

size_t counts_find(const struct counts *c, const char *plain)
{
    for (size_t i = 0; i < c->events.len; i++)
        if (!c->events.data[i].refused && !strcmp(c->events.data[i].plain, plain))
            return i;
    return SIZE_MAX;
}

struct counts_value counts_scale(uint64_t value, uint64_t enabled, uint64_t running)
{
    if (!running) /* never enabled: it is 0; enabled but never on a counter: nobody knows */
        return (struct counts_value){.known = !enabled, .share = enabled ? 0 : 1};
    if (running >= enabled)
        return (struct counts_value){.known = true, .value = (double)value, .share = 1};
    double share = (double)running / (double)enabled;
    return (struct counts_value){.known = true, .value = (double)value / share, .share = share};
}

struct counts_value counts_minus(struct counts_value b, struct counts_value a)
{
    if (!b.known)
        return b;
    b.value -= a.known ? a.value : 0;
    b.value = b.value < 0 ? 0 : b.value; /* scaled values may step back */
    return b;
}
