/* The model: its life, who ran, and what was counted; see profile.h. */
#include "profile/profile.h"

#include <stdlib.h>
#include <string.h>

#include "profile/index.h"

/* Samples in flight: enough to hide the memory's latency, few enough to stay in the first cache. */
#define BATCH 32

void profile_init(struct profile *p)
{
    memset(p, 0, sizeof *p);
    names_add(&p->strings, "");
    *vector_push(&p->stacks) = (struct profile_stack){.parent = 0, .frame = PROFILE_NONE};
}

void profile_release(struct profile *p)
{
    for (size_t i = 0; i < p->processes.len; i++)
        vector_release(&p->processes.data[i].execs);
    for (size_t i = 0; i < p->series.len; i++)
        vector_release(&p->series.data[i].points);
    vector_release(&p->meta);
    vector_release(&p->modules);
    vector_release(&p->mappings);
    vector_release(&p->functions);
    vector_release(&p->locations);
    vector_release(&p->frames);
    vector_release(&p->stacks);
    vector_release(&p->processes);
    vector_release(&p->threads);
    vector_release(&p->events);
    vector_release(&p->cells);
    samples_release(&p->samples);
    vector_release(&p->spans);
    vector_release(&p->series);
    vector_release(&p->losses);
    vector_release(&p->heaps);
    vector_release(&p->details);
    vector_release(&p->notes);
    vector_release(&p->marks);
    free(p->cell_index.slots);
    free(p->stack_index.slots);
    map_release(&p->frame_index);
    map_release(&p->function_index);
    names_release(&p->strings);
}

uint32_t profile_string(struct profile *p, const char *text)
{
    return text ? names_add(&p->strings, text) : 0;
}

const char *profile_text(const struct profile *p, uint32_t string)
{
    return string < p->strings.len ? p->strings.text[string] : "";
}

const char *profile_meta_get(const struct profile *p, const char *key)
{
    for (size_t i = 0; i < p->meta.len; i++)
        if (!strcmp(profile_text(p, p->meta.data[i].key), key))
            return profile_text(p, p->meta.data[i].value);
    return NULL;
}

void profile_meta_set(struct profile *p, const char *key, const char *value)
{
    uint32_t k = profile_string(p, key), v = profile_string(p, value);
    for (size_t i = 0; i < p->meta.len; i++) {
        if (p->meta.data[i].key == k) {
            p->meta.data[i].value = v;
            return;
        }
    }
    *vector_push(&p->meta) = (struct profile_meta){.key = k, .value = v};
}

uint32_t profile_event_find(const struct profile *p, const char *name)
{
    for (size_t i = 0; i < p->events.len; i++)
        if (!strcmp(profile_text(p, p->events.data[i].name), name))
            return (uint32_t)i;
    return PROFILE_NONE;
}

uint32_t profile_event_add(struct profile *p, const char *name, enum value_unit unit,
                           uint64_t period)
{
    uint32_t found = profile_event_find(p, name);
    if (found != PROFILE_NONE)
        return found;
    uint32_t text = profile_string(p, name);
    *vector_push(&p->events) = (struct profile_event){.name = text, .unit = unit, .period = period};
    return (uint32_t)p->events.len - 1;
}

uint32_t profile_process_add(struct profile *p, int32_t pid, uint32_t parent, uint64_t start)
{
    *vector_push(&p->processes) =
        (struct profile_process){.pid = pid, .parent = parent, .start = start};
    return (uint32_t)p->processes.len - 1;
}

uint32_t profile_thread_add(struct profile *p, uint32_t process, int32_t tid, const char *name,
                            uint64_t start)
{
    uint32_t text = profile_string(p, name);
    *vector_push(&p->threads) =
        (struct profile_thread){.process = process, .tid = tid, .name = text, .start = start};
    return (uint32_t)p->threads.len - 1;
}

static uint64_t cell_hash(uint32_t event, uint32_t thread, uint32_t stack)
{
    return hash_mix((uint64_t)event << 32 | thread, stack);
}

/* The slot of the cell, or the free one where it would go; `hash` is that of its key. */
static size_t cell_slot(const struct profile *p, uint32_t event, uint32_t thread, uint32_t stack,
                        uint64_t hash)
{
    const struct profile_index *index = &p->cell_index;
    size_t at = profile_index_home(index, hash);
    for (uint64_t slot; (slot = index->slots[at]); at = (at + 1) & index->mask) {
        if (!profile_index_may_be(slot, hash))
            continue;
        const struct profile_cell *c = &p->cells.data[profile_index_item(slot)];
        if (c->stack == stack && c->thread == thread && c->event == event)
            break;
    }
    return at;
}

