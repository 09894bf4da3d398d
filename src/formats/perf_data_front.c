/* Fronts, read ahead; see perf_data_front.h. */
#include "formats/perf_data_front.h"

#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#define SLAB 64                     /* fronts made at a time */
#define SLABS_MAX 256u              /* 64 MB */
#define BATCH 32                    /* read before others are told */
#define AHEAD ((size_t)4 * BATCH)   /* that may wait for the reader */
#define LONG_RECORD 16000           /* bytes */
#define WORTH_A_THREAD (4ull << 20) /* bytes of records */

static void list_add(struct perf_front_list *l, struct perf_front *front)
{
    front->next = NULL;
    *(l->first ? l->end : &l->first) = front;
    l->end = &front->next;
    l->len++;
}

static struct perf_front *list_pop(struct perf_front_list *l)
{
    struct perf_front *front = l->first;
    if (front) {
        l->first = front->next;
        l->len--;
    }
    return front;
}

static void list_append(struct perf_front_list *to, struct perf_front_list *from)
{
    if (!from->first)
        return;
    *(to->first ? to->end : &to->first) = from->first;
    to->end = from->end;
    to->len += from->len;
    *from = (struct perf_front_list){0};
}

static void push(struct perf_front **list, struct perf_front *front)
{
    front->next = *list;
    *list = front;
}

static struct perf_front *pop(struct perf_front **list)
{
    struct perf_front *front = *list;
    if (front)
        *list = front->next;
    return front;
}

static uint32_t record_size(const uint8_t *header)
{
    struct perf_event_header h;
    memcpy(&h, header, sizeof h);
    return h.size;
}

bool perf_front_is_long(const uint8_t *header)
{
    struct perf_event_header h;
    memcpy(&h, header, sizeof h);
    return h.type == PERF_RECORD_SAMPLE && h.size > LONG_RECORD;
}

/* How far from the start of `bytes` the next long record is; less if only its place is known. 0: a
 * record that nobody could read. */
static size_t skip_short(const uint8_t *bytes)
{
    size_t at = 0;
    while (at + sizeof(struct perf_event_header) <= PERF_FRONT && !perf_front_is_long(bytes + at)) {
        uint32_t size = record_size(bytes + at);
        if (size < sizeof(struct perf_event_header))
            return 0;
        at += size;
    }
    return at;
}

/* Reads the next long record's front from *offset on, and moves that behind the record; false at
 * the end, or where the reader had better go on alone. */
static bool read_one(const struct perf_fronts *f, struct perf_front *front, uint64_t *offset)
{
    for (;;) {
        uint64_t from = *offset - PERF_FRONT_BEFORE;
        const uint8_t *record = front->bytes + PERF_FRONT_BEFORE;
        if (*offset >= f->limit || f->limit - *offset < PERF_FRONT ||
            !source_at(f->in, from, front->bytes, sizeof front->bytes))
            return false;
        if (perf_front_is_long(record))
            break;
        size_t skipped = skip_short(record);
        if (!skipped)
            return false;
        *offset += skipped;
    }
    front->offset = *offset;
    front->whole_len = record_size(front->bytes + PERF_FRONT_BEFORE);
    front->ended = false;
    *offset += front->whole_len;
    return true;
}

static bool have_free(struct perf_fronts *f)
{
    if (f->free || f->slabs.len >= SLABS_MAX)
        return f->free != NULL;
    struct perf_front *slab = memory_array(SLAB, sizeof *slab);
    *vector_push(&f->slabs) = slab;
    for (size_t i = 0; i < SLAB; i++)
        push(&f->free, &slab[i]);
    return true;
}

/* Reads a batch; the lock is held before and after. */
static void fill(struct perf_fronts *f)
{
    struct perf_front *unused = NULL, *front;
    struct perf_front_list batch = {0};
    uint64_t offset = f->next;
    bool good = true;
    for (int i = 0; i < BATCH && have_free(f); i++)
        push(&unused, pop(&f->free));
    f->filling = true;
    pthread_mutex_unlock(&f->lock);
    while (good && (front = pop(&unused))) {
        good = read_one(f, front, &offset);
        if (good)
            list_add(&batch, front);
        else
            push(&unused, front);
    }
    pthread_mutex_lock(&f->lock);
    while ((front = pop(&unused)))
        push(&f->free, front);
    list_append(&f->ready, &batch);
    f->next = offset;
    f->over = !good;
    f->filling = false;
    pthread_cond_signal(&f->more);
}

static void *run(void *context)
{
    struct perf_fronts *f = context;
    pthread_mutex_lock(&f->lock);
    while (!f->stop && !f->over)
        if (f->filling || f->ready.len >= AHEAD || !have_free(f))
            pthread_cond_wait(&f->room, &f->lock);
        else
            fill(f);
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

void perf_fronts_start(struct perf_fronts *f, struct source *in, uint64_t offset, uint64_t limit)
{
    cpu_set_t cpus;
    sigset_t none, before;
    if (f->started || offset < PERF_FRONT_BEFORE)
        return;
    f->started = true;
    f->in = in;
    f->next = offset;
    f->limit = limit;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->more, NULL);
    pthread_cond_init(&f->room, NULL);
    CPU_ZERO(&cpus);
    if (limit - offset < WORTH_A_THREAD || sched_getaffinity(0, sizeof cpus, &cpus) ||
        CPU_COUNT(&cpus) < 2)
        return;
    sigfillset(&none);
    pthread_sigmask(SIG_BLOCK, &none, &before);
    f->threaded = !pthread_create(&f->thread, NULL, run, f);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Takes over what was read, or reads itself if nobody does. */
static void refill(struct perf_fronts *f, uint64_t offset)
{
    struct perf_front *front;
    pthread_mutex_lock(&f->lock);
    while ((front = pop(&f->freed)))
        push(&f->free, front);
    while (!f->ready.len && !f->over && (f->filling || have_free(f))) {
        if (f->filling) {
            pthread_cond_wait(&f->more, &f->lock);
            continue;
        }
        f->next = f->next < offset ? offset : f->next;
        fill(f);
    }
    list_append(&f->mine, &f->ready);
    pthread_cond_signal(&f->room);
    pthread_mutex_unlock(&f->lock);
}

const struct perf_front *perf_front_peek(struct perf_fronts *f, uint64_t offset)
{
    while (f->started) {
        while (f->mine.first && f->mine.first->offset < offset)
            perf_front_free(f, list_pop(&f->mine));
        if (f->mine.first)
            return f->mine.first->offset == offset ? f->mine.first : NULL;
        refill(f, offset);
        if (!f->mine.first)
            break;
    }
    return NULL;
}

struct perf_front *perf_front_take(struct perf_fronts *f, uint64_t offset)
{
    return perf_front_peek(f, offset) ? list_pop(&f->mine) : NULL;
}

void perf_front_free(struct perf_fronts *f, struct perf_front *front)
{
    if (front)
        push(&f->freed, front);
}

void perf_fronts_release(struct perf_fronts *f)
{
    if (!f->started)
        return;
    pthread_mutex_lock(&f->lock);
    f->stop = true;
    pthread_cond_signal(&f->room);
    pthread_mutex_unlock(&f->lock);
    if (f->threaded)
        pthread_join(f->thread, NULL);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->more);
    pthread_cond_destroy(&f->room);
    for (size_t i = 0; i < f->slabs.len; i++)
        free(f->slabs.data[i]);
    vector_release(&f->slabs);
    *f = (struct perf_fronts){0};
}
