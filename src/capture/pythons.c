/* See pythons.h. */
#include "capture/pythons.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "capture/inside.h"
#include "capture/interpreter.h"
#include "capture/pause.h"
#include "capture/proc.h"
#include "capture/python_files.h"
#include "capture/session_internal.h"
#include "cpython/cpython.h"

#define MS 1000000ull
#define RETRY (MS / 2)   /* an interpreter may still be on its way into a process; twice as long */
#define TRIES 14         /* each time, and not for ever */
#define NAMES (250 * MS) /* how often threads are asked for their names, if there are new ones */
#define RENAMES (8 * NAMES)
#define DI 5 /* of UNWIND_PERF_MASK's registers: the first argument of a system call */

/* One process. */
struct entry {
    struct interpreter *interpreter; /* or NULL */
    uint64_t tried;
    unsigned tries;
    bool refused;
    clockid_t clock;  /* of its CPU time, 0: not known */
    uint64_t charged; /* of that, by samples so far; 0: there were none */
};

/* What was read for a sample that is still in the ring. */
struct snapshot {
    enum interpreter_answer answer;
    bool copied; /* by the kernel, at the sample itself */
    bool late, whole, gil, for_gil;
    pid_t holder;
    uint64_t cpu;
    size_t count, holder_count;
    uint64_t loop, loop_end;
    struct paused *paused; /* or NULL: where the thread was stopped, which is where this was read */
    uint32_t words[];      /* frames, flags; the holder's frames */
};

struct pythons {
    struct interpreter_modules modules;
    struct map by_pid;    /* -> struct entry */
    struct map planned;   /* thread -> a sum of what the kernel was told of it */
    struct map snapshots; /* tid and time -> struct snapshot */
    uint64_t copied, read, rejected, late;
    struct pauses pauses;
    uint64_t named;
    size_t threads_named,
        threads_before; /* how many there were when names were asked, and before */
};

struct pythons *pythons_new(void)
{
    return memory_alloc(sizeof(struct pythons));
}

static void snapshot_free(struct snapshot *k)
{
    if (k)
        free(k->paused);
    free(k);
}

static void entry_free(struct entry *e)
{
    interpreter_free(e->interpreter);
    free(e);
}

void pythons_free(struct pythons *p)
{
    if (!p)
        return;
    for (size_t i = 0; p->by_pid.len && i <= p->by_pid.mask; i++)
        if (p->by_pid.slots[i].used)
            entry_free((struct entry *)(uintptr_t)p->by_pid.slots[i].value);
    for (size_t i = 0; p->snapshots.len && i <= p->snapshots.mask; i++)
        if (p->snapshots.slots[i].used)
            snapshot_free((struct snapshot *)(uintptr_t)p->snapshots.slots[i].value);
    pauses_release(&p->pauses);
    map_release(&p->by_pid);
    map_release(&p->planned);
    map_release(&p->snapshots);
    interpreter_modules_release(&p->modules);
    free(p);
}

static struct entry *entry_of(struct pythons *p, pid_t pid)
{
    bool added;
    uint64_t *at = map_put(&p->by_pid, (uint64_t)pid, 0, 0, &added);
    if (added)
        *at = (uint64_t)(uintptr_t)memory_alloc(sizeof(struct entry));
    return (struct entry *)(uintptr_t)*at;
}

/* In what is known to be mapped; or in what is, where that is not known yet. */
static struct interpreter *open_in(struct session *s, pid_t pid, int *fault)
{
    struct pythons *p = s->pythons;
    const struct process *process = tasks_find(&s->tasks, pid);
    struct interpreter *found = NULL;
    *fault = 0;
    if (process)
        found = interpreter_open(&p->modules, s->writer, &s->modules, pid, process->space, fault);
    if (found || *fault || !s->perf)
        return found;
    struct space *space = python_files_mapped(&s->modules, pid, perf_ability(s->perf)->build_ids);
    if (space)
        found = interpreter_open(&p->modules, s->writer, &s->modules, pid, space, fault);
    space_drop(space);
    return found;
}

/* While it starts, it cannot be told from one that is damaged. */
static bool is_final(const struct entry *e, int fault)
{
    return fault && (e->tries == TRIES || fault == CPYTHON_FREE_THREADED ||
                     fault == CPYTHON_TOO_OLD || fault == CPYTHON_TOO_NEW);
}