static struct profile_cell *cell_make(struct profile *p, uint32_t event, uint32_t thread,
                                      uint32_t stack, uint64_t hash)
{
    struct profile_index *index = &p->cell_index;
    if (profile_index_is_full(index))
        profile_index_grow(index);
    size_t at = cell_slot(p, event, thread, stack, hash);
    if (!index->slots[at]) {
        profile_index_fill(index, at, hash, p->cells.len);
        *vector_push(&p->cells) =
            (struct profile_cell){.event = event, .thread = thread, .stack = stack};
    }
    return &p->cells.data[profile_index_item(index->slots[at])];
}

uint32_t profile_cell_find(const struct profile *p, uint32_t event, uint32_t thread, uint32_t stack)
{
    if (!p->cell_index.slots)
        return PROFILE_NONE;
    size_t at = cell_slot(p, event, thread, stack, cell_hash(event, thread, stack));
    uint64_t found = p->cell_index.slots[at];
    return found ? profile_index_item(found) : PROFILE_NONE;
}

void profile_count(struct profile *p, uint32_t event, uint32_t thread, uint32_t stack,
                   uint64_t count, uint64_t value)
{
    struct profile_cell *c = cell_make(p, event, thread, stack, cell_hash(event, thread, stack));
    c->count += count;
    c->value += value;
    p->events.data[event].samples += count;
    p->events.data[event].value += value;
}

static void count_batch(struct profile *p, const struct profile_sample *samples, size_t count)
{
    const struct profile_index *index = &p->cell_index;
    uint64_t hash[BATCH];
    for (size_t i = 0; i < count; i++) {
        hash[i] = cell_hash(samples[i].event, samples[i].thread, samples[i].stack);
        if (index->slots)
            __builtin_prefetch(&index->slots[profile_index_home(index, hash[i])]);
    }
    for (size_t i = 0; i < count && index->slots; i++) {
        size_t at = profile_index_home(index, hash[i]);
        while (index->slots[at] && !profile_index_may_be(index->slots[at], hash[i]))
            at = (at + 1) & index->mask;
        if (index->slots[at])
            __builtin_prefetch(&p->cells.data[profile_index_item(index->slots[at])]);
    }
    for (size_t i = 0; i < count; i++) {
        const struct profile_sample *s = &samples[i];
        struct profile_cell *c = cell_make(p, s->event, s->thread, s->stack, hash[i]);
        c->count++;
        c->value += s->value;
        p->events.data[s->event].samples++;
        p->events.data[s->event].value += s->value;
    }
}

void profile_count_samples(struct profile *p, const struct profile_sample *samples, size_t count)
{
    for (size_t i = 0; i < count; i += BATCH)
        count_batch(p, samples + i, count - i < BATCH ? count - i : BATCH);
}

void profile_sample_add(struct profile *p, const struct profile_sample *s)
{
    samples_add(&p->samples, s);
    if (!p->samples_apart) {
        profile_count(p, s->event, s->thread, s->stack, 1, s->value);
        return;
    }
    p->events.data[s->event].samples++;
    p->events.data[s->event].value += s->value;
}

bool profile_is_timed(const struct profile *p, uint32_t event)
{
    uint64_t count = samples_of_event(&p->samples, event);
    return count && count == p->events.data[event].samples;
}

int profile_settle(struct profile *p, struct error *err)
{
    int rc = 0;
    free(p->stack_index.slots);
    p->stack_index = (struct profile_index){0};
    for (uint32_t e = 0; p->samples_apart && e < p->events.len && !rc; e++) {
        struct samples_cursor c;
        struct profile_sample s;
        if (profile_is_timed(p, e))
            continue;
        struct profile_event sums = p->events.data[e];
        samples_begin(&c, &p->samples, e, SAMPLES_ALL);
        while (samples_next(&c, &s))
            profile_count(p, e, s.thread, s.stack, 1, s.value);
        rc = samples_end(&c, err);
        p->events.data[e] = sums;
    }
    return rc;
}

const struct profile_exec *profile_process_program(const struct profile *p, uint32_t process)
{
    uint64_t then = UINT64_MAX;
    for (size_t left = p->processes.len; left > 0 && process < p->processes.len; left--) {
        const struct profile_process *q = &p->processes.data[process];
        for (size_t i = q->execs.len; i-- > 0;)
            if (q->execs.data[i].time <= then || i == 0)
                return &q->execs.data[i];
        then = q->start;
        process = q->parent;
    }
    return NULL;
}

const char *profile_process_name(const struct profile *p, uint32_t process)
{
    const struct profile_exec *program = profile_process_program(p, process);
    return program ? profile_text(p, program->comm) : "?";
}

uint64_t profile_lost(const struct profile *p)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < p->losses.len; i++)
        if (p->losses.data[i].event != PROFILE_NONE || p->losses.data[i].reason != LOSS_RING_FULL)
            sum += p->losses.data[i].count;
    return sum;
}
