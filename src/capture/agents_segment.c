/*
 * Takes records out of the rings, modules out of the table and counts out of the slots of one
 * segment, and hands them to the sink. wire/segment.h draws what is read here.
 */
#include "capture/agents_segment.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/memory.h"

#define SAMPLE_WORDS (sizeof(struct segment_sample) / SEGMENT_WORD_BYTES)
#define CODE_WORDS (sizeof(struct segment_code) / SEGMENT_WORD_BYTES)

/* The stack of a ring's last sample: the next one leaves out what it has in common. */
struct stack_state {
    size_t native, python;
    uint64_t *address; /* SEGMENT_DEPTH words of addresses, then the Python frames'; or NULL */
};

/* What is known of a slot. */
struct slot_state {
    bool open;
    uint32_t generation;
    uint64_t tail, cost; /* as read last */
    struct agents_thread *thread;
    struct stack_state last;
};

struct module_state {
    uint32_t alive;
    uint64_t start, end, since;
};

struct segment_view {
    uint8_t *base;
    struct segment_header header;
    struct segment_layout layout;
    uint32_t modules_version;
    bool modules_read;
    struct slot_state *slots; /* grows to slots_used */
    uint32_t slots_known;
    struct module_state *modules;
    uint64_t *ring; /* a copy of what one ring holds */
    char comm[17], exe[SEGMENT_PATH + 1];
};

struct drain {
    struct segment_view *v;
    struct agents_process *process;
    const struct agents_sink *sink;
    void *context;
    bool last;
};

static void header_copy(struct segment_view *v)
{
    memcpy(&v->header, v->base, sizeof v->header);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    memcpy(v->comm, v->header.comm, sizeof v->header.comm);
    uint32_t len = v->header.exe_len < SEGMENT_PATH ? v->header.exe_len : 0;
    memcpy(v->exe, v->header.exe, len);
    v->exe[len] = 0;
}

int segment_view_new(void *base, size_t size, struct segment_view **out, struct error *err)
{
    struct segment_header h;
    struct segment_layout layout;
    if (size < sizeof h)
        return error_set(err, FAULT_INPUT, "An agent's segment has only %zu bytes", size);
    memcpy(&h, base, sizeof h);
    if (h.magic != SEGMENT_MAGIC || h.version != SEGMENT_VERSION || h.header_size != sizeof h)
        return error_set(err, FAULT_INPUT,
                         "A process has an agent of another version; use the libsonde.so that "
                         "came with this sonde");
    if (!segment_layout(h.slots, h.ring_bytes, h.modules, &layout) || layout.size != h.size ||
        layout.size > size)
        return error_set(err, FAULT_INPUT, "An agent's segment contradicts itself about its size");
    struct segment_view *v = memory_alloc(sizeof *v);
    v->base = base;
    v->layout = layout;
    v->modules = memory_array(h.modules ? h.modules : 1, sizeof *v->modules);
    v->ring = memory_array(h.ring_bytes / sizeof *v->ring, sizeof *v->ring);
    header_copy(v);
    /* The copy just made may differ from the one that was checked. */
    v->header.slots = h.slots;
    v->header.ring_bytes = h.ring_bytes;
    v->header.modules = h.modules;
    *out = v;
    return 0;
}

void segment_view_free(struct segment_view *v)
{
    if (!v)
        return;
    for (uint32_t i = 0; i < v->slots_known; i++) {
        free(v->slots[i].thread);
        free(v->slots[i].last.address);
    }
    free(v->slots);
    free(v->modules);
    free(v->ring);
    free(v);
}

void segment_view_describe(const struct segment_view *v, struct agents_process *p)
{
    if (!p->nesting.pid)
        nesting_init(&p->nesting, p->pid, (pid_t)v->header.pid);
    p->parent = (pid_t)v->header.parent;
    p->start = v->header.start;
    p->interval = v->header.interval;
    p->flags = v->header.flags;
    p->threads_refused = v->header.threads_refused;
    p->python = v->header.python;
    p->python_lines = v->header.python_lines;
    p->python_eval = v->header.python_eval;
    p->python_eval_end = v->header.python_eval_end;
    p->comm = v->comm;
    p->exe = v->exe;
}

void segment_view_set_interval(struct segment_view *v, uint64_t interval)
{
    struct segment_header *h = (struct segment_header *)v->base;
    uint64_t us = interval / 1000;
    __atomic_store_n(&h->wanted, us < UINT32_MAX ? (uint32_t)us : UINT32_MAX, __ATOMIC_RELAXED);
}

void segment_view_hand_over(struct segment_view *v)
{
    struct segment_header *h = (struct segment_header *)v->base;
    __atomic_store_n(&h->handed, 1, __ATOMIC_RELAXED);
}

