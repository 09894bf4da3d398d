/* Heaps into the recording; see heap.h. */
#include "capture/heap_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "capture/heap_internal.h"
#include "capture/proc.h"
#include "capture/python.h"

#define TICK (50 * 1000000ull)
#define CURVES_MAX 256 /* threads of a process that get a curve of their own */

struct heaps *heaps_new(struct session *s)
{
    static const char *const names[EVENTS] = {"heap:allocated", "heap:live", "heap:peak",
                                              "heap:tree-peak", "heap:temporary"};
    struct heaps *h = memory_alloc(sizeof *h);
    h->session = s;
    for (size_t i = 0; i < EVENTS; i++)
        h->event[i] = writer_event(s->writer, names[i], UNIT_BYTES, 0);
    writer_meta(s->writer, "heap_mode", s->options->heap == HEAP_SAMPLED ? "sampled" : "exact");
    return h;
}

static void image_free(struct heap_image *m)
{
    space_drop(m->space);
    heap_view_free(m->view);
    vector_release(&m->tasks);
    vector_release(&m->seen);
    vector_release(&m->told);
    free(m);
}

void heaps_free(struct heaps *h)
{
    if (!h)
        return;
    vector_release(&h->images);
    vector_release(&h->held);
    free(h);
}

void heaps_on_process(struct heaps *h, struct agents_process *p)
{
    struct heap_image *m = memory_alloc(sizeof *m);
    struct thread *t = tasks_thread(&h->session->tasks, p->pid, p->pid, p->start);
    m->pid = p->pid;
    m->agent = p;
    m->process = t->process->id;
    m->main = t->id;
    m->space = space_new();
    p->user = m;
}

/* A map of our own: the tasks' one is replaced as soon as perf tells of an exec. */
void heaps_on_mapping(struct heaps *h, struct agents_process *p, const struct agents_mapping *m)
{
    struct heap_image *image = p->user;
    struct session *s = h->session;
    if (!image)
        return;
    struct module *module =
        modules_find(&s->modules, p->pid, m->path, m->start, m->end, m->build_id, m->build_id_len);
    image->space = space_with(image->space, module, m->start, m->end, m->offset, NULL);
    if (!s->perf)
        return;
    writer_mapping(s->writer, image->process, module->id, m->start, m->end, m->offset, m->since);
}

void heaps_on_heap(struct heaps *h, struct agents_process *p)
{
    struct heap_image *m = p->user;
    struct error err = {0};
    if (!m || m->view)
        return;
    if (heap_view_new(p->heap, p->heap_size, &m->view, &err)) {
        writer_note(h->session->writer, NOTE_WARNING, err.text);
        return;
    }
    *vector_push(&h->images) = m;
    if (h->level)
        heap_view_set_level(m->view, h->level);
    if (h->pause_new)
        heap_view_pause(m->view, m->paused = true);
}

/* Threads are asked for soon after they begin: later their numbers may belong to others. */
void heap_image_learn(struct heaps *h, struct heap_image *m)
{
    uint32_t count = heap_view_threads(m->view);
    while (m->tasks.len < count) {
        struct heap_who who;
        uint32_t index = (uint32_t)m->tasks.len;
        struct heap_task task = {.id = m->main};
        if (index > 0 && !heap_view_thread(m->view, index, &who))
            return; /* it is just being written */
        if (index > 0) {
            pid_t tid = nesting_here(&m->agent->nesting, who.tid);
            task.id = tasks_thread(&h->session->tasks, m->pid, tid, who.start)->id;
        }
        *vector_push(&m->tasks) = task;
    }
}

static void curve_point(struct heaps *h, struct curve *c, const char *name, uint32_t process,
                        uint32_t thread, uint64_t time, int64_t value)
{
    struct writer *w = h->session->writer;
    if (c->declared && c->last == value)
        return;
    if (!c->declared)
        c->series = writer_series(w, name, UNIT_BYTES, process, thread);
    c->declared = true;
    c->last = value;
    writer_point(w, c->series, time, value);
}

void heap_curve_add(struct heaps *h, struct curve *c, const char *name, const struct heap_image *m,
                    uint64_t time, int64_t value)
{
    curve_point(h, c, name, m->process, WRITER_NONE, time, value);
}

static void sum_by_thread(void *context, const struct heap_sums *s)
{
    struct heap_image *m = context;
    if (m->tasks.len > 0)
        m->tasks.data[s->thread < m->tasks.len ? s->thread : 0].now += (int64_t)s->live;
}

