/* See trace.h. */
#include "capture/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "capture/heap.h"
#include "capture/trace_internal.h"

#define WORDS_A_CALL 2
#define WORDS_AT_ONCE 65536             /* copied from a ring */
#define WORDS_IN_ALL ((size_t)24 << 20) /* kept of all processes together: 192 MB */

struct traces *traces_new(struct session *s)
{
    struct traces *t = memory_alloc(sizeof *t);
    t->session = s;
    return t;
}

static void thread_free(struct trace_thread *t)
{
    if (!t)
        return;
    if (t->pen.piece)
        t->pen.piece->pen = NULL;
    trace_tree_release(&t->tree);
    free(t);
}

static void image_free(struct trace_image *m)
{
    for (size_t i = 0; i < m->slot.len; i++)
        thread_free(m->slot.data[i]);
    vector_release(&m->slot);
    vector_release(&m->seen);
    vector_release(&m->functions);
    vector_release(&m->line_sets);
    trace_keep_release(&m->keep);
    space_drop(m->space);
    free(m);
}

void traces_free(struct traces *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->images.len; i++)
        image_free(t->images.data[i]);
    vector_release(&t->images);
    free(t);
}

static struct trace_image *image_of(struct traces *t, struct agents_process *p)
{
    if (p->trace_user)
        return p->trace_user;
    struct trace_image *m = memory_alloc(sizeof *m);
    struct thread *main = tasks_thread(&t->session->tasks, p->pid, p->pid, p->start);
    m->all = t;
    m->pid = p->pid;
    m->agent = p;
    m->process = main->process->id;
    m->main = main->id;
    m->python = p->python_user;
    m->space = space_new();
    p->trace_user = m;
    *vector_push(&t->images) = m;
    return m;
}

/* A map of our own, as the heap's. */
void traces_on_mapping(struct traces *t, struct agents_process *p, const struct agents_mapping *m)
{
    struct trace_image *image = image_of(t, p);
    struct session *s = t->session;
    struct module *module =
        modules_find(&s->modules, p->pid, m->path, m->start, m->end, m->build_id, m->build_id_len);
    image->space = space_with(image->space, module, m->start, m->end, m->offset, NULL);
}

void traces_on_trace(struct traces *t, struct agents_process *p)
{
    struct trace_image *m = image_of(t, p);
    struct trace_header h;
    if (m->base || p->trace_size < sizeof h)
        return;
    memcpy(&h, p->trace, sizeof h);
    if (h.magic != TRACE_MAGIC || h.version != TRACE_VERSION || h.header_size != sizeof h ||
        !trace_layout(h.slots, h.ring_words, h.names_size, h.lines, &m->layout) ||
        m->layout.size != h.size || h.size > p->trace_size || h.clock >= TRACE_CLOCKS) {
        writer_note(t->session->writer, NOTE_WARNING,
                    "a process's trace contradicts itself and was left out");
        return;
    }
    m->slots = h.slots;
    m->ring_words = h.ring_words;
    m->names_size = h.names_size;
    m->lines = h.lines;
    m->clock = h.clock;
    m->keep.max = t->session->options->trace_entries * WORDS_A_CALL;
    m->shortest = t->session->options->trace_min;
    m->base = p->trace;
    if (!t->clock.rate)
        trace_clock_start(&t->clock);
}

static struct trace_thread *thread_new(struct trace_image *m, const struct trace_slot *s)
{
    struct trace_thread *t = memory_alloc(sizeof *t);
    pid_t tid = nesting_here(&m->agent->nesting, (pid_t)s->tid);
    t->id = tasks_thread(&m->all->session->tasks, m->pid, tid, s->start)->id;
    t->generation = s->generation;
    t->ticks = s->first;
    trace_tree_init(&t->tree);
    return t;
}

static inline void step(struct trace_image *m, struct trace_thread *t, enum trace_word kind,
                        uint32_t id)
{
    trace_keep_step(&m->keep, &t->pen, &t->tree, t->id, kind, id, t->time);
}

