/* The segment of a trace, the places of its threads, and words that do not fit at once. */
#include "agent/trace.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "agent/native_calls.h"
#include "agent/publish.h"
#include "agent/session.h"

#define WAIT_STEP 200000 /* ns */
#define WAIT_STEPS 500   /* a tenth of a second in all */

struct trace_settings trace_settings;
struct trace_process *trace_process;

static pthread_key_t end_key;
static bool has_key;

static const uint32_t slot_choices[] = {TRACE_SLOTS, 64, 8};

void trace_declare(uint32_t flag)
{
    struct trace_process *p = trace_process;
    struct trace_header *h = p ? __atomic_load_n(&p->segment, __ATOMIC_ACQUIRE) : NULL;
    if (h)
        __atomic_fetch_or(&h->flags, flag, __ATOMIC_RELAXED);
}

struct shape {
    struct trace_layout layout;
    uint32_t slots;
};

static void header_fill(void *at, const void *context)
{
    const struct shape *shape = context;
    struct trace_header *h = at;
    h->header_size = sizeof *h;
    h->size = shape->layout.size;
    h->slots = shape->slots;
    h->ring_words = trace_process->ring_words;
    h->names_size = TRACE_NAMES;
    h->lines = TRACE_LINES;
    h->pid = (uint32_t)raw0(SYS_getpid);
    h->clock = trace_settings.tsc ? TRACE_TSC : TRACE_NANOSECONDS;
    h->version = TRACE_VERSION;
    __atomic_store_n(&h->magic, TRACE_MAGIC, __ATOMIC_RELEASE);
}

/* 0, or a negative errno; -EAGAIN: later. */
static int segment_make(void)
{
    struct trace_process *p = trace_process;
    uint64_t limit = publish_file_limit();
    p->ring_words = trace_settings.ring;
    for (size_t i = 0; i < sizeof slot_choices / sizeof *slot_choices; i++) {
        struct shape shape = {.slots = slot_choices[i]};
        void *at;
        if (!trace_layout(shape.slots, p->ring_words, TRACE_NAMES, TRACE_LINES, &shape.layout) ||
            shape.layout.size > limit)
            continue;
        int result = offer_make(SESSION_TRACE, shape.layout.size, header_fill, &shape, &at);
        if (result == -ENOMEM)
            continue;
        p->layout = shape.layout;
        if (result == 0)
            __atomic_store_n(&p->segment, at, __ATOMIC_RELEASE);
        return result;
    }
    return -ENOMEM;
}

