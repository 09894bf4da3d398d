/*
 * Lists of samples, packed; see samples.h. In a chunk each sample is three numbers, each
 * the difference to the sample before it in the chunk (zero before the first):
 *
 *     signed time | signed stack | signed value
 */
#include "profile/samples.h"

#include <stdlib.h>
#include <string.h>

#include "wire/codec.h"

#define OPEN_BUDGET ((size_t)8 << 20) /* bytes in open chunks, of all lists together */
#define CHUNK_MAX ((size_t)16 << 10)
#define CHUNK_MIN ((size_t)256)
#define PACKED_MAX ((size_t)3 * VARINT_MAX)

void samples_release(struct samples *s)
{
    for (size_t i = 0; i < s->lists.len; i++) {
        vector_release(&s->lists.data[i].chunks);
        vector_release(&s->lists.data[i].open);
    }
    for (size_t i = 0; i < s->events.len; i++)
        vector_release(&s->events.data[i].lists);
    vector_release(&s->lists);
    vector_release(&s->events);
    aside_release(&s->aside);
    s->len = 0;
}

uint64_t samples_of_event(const struct samples *s, uint32_t event)
{
    return event < s->events.len ? s->events.data[event].count : 0;
}

static const struct samples_list *find_list(const struct samples *s, uint32_t event,
                                            uint32_t thread)
{
    const struct samples_event *e = &s->events.data[event];
    uint32_t list = thread < e->lists.len ? e->lists.data[thread] : 0;
    return list ? &s->lists.data[list - 1] : NULL;
}

static struct samples_list *list_for(struct samples *s, uint32_t event, uint32_t thread)
{
    while (s->events.len <= event)
        *vector_push(&s->events) = (struct samples_event){0};
    struct samples_event *e = &s->events.data[event];
    while (e->lists.len <= thread)
        *vector_push(&e->lists) = 0;
    if (!e->lists.data[thread]) {
        *vector_push(&s->lists) = (struct samples_list){.event = event, .thread = thread};
        e->lists.data[thread] = (uint32_t)s->lists.len;
    }
    return &s->lists.data[e->lists.data[thread] - 1];
}

/* With many lists each gets less, so that all together stay within the budget. */
static size_t chunk_size(const struct samples *s)
{
    size_t size = OPEN_BUDGET / s->lists.len;
    return size > CHUNK_MAX ? CHUNK_MAX : size < CHUNK_MIN ? CHUNK_MIN : size;
}

static void seal(struct samples *s, struct samples_list *l, size_t size)
{
    uint64_t at = aside_add(&s->aside, l->open.data, l->open.len);
    *vector_push(&l->chunks) = (struct samples_chunk){at, (uint32_t)l->open.len, l->opened};
    l->opened = 0;
    l->open.len = 0;
    l->last = (struct profile_sample){0};
    if (l->open.cap > size * 2)
        vector_release(&l->open);
}

static size_t put_difference(uint8_t *p, uint64_t now, uint64_t before)
{
    return varint_put(p, zigzag((int64_t)(now - before)));
}

void samples_add(struct samples *s, const struct profile_sample *sample)
{
    struct samples_list *l = list_for(s, sample->event, sample->thread);
    size_t size = chunk_size(s);
    if (l->opened && l->open.len + PACKED_MAX > size)
        seal(s, l, size);
    vector_reserve(&l->open, l->open.len + PACKED_MAX);
    uint8_t *p = l->open.data + l->open.len, *start = p;
    p += put_difference(p, sample->time, l->last.time);
    p += put_difference(p, sample->stack, l->last.stack);
    p += put_difference(p, sample->value, l->last.value);
    l->open.len += (size_t)(p - start);
    l->last = *sample;
    l->opened++;
    if (sample->time < l->latest)
        l->disordered = true;
    else
        l->latest = sample->time;
    l->count++;
    s->events.data[sample->event].count++;
    s->len++;
}

/* The bytes of the run's next chunk; false at the end of the list. */
static bool load_chunk(struct samples_cursor *c, struct samples_run *r)
{
    const struct samples_list *l = r->list;
    size_t chunk = r->chunk++;
    bool open = chunk == l->chunks.len;
    if (chunk > l->chunks.len || (open && !l->opened))
        return false;
    r->len = open ? l->open.len : l->chunks.data[chunk].len;
    r->at = 0;
    r->now = (struct profile_sample){.event = l->event, .thread = l->thread};
    if (r->cap < r->len) {
        r->bytes = memory_grow(r->bytes, r->len, 1);
        r->cap = r->len;
    }
    if (open)
        memcpy(r->bytes, l->open.data, r->len);
    else if (!aside_read(&c->from->aside, l->chunks.data[chunk].at, r->bytes, r->len))
        c->failed = true;
    return !c->failed;
}