/* Live bytes, of the process and of each thread that asked for them. */
static uint64_t curves_add(struct heaps *h, struct heap_image *m, uint64_t now)
{
    int64_t total = 0;
    heap_image_learn(h, m);
    for (size_t i = 0; i < m->tasks.len; i++)
        m->tasks.data[i].now = 0;
    heap_view_each(m->view, 0, sum_by_thread, m);
    for (size_t i = 0; i < m->tasks.len; i++) {
        struct heap_task *t = &m->tasks.data[i];
        total += t->now;
        if (i > 0 && i < CURVES_MAX && (t->now || t->live.declared))
            curve_point(h, &t->live, "heap", m->process, t->id, now, t->now);
    }
    curve_point(h, &m->live, "heap", m->process, WRITER_NONE, now, total);
    return (uint64_t)total;
}

void heaps_tick(struct heaps *h, uint64_t now)
{
    /* What came after a mark must not be put down as of a time before it. */
    if (now - h->last_tick < TICK || now <= h->marked)
        return;
    h->last_tick = now;
    uint64_t live = 0;
    for (size_t i = 0; i < h->images.len; i++) {
        struct heap_image *m = h->images.data[i];
        uint64_t rss = proc_rss(m->pid);
        live += curves_add(h, m, now);
        if (rss)
            curve_point(h, &m->rss, "rss", m->process, WRITER_NONE, now, (int64_t)rss);
        heap_mapped_tick(h, m, now);
        heap_ledger_tick(h, m, now);
    }
    heap_history_tick(h, now, live);
}

struct writing {
    struct heaps *heaps;
    struct heap_image *image;
    struct heap_summary summary;
    uint64_t live_blocks;
    uint32_t tree_epoch;
    bool in_peak; /* of the tree, as it is now */
};

/* Python frames in the place of the interpreter's; false if the stack has none. *whole, unless
 * NULL, becomes false where code is among them that is not known yet. */
static bool python_stack(struct heaps *h, const struct heap_image *m, uint32_t stack,
                         struct python_stack *k, uint32_t *out, bool *whole)
{
    uint64_t words[2 * HEAP_PYTHON_DEPTH];
    uint32_t frame[HEAP_PYTHON_DEPTH], flags[HEAP_PYTHON_DEPTH];
    struct python_process *python = m->agent->python_user;
    k->python = heap_view_python(m->view, stack, words, &k->python_whole);
    if (!k->python || !python)
        return false;
    for (size_t i = 0; i < k->python; i++) {
        uint64_t place = words[2 * i + 1], stamp = place >> 32 & HEAP_STAMP_MASK;
        flags[i] = (uint32_t)(place >> 60);
        frame[i] = python->gone;
        if (!whole || python_knows(python, words[2 * i], stamp))
            frame[i] = python_frame_stamped(python, words[2 * i], stamp, (int32_t)(uint32_t)place);
        else
            *whole = false;
    }
    k->eval = m->agent->python_eval;
    k->eval_end = m->agent->python_eval_end;
    k->frame = frame;
    k->flags = flags;
    *out = python_stack_of(&h->session->stacks, m->space, k, h->session->options->no_native);
    return true;
}

uint32_t heap_stack_of(struct heaps *h, const struct heap_image *m, uint32_t stack, bool *whole)
{
    uint64_t address[HEAP_DEPTH];
    size_t interrupted;
    bool complete;
    uint32_t made;
    size_t count = heap_view_stack(m->view, stack, address, &interrupted, &complete);
    if (count == 0)
        return 0;
    for (size_t i = 0; whole && i < count; i++)
        *whole = *whole && space_find(m->space, address[i] - 1);
    /* What comes out of here is taken for an instruction, not for a return address. */
    address[0]--;
    struct python_stack k = {
        .native = count, .interrupted = interrupted, .native_whole = complete, .address = address};
    if (python_stack(h, m, stack, &k, &made, whole))
        return made;
    return stacks_of_addresses(&h->session->stacks, m->space, address, count, interrupted,
                               complete);
}

uint32_t heap_image_stack(struct heaps *h, struct heap_image *m, uint32_t stack)
{
    return heap_stack_of(h, m, stack, NULL);
}

uint32_t heap_image_thread(const struct heap_image *m, uint32_t thread)
{
    return thread < m->tasks.len ? m->tasks.data[thread].id : m->main;
}

static void write_sums(void *context, const struct heap_sums *s)
{
    struct writing *w = context;
    struct heaps *h = w->heaps;
    uint32_t stack = heap_image_tell(h, w->image, s);
    uint32_t thread = heap_image_thread(w->image, s->thread);
    w->live_blocks += s->live_blocks;
    if (s->peak)
        writer_sum(h->session->writer, h->event[EVENT_PEAK], thread, stack, 0, s->peak);
    if (s->tree_peak && w->in_peak)
        *vector_push(&h->held) =
            (struct held){.thread = thread, .stack = stack, .bytes = s->tree_peak};
}