/* At once: also if it was not there a moment ago. */
static struct interpreter *interpreter_of(struct session *s, pid_t pid, uint64_t now, bool at_once)
{
    struct entry *e = entry_of(s->pythons, pid);
    int fault;
    if (e->interpreter || e->refused || e->tries >= TRIES ||
        (e->tries && !at_once && now - e->tried < RETRY << e->tries))
        return e->interpreter;
    e->tried = now;
    e->tries++;
    e->interpreter = open_in(s, pid, &fault);
    if (e->interpreter && s->perf && !inside_samples(s, pid))
        perf_tell(s->perf, pid);
    if (is_final(e, fault)) {
        char note[200];
        e->refused = true;
        snprintf(note, sizeof note, "process %d has no Python frames: its Python %.120s", pid,
                 cpython_fault_text(fault));
        writer_note(s->writer, NOTE_WARNING, note);
    }
    return e->interpreter;
}

void pythons_on_map(struct session *s, pid_t pid, const char *path)
{
    const uint64_t *at = s->pythons ? map_get(&s->pythons->by_pid, (uint64_t)pid, 0) : NULL;
    struct entry *e = at ? (struct entry *)(uintptr_t)*at : NULL;
    if (e && !e->interpreter && !e->refused && python_files_is_one(path))
        e->tries = 0;
}

/* It may be known already what the process runs since: the word of an exec comes late. */
void pythons_forget(struct session *s, pid_t pid, uint64_t time)
{
    struct pythons *p = s->pythons;
    const uint64_t *at = p ? map_get(&p->by_pid, (uint64_t)pid, 0) : NULL;
    struct entry *e = at ? (struct entry *)(uintptr_t)*at : NULL;
    if (!e || e->tried > time)
        return;
    entry_free(e);
    map_remove(&p->by_pid, (uint64_t)pid, 0);
}

/* Who holds what the thread is about to wait for, and where it stands. */
static void read_holder(struct interpreter *i, const struct perf_record *r, struct snapshot *made,
                        struct interpreter_stack *out)
{
    *out = (struct interpreter_stack){0};
    if (!r->regs || r->regs_len <= DI)
        return;
    made->for_gil = interpreter_is_lock(i, r->regs[DI]);
    made->holder = made->for_gil ? interpreter_holder(i) : interpreter_mutex_holder(i, r->regs[DI]);
    if (made->holder == r->tid)
        made->holder = 0;
    if (made->holder && interpreter_walk(i, made->holder, out) != INTERPRETER_READ)
        made->holder = 0;
}

/* The thread does not go on meanwhile; if it cannot be stopped, as it runs. */
static enum interpreter_answer walk_paused(struct pauses *p, struct interpreter *i,
                                           const struct perf_record *r,
                                           struct interpreter_stack *out, struct paused **copy)
{
    struct borrowed b;
    uint64_t since;
    if (!pause_begin(p, &b, r->pid, r->tid, &since))
        return interpreter_walk(i, r->tid, out);
    enum interpreter_answer answer = interpreter_walk(i, r->tid, out);
    *copy = pause_copy(&b, r);
    pause_end(p, &b, since);
    return answer;
}

