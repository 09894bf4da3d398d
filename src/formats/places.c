/* Places and paths; see places.h. */
#include "formats/places.h"

#include <stdlib.h>

void places_init(struct places *s, const struct profile *p)
{
    *s = (struct places){.p = p};
    s->by_location = memory_array(p->locations.len + 1, sizeof *s->by_location);
    s->by_frame = memory_array(p->frames.len + 1, sizeof *s->by_frame);
}

void places_release(struct places *s)
{
    vector_release(&s->items);
    vector_release(&s->path);
    map_release(&s->index);
    free(s->by_location);
    free(s->by_frame);
}

static uint32_t find(struct places *s, uint32_t frame, uint32_t k)
{
    const struct profile_frame *f = &s->p->frames.data[frame];
    struct place place = {.function = PROFILE_NONE, .frame = frame};
    uint64_t key = frame;
    if (f->location_count) {
        const struct profile_location *at = &s->p->locations.data[f->first_location + k];
        place.function = at->function;
        place.line = at->line;
        key = (uint64_t)at->function << 32 | at->line;
    }
    bool added;
    uint64_t *id = map_put(&s->index, key, f->location_count > 0, s->items.len, &added);
    uint32_t found = (uint32_t)*id;
    if (added)
        *vector_push(&s->items) = place;
    return found;
}

uint32_t places_find(struct places *s, uint32_t frame, uint32_t k)
{
    const struct profile_frame *f = &s->p->frames.data[frame];
    uint32_t *known =
        f->location_count ? &s->by_location[f->first_location + k] : &s->by_frame[frame];
    if (!*known)
        *known = find(s, frame, k) + 1;
    return *known - 1;
}

void places_add_all(struct places *s)
{
    for (size_t i = 1; i < s->p->stacks.len; i++) {
        uint32_t frame = s->p->stacks.data[i].frame, k = 0;
        do
            places_find(s, frame, k);
        while (++k < s->p->frames.data[frame].location_count);
    }
}

void places_path(struct places *s, uint32_t stack)
{
    s->path.len = 0;
    for (; stack; stack = s->p->stacks.data[stack].parent) {
        uint32_t frame = s->p->stacks.data[stack].frame, k = 0;
        do {
            uint32_t place = places_find(s, frame, k);
            *vector_push(&s->path) = place;
        } while (++k < s->p->frames.data[frame].location_count);
    }
    for (size_t i = 0, n = s->path.len; i < n / 2; i++) {
        uint32_t other = s->path.data[n - 1 - i];
        s->path.data[n - 1 - i] = s->path.data[i];
        s->path.data[i] = other;
    }
}

void places_name(const struct places *s, uint32_t place, struct text *out)
{
    const struct place *at = &s->items.data[place];
    if (at->function == PROFILE_NONE) {
        struct text raw = TEXT_INIT;
        format_address(s->p, at->frame, &raw);
        text_add_printable(out, raw.data);
        text_release(&raw);
        return;
    }
    const char *name = profile_text(s->p, s->p->functions.data[at->function].name);
    text_add_printable(out, name[0] ? name : "[unknown]");
}

const char *places_file(const struct places *s, uint32_t place)
{
    uint32_t function = s->items.data[place].function;
    return function == PROFILE_NONE ? "" : profile_text(s->p, s->p->functions.data[function].file);
}

void places_thread(const struct profile *p, uint32_t thread, struct text *out)
{
    const struct profile_thread *t = &p->threads.data[thread];
    const char *name = profile_text(p, t->name);
    text_add_printable(out, name[0] ? name : "thread");
    text_format(out, " %d of ", t->tid);
    text_add_printable(out, profile_process_name(p, t->process));
    text_format(out, " %d", p->processes.data[t->process].pid);
}