static bool is_text(const char *text, size_t len)
{
    return memchr(text, 0, len) == NULL;
}

/* A consistent copy of an entry, or false while it is being written. */
static bool module_copy(const struct segment_module *from, struct segment_module *to)
{
    uint32_t before = __atomic_load_n(&from->sequence, __ATOMIC_ACQUIRE);
    memcpy(to, from, sizeof *to);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    uint32_t after = __atomic_load_n(&from->sequence, __ATOMIC_RELAXED);
    return before == after && !(before & 1);
}

static void module_tell(const struct drain *d, struct module_state *known, struct segment_module *m)
{
    if (known->alive == m->alive && known->start == m->start && known->end == m->end &&
        known->since == m->since)
        return;
    *known = (struct module_state){
        .alive = m->alive, .start = m->start, .end = m->end, .since = m->since};
    if (!m->alive)
        return;
    if (m->start >= m->end || m->end > 1ull << 57 || m->path_len >= SEGMENT_PATH ||
        m->build_id_len > SEGMENT_BUILD_ID || !is_text(m->path, m->path_len)) {
        d->process->damaged = true;
        return;
    }
    m->path[m->path_len] = 0;
    struct agents_mapping mapping = {.start = m->start,
                                     .end = m->end,
                                     .bias = m->bias,
                                     .offset = m->offset,
                                     .since = m->since,
                                     .path = m->path,
                                     .build_id = m->build_id,
                                     .build_id_len = m->build_id_len};
    if (d->sink->mapping)
        d->sink->mapping(d->context, d->process, &mapping);
}

static void modules_drain(const struct drain *d)
{
    struct segment_view *v = d->v;
    uint32_t version = v->header.modules_version, used = v->header.modules_used;
    if (v->modules_read && version == v->modules_version)
        return;
    if (used > v->header.modules) {
        d->process->damaged = true;
        return;
    }
    const struct segment_module *table =
        (const struct segment_module *)(v->base + v->layout.modules);
    bool all = true;
    for (uint32_t i = 0; i < used; i++) {
        struct segment_module m;
        if (module_copy(&table[i], &m))
            module_tell(d, &v->modules[i], &m);
        else
            all = false;
    }
    v->modules_read = all;
    v->modules_version = version;
}

/* Moves the outermost `shared` of `before` entries to where they are the outermost of `now`, each
 * of `size` words, and puts the others before them. False if that cannot be. */
static bool stack_renew(uint64_t *to, size_t before, size_t now, size_t shared, size_t size,
                        const uint64_t *inner)
{
    if (shared > before || shared > now)
        return false;
    memmove(to + (now - shared) * size, to + (before - shared) * size, shared * size * sizeof *to);
    memcpy(to, inner, (now - shared) * size * sizeof *to);
    return true;
}

/* From the stack before and what a sample of `words` payload words has of its own. */
static bool stack_next(struct stack_state *k, const struct segment_sample *s, const uint64_t *body,
                       size_t words)
{
    if (s->shared > s->count || s->python_shared > s->python || s->kernel > SEGMENT_KERNEL_DEPTH ||
        SAMPLE_WORDS + s->count - s->shared + 2u * (s->python - s->python_shared) + s->kernel !=
            words)
        return false;
    if (!k->address)
        k->address = memory_array(SEGMENT_DEPTH + 2 * SEGMENT_PYTHON_DEPTH, sizeof *k->address);
    bool sound = stack_renew(k->address, k->native, s->count, s->shared, 1, body) &&
                 stack_renew(k->address + SEGMENT_DEPTH, k->python, s->python, s->python_shared, 2,
                             body + (s->count - s->shared));
    k->native = sound ? s->count : 0;
    k->python = sound ? s->python : 0;
    return sound;
}

/* The record's payload: `words` words from `at` on, of the copied ring. */
static void sample_tell(const struct drain *d, struct slot_state *slot, const uint64_t *payload,
                        size_t words)
{
    struct agents_thread *t = slot->thread;
    struct segment_sample s;
    if (words < SAMPLE_WORDS) {
        d->process->damaged = true;
        return;
    }
    memcpy(&s, payload, sizeof s);
    if (s.count == 0 || s.count > SEGMENT_DEPTH || s.python > SEGMENT_PYTHON_DEPTH ||
        s.interrupted >= s.count || !stack_next(&slot->last, &s, payload + SAMPLE_WORDS, words)) {
        d->process->damaged = true;
        return;
    }
    t->recorded++;
    struct agents_sample sample = {.time = s.time,
                                   .value = s.value,
                                   .address = slot->last.address,
                                   .count = s.count,
                                   .interrupted = s.interrupted,
                                   .reason = s.reason,
                                   .flags = s.flags,
                                   .kernel = payload + words - s.kernel,
                                   .kernel_count = s.kernel,
                                   .python = slot->last.address + SEGMENT_DEPTH,
                                   .python_count = s.python,
                                   .python_whole = s.python_whole};
    if (d->sink->sample)
        d->sink->sample(d->context, d->process, t, &sample);
}