/* Calls whose ends were lost end here as well, and short ones are forgotten. */
static void leave_with_care(struct trace_image *m, struct trace_thread *t, uint32_t id)
{
    struct trace_tree *tree = &t->tree;
    uint64_t shortest = m->shortest;
    for (size_t n = 1; (n = trace_tree_next_end(tree, id)) != TRACE_NONE;) {
        struct trace_open o = tree->open.data[tree->open.len - 1 - n];
        trace_tree_end(tree, n, t->time);
        if (n || t->time - o.begin >= shortest || !trace_keep_forget(&t->pen, o.id))
            step(m, t, TRACE_LEAVE, (uint32_t)n);
        if (o.id == id)
            break;
    }
}

static inline void leave(struct trace_image *m, struct trace_thread *t, uint32_t id)
{
    if (m->shortest || !trace_tree_leave(&t->tree, id, t->time))
        leave_with_care(m, t, id);
    else
        step(m, t, TRACE_LEAVE, 0);
}

static inline bool is_span(const struct trace_image *m, uint32_t id)
{
    return id >= m->functions.len || m->functions.data[id].kind == TRACE_NAME_SPAN;
}

/* After a loss nobody knows what is open. */
static void on_lost(struct trace_image *m, struct trace_thread *t, uint64_t count)
{
    t->lost += count;
    while (t->tree.open.len)
        trace_tree_end(&t->tree, 0, t->time);
    step(m, t, TRACE_LOST, count < TRACE_IDS ? (uint32_t)count : TRACE_IDS - 1);
}

static inline void on_word(struct trace_image *m, struct trace_thread *t, uint64_t word,
                           uint64_t next)
{
    uint32_t id = trace_id(word);
    t->ticks += trace_ticks(word);
    uint64_t now = m->clock == TRACE_TSC ? trace_clock_ns(&m->all->clock, t->ticks) : t->ticks;
    t->time = now > t->time ? now : t->time;
    switch (trace_kind(word)) {
    case TRACE_ENTER:
        step(m, t, TRACE_ENTER, id);
        trace_tree_enter(&t->tree, id, is_span(m, id), t->time);
        break;
    case TRACE_LEAVE:
        leave(m, t, id);
        break;
    case TRACE_MARK:
        if (m->all->session->heaps)
            t->time = heaps_mark(m->all->session->heaps, t->time);
        step(m, t, TRACE_MARK, id);
        break;
    case TRACE_VALUE:
        if (trace_function_of(m, id)->kind == TRACE_NAME_COUNTER)
            writer_point(m->all->session->writer, trace_function_of(m, id)->series, t->time,
                         (int64_t)next);
        break;
    case TRACE_GAP:
        t->ticks += next;
        break;
    case TRACE_LOST:
        on_lost(m, t, next);
        break;
    default:
        m->damaged = true;
    }
}

static bool has_operand(uint64_t word)
{
    enum trace_word kind = trace_kind(word);
    return kind == TRACE_VALUE || kind == TRACE_GAP || kind == TRACE_LOST;
}

/* The words from t->tail to `head`, copied before they are looked at. */
static void words_read(struct trace_image *m, struct trace_thread *t, uint32_t slot, uint64_t head)
{
    static uint64_t copy[WORDS_AT_ONCE];
    const uint64_t *ring =
        (const uint64_t *)(m->base + m->layout.rings) + (uint64_t)slot * m->ring_words;
    while (t->tail < head) {
        uint64_t at = t->tail & (m->ring_words - 1), count = head - t->tail;
        count = count > WORDS_AT_ONCE ? WORDS_AT_ONCE : count;
        uint64_t first = m->ring_words - at < count ? m->ring_words - at : count;
        memcpy(copy, ring + at, first * sizeof *copy);
        memcpy(copy + first, ring, (count - first) * sizeof *copy);
        uint64_t i = 0;
        while (i < count) {
            bool two = has_operand(copy[i]);
            if (two && i + 1 == count)
                break;
            on_word(m, t, copy[i], two ? copy[i + 1] : 0);
            i += two ? 2 : 1;
        }
        if (!i)
            break; /* half of a pair: the other half comes */
        t->words += i;
        t->tail += i;
        struct trace_slot *s = (struct trace_slot *)(uintptr_t)(m->base + m->layout.slots) + slot;
        __atomic_store_n(&s->tail, t->tail, __ATOMIC_RELEASE);
    }
}