static void slots_used_raise(struct trace_header *h, uint32_t used)
{
    uint32_t now = __atomic_load_n(&h->slots_used, __ATOMIC_RELAXED);
    while (now < used && !__atomic_compare_exchange_n(&h->slots_used, &now, used, true,
                                                      __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

static void place_fill(struct trace_thread *t, struct trace_slot *s, uint32_t index)
{
    struct trace_process *p = trace_process;
    s->generation++;
    s->tid = (uint32_t)raw0(SYS_gettid);
    s->start = agent_now();
    s->end = s->head = s->lost = 0;
    s->first = t->last = trace_now();
    __atomic_store_n(&s->tail, 0, __ATOMIC_RELAXED);
    if (t->native)
        t->native->count = 0; /* what the thread before left open */
    *t = (struct trace_thread){.last = s->first,
                               .native = t->native,
                               .slot = s,
                               .mask = p->ring_words - 1,
                               .limit = p->ring_words - TRACE_RESERVE};
    __atomic_store_n(&t->ring,
                     (uint64_t *)((char *)p->segment + p->layout.rings) +
                         (uint64_t)index * p->ring_words,
                     __ATOMIC_RELEASE);
    slots_used_raise(p->segment, index + 1);
    __atomic_store_n(&s->state, SLOT_LIVE, __ATOMIC_RELEASE);
    __atomic_store_n(&t->self, &agent_self, __ATOMIC_RELEASE);
}

static struct trace_thread *place_claim(void)
{
    struct trace_process *p = trace_process;
    struct trace_slot *slots = (struct trace_slot *)((char *)p->segment + p->layout.slots);
    for (uint32_t i = 0; i < p->segment->slots && i < TRACE_SLOTS; i++) {
        struct trace_slot *s = &slots[i];
        struct trace_thread *t = &p->thread[i];
        uint64_t *none = NULL;
        /* The private half is taken first, by a word that no ring has. */
        if (__atomic_load_n(&s->state, __ATOMIC_ACQUIRE) != SLOT_FREE ||
            !__atomic_compare_exchange_n(&t->ring, &none, (uint64_t *)1, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED))
            continue;
        if (__atomic_load_n(&s->state, __ATOMIC_ACQUIRE) == SLOT_FREE) {
            place_fill(t, s, i);
            return t;
        }
        __atomic_store_n(&t->ring, NULL, __ATOMIC_RELEASE);
    }
    __atomic_fetch_add(&p->segment->threads_refused, 1, __ATOMIC_RELAXED);
    return NULL;
}

struct trace_thread *trace_enter(void)
{
    if (!trace_process || agent_quiet)
        return NULL;
    int saved = errno;
    agent_self.trace = NULL;
    if (offer_phase(&trace_process->offer, segment_make, SESSION_NO_TRACE) == AGENT_RUNNING) {
        agent_self.trace = place_claim();
        if (agent_self.trace && has_key)
            pthread_setspecific(end_key, agent_self.trace);
    }
    errno = saved;
    return agent_self.trace;
}

static void on_thread_end(void *value)
{
    struct trace_thread *t = value;
    if (trace_own() != t)
        return; /* forked since, or the session is over */
    agent_self.trace = NULL;
    t->self = NULL;
    t->slot->lost += t->lost;
    t->slot->end = agent_now();
    __atomic_store_n(&t->slot->state, SLOT_ENDED, __ATOMIC_RELEASE);
    __atomic_store_n(&t->ring, NULL, __ATOMIC_RELEASE);
}

/* Whether there is room again; `limit` is set anew. */
static bool has_room(struct trace_thread *t)
{
    uint64_t tail = __atomic_load_n(&t->slot->tail, __ATOMIC_ACQUIRE);
    if (tail > t->head)
        return false; /* not the collector's doing */
    t->limit = tail + t->mask + 1 - TRACE_RESERVE;
    return t->head < t->limit;
}

/* For the collector to come; in vain only once, until it does. */
static bool wait_until(struct trace_thread *t, bool (*holds)(struct trace_thread *))
{
    if (t->impatient || agent_quiet)
        return false;
    for (int i = 0; i < WAIT_STEPS; i++) {
        struct timespec step = {.tv_nsec = WAIT_STEP};
        raw2(SYS_nanosleep, &step, NULL);
        if (holds(t))
            return true;
    }
    t->impatient = true;
    return false;
}

static bool wait_for_room(struct trace_thread *t)
{
    if (has_room(t)) {
        t->impatient = false;
        return true;
    }
    return wait_until(t, has_room);
}

static bool is_read(struct trace_thread *t)
{
    return __atomic_load_n(&t->slot->tail, __ATOMIC_ACQUIRE) >= t->head;
}

void trace_await(struct trace_thread *t)
{
    int saved = errno;
    if (!is_read(t))
        wait_until(t, is_read);
    errno = saved;
}

static void put(struct trace_thread *t, uint64_t word)
{
    t->ring[t->head++ & t->mask] = word;
}

/* The reserve has room for all of these. */
static void put_what_came_before(struct trace_thread *t, uint64_t now)
{
    if (t->lost) {
        put(t, trace_pack(TRACE_LOST, 0, 0));
        put(t, t->lost);
        t->slot->lost += t->lost;
        t->lost = 0;
    }
    if (now - t->last > TRACE_DELTA_MAX) {
        put(t, trace_pack(TRACE_GAP, 0, 0));
        put(t, now - t->last);
        t->last = now;
    }
}

void trace_put_slowly(struct trace_thread *t, enum trace_word kind, uint32_t id, uint64_t now)
{
    if (!wait_for_room(t)) {
        t->lost++;
        return;
    }
    put_what_came_before(t, now);
    put(t, trace_pack(kind, id, now - t->last));
    t->last = now;
    __atomic_store_n(&t->slot->head, t->head, __ATOMIC_RELEASE);
}

void trace_put_value(struct trace_thread *t, uint32_t id, int64_t value)
{
    uint64_t now = trace_now();
    if (!wait_for_room(t)) {
        t->lost++;
        return;
    }
    put_what_came_before(t, now);
    put(t, trace_pack(TRACE_VALUE, id, now - t->last));
    put(t, (uint64_t)value);
    t->last = now;
    __atomic_store_n(&t->slot->head, t->head, __ATOMIC_RELEASE);
}

void trace_stop(void)
{
    struct trace_process *p = trace_process;
    if (!p || !p->segment)
        return;
    for (uint32_t i = 0; i < TRACE_SLOTS; i++) {
        struct trace_thread *t = &p->thread[i];
        if (!t->ring)
            continue;
        t->slot->lost += t->lost;
        t->slot->end = agent_now();
        __atomic_store_n(&t->slot->state, SLOT_ENDED, __ATOMIC_RELEASE);
        t->lines = NULL;
        t->self = NULL;
        __atomic_store_n(&t->ring, NULL, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&p->offer.phase, AGENT_OFF, __ATOMIC_RELEASE);
}

/* A session after another one: what belonged to that goes. */
static void forget(struct trace_process *p)
{
    struct trace_header *h = p->segment;
    __atomic_store_n(&p->segment, NULL, __ATOMIC_RELEASE);
    if (h)
        raw2(SYS_munmap, h, p->layout.size);
    trace_names_forget();
    p->offer.tries = 0;
    __atomic_store_n(&p->offer.phase, AGENT_ABSENT, __ATOMIC_RELEASE);
}

bool trace_start(void)
{
    if (trace_process && trace_process->offer.phase == AGENT_OFF)
        forget(trace_process);
    size_t size = (sizeof *trace_process + 4095) & ~4095ul;
    if (trace_process || !trace_settings.on || !trace_names_init())
        return trace_process != NULL;
    has_key = pthread_key_create(&end_key, on_thread_end) == 0;
    struct trace_process *p = publish_map_wiped(size);
    __atomic_store_n(&trace_process, p, __ATOMIC_RELEASE);
    return p != NULL;
}