static void code_tell(const struct drain *d, struct agents_thread *t, const uint64_t *payload,
                      size_t words)
{
    struct segment_code c;
    if (words < CODE_WORDS) {
        d->process->damaged = true;
        return;
    }
    memcpy(&c, payload, sizeof c);
    const char *bytes = (const char *)(payload + CODE_WORDS);
    uint64_t size = (uint64_t)c.name + c.path + c.table;
    if (c.name > SEGMENT_TEXT_MAX || c.path > SEGMENT_TEXT_MAX || c.table > SEGMENT_TABLE_MAX ||
        (size + 7) / 8 != words - CODE_WORDS || !is_text(bytes, (size_t)c.name + c.path)) {
        d->process->damaged = true;
        return;
    }
    struct agents_code code = {.code = c.code,
                               .stamp = c.stamp,
                               .first_line = c.first_line,
                               .name = bytes,
                               .path = bytes + c.name,
                               .name_len = c.name,
                               .path_len = c.path,
                               .table = (const uint8_t *)bytes + c.name + c.path,
                               .table_len = c.table};
    if (d->sink->code)
        d->sink->code(d->context, d->process, t, &code);
}

static bool is_committed(uint64_t word, uint64_t at, uint32_t generation, uint64_t head)
{
    uint32_t type = word & 0xff, words = word >> 8 & 0xffff;
    return type && words && word == segment_word(at, generation, type, words) &&
           words <= (head - at) / SEGMENT_WORD_BYTES;
}

static uint64_t record_bytes(uint64_t word)
{
    return (word >> 8 & 0xffff) * SEGMENT_WORD_BYTES;
}

static const uint64_t *ring_at(const struct segment_view *v, uint32_t slot)
{
    return (const uint64_t *)(v->base + v->layout.rings + (uint64_t)slot * v->header.ring_bytes);
}

/* How far the ring is committed. Seeing a commit word before copying what it covers is what makes
 * the copy whole: memcpy promises no order. */
static uint64_t committed_end(const struct segment_view *v, uint32_t slot,
                              const struct slot_state *s, uint64_t head)
{
    const uint64_t *ring = ring_at(v, slot);
    uint64_t mask = v->header.ring_bytes / SEGMENT_WORD_BYTES - 1, at = s->tail;
    while (at < head) {
        uint64_t word = __atomic_load_n(&ring[at / SEGMENT_WORD_BYTES & mask], __ATOMIC_ACQUIRE);
        if (!is_committed(word, at, s->generation, head))
            break;
        at += record_bytes(word);
    }
    return at;
}

/* Bytes [tail, end) of a ring into v->ring, in order. */
static void ring_copy(struct segment_view *v, uint32_t slot, uint64_t tail, uint64_t end)
{
    uint64_t size = v->header.ring_bytes, at = tail & (size - 1), len = end - tail;
    const uint8_t *ring = (const uint8_t *)ring_at(v, slot);
    uint64_t first = len < size - at ? len : size - at;
    memcpy(v->ring, ring + at, first);
    memcpy((uint8_t *)v->ring + first, ring, len - first);
}

/* The records of the copy of [s->tail, end). What is not committed was being written by a thread
 * that is no more (or is forged): the next good record is looked for, word by word. */
static void records_read(const struct drain *d, struct slot_state *s, uint64_t end)
{
    const uint64_t *copy = d->v->ring;
    uint64_t at = s->tail;
    while (at < end) {
        const uint64_t *word = &copy[(at - s->tail) / SEGMENT_WORD_BYTES];
        if (!is_committed(*word, at, s->generation, end)) {
            at += SEGMENT_WORD_BYTES;
            continue;
        }
        size_t words = record_bytes(*word) / SEGMENT_WORD_BYTES - 1;
        if ((*word & 0xff) == SEGMENT_SAMPLE)
            sample_tell(d, s, word + 1, words);
        else if ((*word & 0xff) == SEGMENT_CODE)
            code_tell(d, s->thread, word + 1, words);
        at += record_bytes(*word);
    }
}

static void slot_drain_ring(const struct drain *d, uint32_t index, uint64_t head, bool last)
{
    struct segment_view *v = d->v;
    struct slot_state *s = &v->slots[index];
    if (head < s->tail || head - s->tail > v->header.ring_bytes || head % SEGMENT_WORD_BYTES) {
        d->process->damaged = true;
        s->tail = head & ~(uint64_t)(SEGMENT_WORD_BYTES - 1);
    } else {
        uint64_t end = last ? head : committed_end(v, index, s, head);
        ring_copy(v, index, s->tail, end);
        records_read(d, s, end);
        s->tail = end;
    }
    struct segment_thread *shared = (struct segment_thread *)(v->base + v->layout.slots) + index;
    __atomic_store_n(&shared->tail, s->tail, __ATOMIC_RELEASE);
}