static void thread_end(struct trace_image *m, uint32_t slot, const struct trace_slot *s)
{
    struct trace_thread *t = m->slot.data[slot];
    struct traces *all = m->all;
    uint64_t lost = s->lost > t->lost ? s->lost : t->lost;
    while (t->tree.open.len) {
        trace_tree_end(&t->tree, 0, t->time);
        step(m, t, TRACE_LEAVE, 0);
    }
    trace_write_tree(m, t);
    if (lost) {
        writer_loss(all->session->writer, LOSS_RING_FULL,
                    all->has_calls ? all->calls_event : WRITER_NONE, t->id, lost);
        all->lost += lost;
    }
    thread_free(t);
    m->slot.data[slot] = NULL;
}

static uint32_t slots_used(const struct trace_image *m)
{
    const struct trace_header *h = (const struct trace_header *)m->base;
    uint32_t used = __atomic_load_n(&h->slots_used, __ATOMIC_ACQUIRE);
    return used > m->slots ? m->slots : used;
}

void traces_see(struct traces *t)
{
    for (size_t i = 0; i < t->images.len; i++) {
        struct trace_image *m = t->images.data[i];
        m->seen.len = 0;
        if (!m->base)
            continue;
        uint32_t used = slots_used(m);
        const struct trace_slot *slot = (const struct trace_slot *)(m->base + m->layout.slots);
        for (uint32_t k = 0; k < used; k++)
            *vector_push(&m->seen) = __atomic_load_n(&slot[k].head, __ATOMIC_ACQUIRE);
    }
}

/* What was there when traces_see looked, of what is there between `tail` and `head`. */
static uint64_t seen_of(const struct trace_image *m, uint32_t slot, uint64_t tail, uint64_t head)
{
    uint64_t seen = slot < m->seen.len ? m->seen.data[slot] : tail;
    return seen < tail ? tail : seen < head ? seen : head;
}

static void slot_drain(struct trace_image *m, uint32_t slot, bool last)
{
    struct trace_slot *shared = (struct trace_slot *)(uintptr_t)(m->base + m->layout.slots) + slot;
    struct trace_slot copy;
    uint32_t state = __atomic_load_n(&shared->state, __ATOMIC_ACQUIRE);
    if (state != SLOT_LIVE && state != SLOT_ENDED)
        return;
    uint64_t head = __atomic_load_n(&shared->head, __ATOMIC_ACQUIRE), all = head;
    memcpy(&copy, shared, sizeof copy);
    trace_names_read(m); /* after `head`: words up to there have names by now */
    if (!m->slot.data[slot])
        m->slot.data[slot] = thread_new(m, &copy);
    struct trace_thread *t = m->slot.data[slot];
    if (head < t->tail || head - t->tail > m->ring_words || copy.generation != t->generation) {
        m->damaged = true;
        t->tail = head;
    }
    if (!last)
        head = seen_of(m, slot, t->tail, head);
    words_read(m, t, slot, head);
    if (!last && (state != SLOT_ENDED || head < all))
        return;
    thread_end(m, slot, &copy);
    if (!last)
        __atomic_store_n(&shared->state, SLOT_FREE, __ATOMIC_RELEASE);
}

static void image_drain(struct trace_image *m, bool last)
{
    uint32_t used = slots_used(m);
    while (m->slot.len < used)
        *vector_push(&m->slot) = NULL;
    for (uint32_t i = 0; i < used; i++)
        slot_drain(m, i, last);
    if (!m->keep.max)
        trace_keep_flush(&m->keep, m->all->session->writer, trace_frame_of, m);
}