static bool unpack(struct samples_cursor *c, struct samples_run *r)
{
    if (r->at == r->len && !load_chunk(c, r))
        return false;
    struct cursor in = cursor_make(r->bytes + r->at, r->len - r->at);
    r->now.time += (uint64_t)cursor_signed(&in);
    r->now.stack += (uint32_t)cursor_signed(&in);
    r->now.value += (uint64_t)cursor_signed(&in);
    r->at = r->len - cursor_left(&in);
    return true;
}

static int compare_times(const void *a, const void *b)
{
    const struct profile_sample *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->stack < y->stack ? -1 : x->stack > y->stack;
}

/* Recorders write a thread's samples as they come; who does not has memory taken for it. */
static void sort_list(struct samples_cursor *c, struct samples_run *r)
{
    size_t n = 0;
    struct profile_sample *all = memory_array(r->list->count + 1, sizeof *all);
    while (n < r->list->count && unpack(c, r))
        all[n++] = r->now;
    qsort(all, n, sizeof *all, compare_times);
    r->sorted = all;
}

/* On to the next sample of the run; false at its end. */
static bool advance(struct samples_cursor *c, struct samples_run *r)
{
    if (!r->list->disordered)
        return unpack(c, r);
    if (!r->sorted)
        sort_list(c, r);
    if (c->failed || r->sorted_at == r->list->count)
        return false;
    r->now = r->sorted[r->sorted_at++];
    return true;
}

static bool is_before(const struct samples_run *a, const struct samples_run *b)
{
    if (a->now.time != b->now.time)
        return a->now.time < b->now.time;
    return a->now.event != b->now.event ? a->now.event < b->now.event
                                        : a->now.thread < b->now.thread;
}

static void sift_down(struct samples_cursor *c, size_t at)
{
    struct samples_run **runs = c->runs.data, *moving = runs[at];
    for (size_t child; (child = at * 2 + 1) < c->runs.len; at = child) {
        if (child + 1 < c->runs.len && is_before(runs[child + 1], runs[child]))
            child++;
        if (!is_before(runs[child], moving))
            break;
        runs[at] = runs[child];
    }
    runs[at] = moving;
}

static void release_run(struct samples_run *r)
{
    free(r->bytes);
    free(r->sorted);
    free(r);
}

static void add_run(struct samples_cursor *c, const struct samples_list *l)
{
    if (!l)
        return;
    struct samples_run *run = memory_alloc(sizeof *run);
    run->list = l;
    if (advance(c, run))
        *vector_push(&c->runs) = run;
    else
        release_run(run);
}

void samples_begin(struct samples_cursor *c, const struct samples *s, uint32_t event,
                   uint32_t thread)
{
    *c = (struct samples_cursor){.from = s};
    uint32_t from = event == SAMPLES_ALL ? 0 : event;
    uint32_t to = event == SAMPLES_ALL ? (uint32_t)s->events.len : event + 1;
    for (uint32_t e = from; e < to && e < s->events.len; e++) {
        size_t threads = s->events.data[e].lists.len;
        for (uint32_t t = 0; thread == SAMPLES_ALL && t < threads; t++)
            add_run(c, find_list(s, e, t));
        if (thread != SAMPLES_ALL)
            add_run(c, find_list(s, e, thread));
    }
    for (size_t i = c->runs.len / 2; i-- > 0;)
        sift_down(c, i);
}

bool samples_next(struct samples_cursor *c, struct profile_sample *out)
{
    if (!c->runs.len)
        return false;
    struct samples_run *first = c->runs.data[0];
    *out = first->now;
    if (!advance(c, first)) {
        release_run(first);
        c->runs.data[0] = c->runs.data[--c->runs.len];
    }
    if (c->runs.len > 1)
        sift_down(c, 0);
    return true;
}

int samples_end(struct samples_cursor *c, struct error *err)
{
    for (size_t i = 0; i < c->runs.len; i++)
        release_run(c->runs.data[i]);
    vector_release(&c->runs);
    if (c->failed)
        return error_set(err, FAULT_SYSTEM,
                         "cannot read back samples that were put aside in the folder for temporary "
                         "files: set TMPDIR to another one");
    return 0;
}