static void slot_open(const struct drain *d, struct slot_state *s, const struct segment_thread *t)
{
    s->open = true;
    s->generation = t->generation;
    s->tail = 0;
    s->thread = memory_alloc(sizeof *s->thread);
    *s->thread = (struct agents_thread){.tid = nesting_here(&d->process->nesting, (pid_t)t->tid),
                                        .start = t->start,
                                        .sampled = t->timer != 0};
    memcpy(s->thread->name, t->name, sizeof t->name);
    s->thread->name[sizeof t->name - 1] = 0;
    if (d->sink->thread)
        d->sink->thread(d->context, d->process, s->thread);
}

static void counts_take(struct agents_thread *t, const struct segment_thread *from)
{
    const struct segment_count *c = &from->count[SEGMENT_SAMPLE - 1];
    /* Between generating and recording a thread may have been killed: that one is lost too. */
    t->generated = c->generated > t->recorded ? c->generated : t->recorded;
    t->lost = t->generated - t->recorded;
    t->value = c->value;
    t->value_lost = c->value_lost < c->value ? c->value_lost : c->value;
    t->cost = from->cost;
    t->sampled = from->timer != 0;
    memcpy(t->name, from->name, sizeof t->name);
    t->name[sizeof t->name - 1] = 0;
}

static void slot_close(const struct drain *d, struct slot_state *s,
                       const struct segment_thread *from)
{
    counts_take(s->thread, from);
    s->thread->end = from->end;
    if (d->sink->thread_end)
        d->sink->thread_end(d->context, d->process, s->thread);
    free(s->thread);
    free(s->last.address);
    *s = (struct slot_state){0};
}

/* Gives the ring's pages back and the slot to the next thread. */
static void slot_free(struct segment_view *v, uint32_t index)
{
    struct segment_thread *shared = (struct segment_thread *)(v->base + v->layout.slots) + index;
    if (v->header.ring_bytes % 4096 == 0)
        madvise(v->base + v->layout.rings + (uint64_t)index * v->header.ring_bytes,
                v->header.ring_bytes, MADV_REMOVE);
    __atomic_store_n(&shared->state, SLOT_FREE, __ATOMIC_RELEASE);
}

static void slot_drain(const struct drain *d, uint32_t index)
{
    struct segment_view *v = d->v;
    struct slot_state *s = &v->slots[index];
    struct segment_thread *shared = (struct segment_thread *)(v->base + v->layout.slots) + index;
    struct segment_thread copy;
    uint32_t state = __atomic_load_n(&shared->state, __ATOMIC_ACQUIRE);
    if (state != SLOT_LIVE && state != SLOT_ENDED && !s->open)
        return;
    memcpy(&copy, shared, sizeof copy);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (!s->open)
        slot_open(d, s, &copy);
    d->process->cost += copy.cost > s->cost ? copy.cost - s->cost : 0;
    s->cost = copy.cost;
    bool over = d->last || state != SLOT_LIVE || copy.generation != s->generation;
    if (copy.generation != s->generation)
        d->process->damaged = true;
    slot_drain_ring(d, index, copy.head, over);
    if (!over && copy.end != s->thread->end) {
        s->thread->end = copy.end;
        if (d->sink->paused)
            d->sink->paused(d->context, d->process, s->thread);
    }
    if (!over)
        return;
    slot_close(d, s, &copy);
    if (!d->last)
        slot_free(v, index);
}

static void slots_drain(const struct drain *d)
{
    struct segment_view *v = d->v;
    uint32_t used = v->header.slots_used;
    if (used > v->header.slots) {
        d->process->damaged = true;
        used = v->header.slots;
    }
    if (used > v->slots_known) {
        v->slots = memory_grow(v->slots, used, sizeof *v->slots);
        memset(v->slots + v->slots_known, 0, (used - v->slots_known) * sizeof *v->slots);
        v->slots_known = used;
    }
    for (uint32_t i = 0; i < v->slots_known; i++)
        slot_drain(d, i);
}

void segment_view_drain(struct segment_view *v, bool last, struct agents_process *p,
                        const struct agents_sink *sink, void *context)
{
    struct drain d = {.v = v, .process = p, .sink = sink, .context = context, .last = last};
    struct segment_header before = v->header;
    header_copy(v);
    v->header.slots = before.slots;
    v->header.ring_bytes = before.ring_bytes;
    v->header.modules = before.modules;
    segment_view_describe(v, p);
    modules_drain(&d);
    slots_drain(&d);
}