static uint64_t cpu_of(struct session *s, pid_t pid)
{
    struct entry *e = entry_of(s->pythons, pid);
    struct timespec t;
    if (!e->clock && clock_getcpuclockid(pid, &e->clock))
        e->clock = 0;
    if (!e->clock || clock_gettime(e->clock, &t))
        return 0;
    return (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
}

uint64_t pythons_weigh(struct session *s, pid_t pid, uint64_t cpu, uint64_t period)
{
    const uint64_t *at = map_get(&s->pythons->by_pid, (uint64_t)pid, 0);
    if (!at)
        return period;
    struct entry *e = (struct entry *)(uintptr_t)*at;
    if (!cpu) { /* nobody interrupted it: the next that is begins anew */
        e->charged = 0;
        return period;
    }
    if (!e->charged)
        e->charged = cpu > period ? cpu - period : 1;
    /* The count grows in steps of the kernel's tick: a fourth of the difference is made good. */
    int64_t one = (int64_t)period, owed = (int64_t)(cpu - e->charged);
    int64_t weight = one + (owed - one) / 4;
    weight = weight < one / 4 ? one / 4 : weight > 2 * one ? 2 * one : weight;
    e->charged += (uint64_t)weight;
    return (uint64_t)weight;
}

/* From now on the kernel copies the thread's frames at each sample; NULL if it does not. */
static struct frame_copies *plan(struct session *s, struct interpreter *i, pid_t tid,
                                 struct frame_plan *plan)
{
    if (s->options->gil || s->options->pause || !interpreter_plan(i, tid, plan))
        return NULL;
    struct frame_copies *copies = perf_copies(s->perf);
    if (!copies)
        return NULL;
    uint64_t *known = map_put(&s->pythons->planned, (uint64_t)tid, 0, 0, NULL);
    if (*known != plan->state + plan->tasks)
        frame_copies_plan(copies, tid, plan);
    *known = plan->state + plan->tasks;
    return copies;
}

/* What the kernel copied for the sample, if it did. */
static bool walk_copy(struct session *s, struct interpreter *i, const struct perf_record *r,
                      struct snapshot *head, struct interpreter_stack *out)
{
    struct frame_plan how;
    struct frame_copies *copies = plan(s, i, r->tid, &how);
    struct frame_copy *copy = copies ? frame_copies_take(copies, r->tid, r->time) : NULL;
    if (!copy)
        return false;
    head->answer = interpreter_walk_copy(i, copy, out);
    head->cpu = copy->news || copy->tasks_at ? cpu_of(s, r->pid) : 0;
    head->copied = true;
    frame_copies_know(copies, copy, &how);
    free(copy);
    return true;
}

static void walk_now(struct session *s, struct interpreter *i, const struct perf_record *r,
                     bool blocks, struct snapshot *head, struct interpreter_stack *out)
{
    head->late = !blocks && clock_now() - r->time > INTERPRETER_LATE; /* who blocks waits for us */
    head->cpu = blocks ? 0 : cpu_of(s, r->pid);
    head->answer = blocks || !s->options->pause
                       ? interpreter_walk(i, r->tid, out)
                       : walk_paused(&s->pythons->pauses, i, r, out, &head->paused);
}

bool pythons_expect(struct session *s, pid_t pid, pid_t tid)
{
    struct interpreter *i = interpreter_of(s, pid, clock_now(), false);
    struct frame_plan how;
    return i && plan(s, i, tid, &how);
}

static void keep_snapshot(struct session *s, const struct interpreter *i,
                          const struct perf_record *r, const struct snapshot *head,
                          const struct interpreter_stack *own, const uint32_t *holder)
{
    size_t count = head->answer == INTERPRETER_READ ? own->count : 0, held = head->holder_count;
    struct snapshot *made = memory_alloc(sizeof *made + (2 * count + held) * sizeof *made->words);
    *made = *head;
    made->count = count;
    made->whole = own->whole;
    made->gil = own->gil;
    interpreter_loop(i, &made->loop, &made->loop_end);
    memcpy(made->words, own->frame, count * sizeof *made->words);
    memcpy(made->words + count, own->flags, count * sizeof *made->words);
    if (held)
        memcpy(made->words + 2 * count, holder, held * sizeof *made->words);
    bool added;
    uint64_t *at = map_put(&s->pythons->snapshots, (uint64_t)r->tid, r->time, 0, &added);
    if (!added)
        snapshot_free((struct snapshot *)(uintptr_t)*at);
    *at = (uint64_t)(uintptr_t)made;
}

static void take_snapshot(struct session *s, struct interpreter *i, const struct perf_record *r,
                          bool blocks)
{
    struct interpreter_stack own, holder = {0};
    struct snapshot head = {0};
    if (blocks && s->options->waiting)
        read_holder(i, r, &head, &holder);
    head.holder_count = head.holder ? holder.count : 0;
    uint32_t *kept =
        memory_array(head.holder_count + 1, sizeof *kept); /* the next walk writes over it */
    memcpy(kept, holder.frame ? holder.frame : kept, head.holder_count * sizeof *kept);
    if (blocks || !walk_copy(s, i, r, &head, &own))
        walk_now(s, i, r, blocks, &head, &own);
    keep_snapshot(s, i, r, &head, &own, kept);
    free(kept);
}

/* Of a sample that was thought to be the agent's when it came. */
static void take_copy(struct session *s, const struct perf_record *r)
{
    struct interpreter *i = interpreter_of(s, r->pid, clock_now(), false);
    struct interpreter_stack own;
    struct snapshot head = {0};
    if (i && walk_copy(s, i, r, &head, &own))
        keep_snapshot(s, i, r, &head, &own, NULL);
}

static void on_news(void *context, const struct perf_record *r)
{
    struct session *s = context;
    int event = r->kind == PERF_SAMPLE ? perf_event_of(s->perf, r->id) : -1;
    if (event < 0 || r->pid <= 0 || inside_covers(s, (size_t)event, r->pid, r->tid, r->time))
        return;
    uint64_t now = clock_now();
    struct interpreter *i = interpreter_of(s, r->pid, now, false);
    if (i)
        take_snapshot(s, i, r, event == PERF_EVENTS_MAX);
}

void pythons_scan(struct session *s)
{
    if (s->pythons)
        pause_settle(&s->pythons->pauses);
    if (s->pythons && s->perf)
        perf_scan(s->perf, on_news, s);
}

/* More calls of the loop than the kernel saw, or far fewer: not the same moment. */
static bool fits(const struct snapshot *k, const uint64_t *address, size_t native, bool whole)
{
    size_t loops = 0, entries = 0;
    for (size_t i = 0; i < native; i++)
        loops += address[i] - (i > 0) - k->loop < k->loop_end - k->loop;
    for (size_t i = 0; i < k->count; i++)
        entries += (k->words[k->count + i] & CPYTHON_FRAME_ENTRY) != 0;
    return !whole || !k->whole || loops == entries || loops == entries + 1;
}

static uint32_t merged(struct session *s, const struct thread *t, const struct snapshot *k,
                       const struct stacks_walk *walk)
{
    struct python_stack stack = {.eval = k->loop,
                                 .eval_end = k->loop_end,
                                 .native = walk->count,
                                 .interrupted = walk->interrupted,
                                 .native_whole = walk->whole,
                                 .python_whole = k->whole,
                                 .python = k->count,
                                 .address = s->stacks.address,
                                 .frame = (uint32_t *)(uintptr_t)k->words,
                                 .flags = (uint32_t *)(uintptr_t)k->words + k->count};
    return python_stack_of(&s->stacks, t->process->space, &stack, s->options->no_native);
}

static uint32_t holder_stack(struct session *s, const struct snapshot *k)
{
    uint32_t stack = 0;
    for (size_t i = k->holder_count; i > 0; i--)
        stack = writer_stack(s->writer, stack, k->words[2 * k->count + i - 1]);
    return stack;
}

static void describe(struct session *s, const struct snapshot *k, struct pythons_sample *out)
{
    out->read = k->answer != INTERPRETER_REJECTED && !k->late;
    out->cpu = k->cpu;
    out->gil = k->gil;
    out->for_gil = k->for_gil;
    out->holder = k->holder_count ? k->holder : 0;
    out->holder_stack = out->holder ? holder_stack(s, k) : 0;
}

/* Whether the snapshot can be used with what the kernel copied. */
static bool is_good(const struct snapshot *k, const struct stacks_walk *walk,
                    const uint64_t *address)
{
    return k && k->answer == INTERPRETER_READ && !k->late &&
           fits(k, address, walk->count, walk->whole);
}

static struct snapshot *snapshot_of(const struct pythons *p, const struct perf_record *r)
{
    const uint64_t *at = map_get(&p->snapshots, (uint64_t)r->tid, r->time);
    return at ? (struct snapshot *)(uintptr_t)*at : NULL;
}

/* What was read for the sample, taken out; NULL if nothing was. Who blocks stands still: it may be
 * that now it can be read where it could not before. */
static struct snapshot *snapshot_take(struct session *s, const struct perf_record *r, bool blocks,
                                      const struct stacks_walk *walk)
{
    struct pythons *p = s->pythons;
    struct snapshot *k = snapshot_of(p, r);
    if (blocks && !is_good(k, walk, s->stacks.address)) {
        uint64_t now = clock_now();
        struct interpreter *i = interpreter_of(s, r->pid, now, true);
        if (i)
            take_snapshot(s, i, r, true);
        k = snapshot_of(p, r);
    }
    if (!blocks && !k && s->agents) {
        take_copy(s, r);
        k = snapshot_of(p, r);
    }
    if (k)
        map_remove(&p->snapshots, (uint64_t)r->tid, r->time);
    return k;
}

static void account(struct pythons *p, const struct snapshot *k, bool good)
{
    if (k->answer == INTERPRETER_NONE)
        return;
    p->read++;
    p->copied += k->copied;
    p->late += k->late;
    p->rejected += !k->late && !good;
}

uint32_t pythons_stack(struct session *s, struct thread *t, const struct perf_record *r,
                       bool blocks, struct pythons_sample *out)
{
    const struct space *space = t->process->space;
    struct stacks_walk walk = {0};
    uint32_t stack = 0;
    const struct snapshot *stopped =
        s->pythons && s->options->pause ? snapshot_of(s->pythons, r) : NULL;
    if (stopped && stopped->paused)
        r = &stopped->paused->record;
    bool walked = stacks_walk(&s->stacks, space, r, &walk);
    struct snapshot *k = s->pythons ? snapshot_take(s, r, blocks, &walk) : NULL;
    bool good = walked && is_good(k, &walk, s->stacks.address);
    *out = (struct pythons_sample){0};
    if (good)
        stack = merged(s, t, k, &walk);
    else if (walked)
        stack = stacks_of_addresses(&s->stacks, space, s->stacks.address, walk.count,
                                    walk.interrupted, walk.whole);
    if (k) {
        account(s->pythons, k, good);
        describe(s, k, out);
    }
    stack = stacks_add_kernel(&s->stacks, stack, r->chain, r->chain_len);
    snapshot_free(k); /* last: the record may be its own */
    return stack;
}

struct naming {
    struct session *session;
    pid_t pid;
    uint64_t now;
};

static void on_name(void *context, pid_t tid, const char *name)
{
    struct naming *n = context;
    tasks_on_python_name(&n->session->tasks, n->pid, tid, name);
}

void pythons_tick(struct session *s, uint64_t now)
{
    struct pythons *p = s->pythons;
    if (!p || now - p->named < NAMES ||
        (p->threads_named == s->tasks.all_threads && now - p->named < RENAMES))
        return;
    p->named = now;
    /* A new one may not have its name yet: all are asked twice. */
    p->threads_named = p->threads_before;
    p->threads_before = s->tasks.all_threads;
    VECTOR(pid_t) pids = {0};
    const struct map *m = &s->tasks.by_pid;
    for (size_t i = 0; m->len && i <= m->mask; i++)
        if (m->slots[i].used)
            *vector_push(&pids) = ((const struct process *)(uintptr_t)m->slots[i].value)->pid;
    for (size_t i = 0; i < pids.len; i++) {
        struct naming n = {.session = s, .pid = pids.data[i], .now = now};
        struct interpreter *found = interpreter_of(s, n.pid, now, false);
        if (found)
            interpreter_names(found, on_name, &n);
    }
    vector_release(&pids);
}

static void note_pauses(struct session *s, const struct pauses *p)
{
    char note[240];
    if (!(p->count + p->missed))
        return;
    snprintf(note, sizeof note,
             "threads were stopped for %llu samples, %llu us at the longest and %llu ms in all; "
             "%llu stops were longer than 2 ms, %llu did not come about",
             (unsigned long long)p->count, (unsigned long long)(p->longest / 1000),
             (unsigned long long)(p->sum / MS), (unsigned long long)p->over,
             (unsigned long long)p->missed);
    writer_note(s->writer, NOTE_INFO, note);
}

void pythons_finish(struct session *s)
{
    const struct pythons *p = s->pythons;
    if (p)
        note_pauses(s, &p->pauses);
    /* Where agents are, what they cannot see is little. */
    if (!p || !p->read || (s->agents && !(p->copied + p->rejected + p->late)))
        return;
    char note[300];
    snprintf(note, sizeof note,
             "%llu Python stacks were read from outside, %s: %llu by the kernel at the sample "
             "itself, the others right after; %llu were rejected since the process had moved on, "
             "%llu came too late: those samples show the interpreter's own frames",
             (unsigned long long)p->read,
             s->agents ? "where no agent did" : "with nothing put into the processes",
             (unsigned long long)p->copied, (unsigned long long)p->rejected,
             (unsigned long long)p->late);
    writer_note(s->writer, NOTE_INFO, note);
}