/* The process that holds most gives way, when all together hold too much. */
static void keep_bounds(struct traces *t)
{
    size_t sum = 0;
    struct trace_image *most = NULL;
    for (size_t i = 0; i < t->images.len; i++) {
        struct trace_image *m = t->images.data[i];
        sum += m->keep.held;
        if (!most || m->keep.held > most->keep.held)
            most = m;
    }
    if (sum > WORDS_IN_ALL && most && most->keep.max)
        most->keep.max = most->keep.held / 2;
}

bool traces_active(const struct traces *t)
{
    for (size_t i = 0; i < t->images.len; i++)
        if (t->images.data[i]->base)
            return true;
    return false;
}

void traces_tick(struct traces *t)
{
    if (!traces_active(t))
        return;
    trace_clock_compare(&t->clock);
    for (size_t i = 0; i < t->images.len; i++)
        if (t->images.data[i]->base)
            image_drain(t->images.data[i], false);
    keep_bounds(t);
}

static void image_end(struct traces *t, struct trace_image *m)
{
    const struct trace_header *h = (const struct trace_header *)m->base;
    image_drain(m, true);
    trace_write_lines(m);
    t->dropped += m->keep.dropped;
    trace_keep_write(&m->keep, t->session->writer, trace_frame_of, m);
    t->flags |= h->flags;
    t->refused += h->threads_refused;
    t->damaged = t->damaged || m->damaged;
}

void traces_on_process_end(struct traces *t, struct agents_process *p)
{
    struct trace_image *m = p->trace_user;
    if (!m)
        return;
    trace_clock_compare(&t->clock);
    if (m->base)
        image_end(t, m);
    for (size_t i = 0; i < t->images.len; i++)
        if (t->images.data[i] == m)
            t->images.data[i] = t->images.data[--t->images.len];
    image_free(m);
    p->trace_user = NULL;
}

static const struct {
    uint32_t flag;
    const char *text;
} remarks[] = {
    {TRACE_HOOK_TAKEN, "a program set a profile hook of its own: calls meanwhile are not in the "
                       "trace of that thread"},
    {TRACE_HOOK_REFUSED, "an interpreter did not take the hook: its calls are not traced"},
    {TRACE_NAMES_FULL, "more functions were called than names can be kept: some have none"},
    {TRACE_LINES_FULL, "more lines were to be counted than there is room for"},
    {TRACE_LINES_TAKEN,
     "a program set a trace hook inside a function whose lines are counted: lines "
     "of that call from there on are missing"},
    {TRACE_DEEP, "Python functions called each other so deeply that the stack was used up: while "
                 "they did, other threads' calls, and lines, are missing"},
    {TRACE_THREADS_UNSEEN,
     "threads that C code started were seen late: the program has another hook for its frames"},
};

void traces_finish(struct traces *t)
{
    struct writer *w = t->session->writer;
    char note[200];
    for (size_t i = 0; i < sizeof remarks / sizeof *remarks; i++)
        if (t->flags & remarks[i].flag)
            writer_note(w, NOTE_WARNING, remarks[i].text);
    if (t->dropped) {
        snprintf(note, sizeof note,
                 "the timeline holds the latest calls: %" PRIu64 " earlier ones are in the sums "
                 "alone; --trace-entries keeps more",
                 t->dropped);
        writer_note(w, NOTE_INFO, note);
    }
    if (t->folded) {
        snprintf(note, sizeof note,
                 "%" PRIu64 " calls were charged to their callers: the tree of calls is too large",
                 t->folded);
        writer_note(w, NOTE_WARNING, note);
    }
    if (t->damaged)
        writer_note(w, NOTE_WARNING, "a process's trace was damaged; parts of it are missing");
    if (t->refused)
        writer_note(w, NOTE_WARNING, "some threads found no place in the trace");
}