void heaps_on_stranger(struct heaps *h, pid_t pid, const char *exe, bool is_static)
{
    char note[400];
    snprintf(note, sizeof note, "the heap of %d %.160s is not in here: it is %s", pid, exe,
             is_static ? "statically linked, so nothing can be brought into it"
                       : "linked with musl, not glibc");
    writer_note(h->session->writer, NOTE_WARNING, note);
}

static void write_loss(struct heaps *h, const struct heap_image *m, const struct heap_summary *s)
{
    struct session *session = h->session;
    if (s->lost) {
        session->lost += s->lost;
        writer_loss(session->writer, LOSS_STOPPED, h->event[EVENT_ALLOCATED], m->main, s->lost);
    }
    if (s->stackless)
        writer_note(session->writer, NOTE_WARNING,
                    "a process has more allocating stacks than its table holds; what the others "
                    "allocated is counted without a stack (see --agent-memory)");
    if (s->lost_by[HEAP_LOST_BLOCKS])
        writer_note(session->writer, NOTE_WARNING,
                    "a process has more live blocks than its table holds; the others are counted "
                    "as lost (see --agent-memory)");
    if (s->mappings_lost)
        writer_note(
            session->writer, NOTE_WARNING,
            "a process has more mappings than its agent keeps; the figures of mapped memory "
            "are too small");
    if (s->damaged)
        writer_note(session->writer, NOTE_WARNING,
                    "a process has overwritten what its agent wrote: its heap may be wrong");
}

/* The process holds nothing any more. What it held counts for the tree's peak only while that is
 * the latest one. */
static void tree_leave(struct heaps *h, struct writing *w)
{
    struct heap_tree *tree = agents_tree(h->session->agents);
    const struct heap_view *view = w->image->view;
    heap_tree_leave(tree, heap_view_told(view));
    __atomic_fetch_sub(&tree->processes, 1, __ATOMIC_RELAXED);
    uint64_t peak = __atomic_load_n(&tree->peak, __ATOMIC_ACQUIRE);
    w->tree_epoch = __atomic_load_n(&tree->epoch, __ATOMIC_ACQUIRE);
    w->in_peak = heap_view_in_peak(view, peak);
    if (peak != h->held_peak)
        h->held.len = 0;
    h->held_peak = peak;
}

static void image_write(struct heaps *h, struct heap_image *m)
{
    struct writing w = {.heaps = h, .image = m};
    uint64_t now = clock_now();
    tree_leave(h, &w);
    curves_add(h, m, now);
    heap_view_summary(m->view, &w.summary);
    heap_view_each(m->view, w.tree_epoch, write_sums, &w);
    heap_history_add(h, m, now, true);
    heap_details_write(h, m);
    heap_mapped_write(h, m);
    const struct heap_summary *s = &w.summary;
    writer_heap(h->session->writer, m->process,
                &(struct writer_heap){.time = now,
                                      .peak = s->peak,
                                      .peak_time = s->peak_time,
                                      .live = s->live,
                                      .live_blocks = w.live_blocks,
                                      .allocations = s->recorded,
                                      .lost = s->lost,
                                      .frees = s->frees,
                                      .unknown_frees = s->unknown_frees});
    write_loss(h, m, s);
}

void heaps_on_process_end(struct heaps *h, struct agents_process *p)
{
    struct heap_image *m = p->user;
    if (!m)
        return;
    if (m->view)
        image_write(h, m);
    h->cost += m->view ? heap_view_cost(m->view) : 0;
    for (size_t i = 0; i < h->images.len; i++)
        if (h->images.data[i] == m) {
            h->images.data[i] = h->images.data[--h->images.len];
            break;
        }
    image_free(m);
    p->user = NULL;
}

static void put_number(struct writer *w, const char *key, uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
    writer_meta(w, key, digits);
}

void heaps_finish(struct heaps *h)
{
    struct session *s = h->session;
    const struct heap_tree *tree = agents_tree(s->agents);
    const struct session_options *o = s->options;
    if (tree->peak == h->held_peak)
        for (size_t i = 0; i < h->held.len; i++)
            writer_sum(s->writer, h->event[EVENT_TREE_PEAK], h->held.data[i].thread,
                       h->held.data[i].stack, 0, h->held.data[i].bytes);
    if (o->heap == HEAP_SAMPLED)
        put_number(s->writer, "heap_interval",
                   o->heap_interval ? o->heap_interval : HEAP_INTERVAL_DEFAULT);
    put_number(s->writer, "heap_tree_peak", tree->peak >> HEAP_TREE_SHIFT);
    put_number(s->writer, "heap_tree_peak_time", tree->peak_time);
}
