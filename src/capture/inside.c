/* Sampling from inside the target; see inside.h. */
#include "capture/inside.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/memory.h"
#include "base/text.h"
#include "capture/beside.h"
#include "capture/heap.h"
#include "capture/inject.h"
#include "capture/python.h"
#include "capture/queue.h"
#include "capture/session_internal.h"
#include "capture/trace.h"
#include "capture/trace_clock.h"
#include "unwind/walk.h"

#define RING_PYTHON (1u << 19) /* recursion makes long samples */
#define SETTLED 500000000ull   /* ns of a process's life: see hand_over */
#define LOOK 250000000ull      /* ns between two looks at what is new in it ... */
#define NEWS 16                /* ... which is much, if there is some in one sample of so many */

/* Since when, and until when, the agent samples a thread; the kernel's samples of it are dropped.
 */
struct cover {
    pid_t pid;
    uint64_t from, to;
    bool in_part;                   /* the process has threads that are not sampled */
    bool muted;                     /* see inside_mute */
    bool handed;                    /* see hand_over */
    bool told;                      /* ... and the agent knows */
    bool settled;                   /* see look */
    uint64_t looked, samples, news; /* when, and how many there were of them */
};

struct inside {
    struct queue queue;
    struct map covers; /* tid -> struct cover */
    size_t event;      /* among the options': the one that is sampled from inside */
    uint64_t gone;     /* frames of Python code that was not to be had */
};

static int find_library(char *out, size_t size, struct error *err)
{
    return beside_find("agent", "libsonde.so", out, size, err);
}

/* Nothing can be preloaded into a program that asks for no loader, and little done with a libc that
 * is not glibc. */
enum kinship { KIN, STATIC, OTHER_LIBC };

static enum kinship kinship_of(const char *path)
{
    Elf64_Ehdr e;
    bool is_elf = false, has_loader = false, musl = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return KIN;
    if (io_pread(fd, &e, sizeof e, 0) == sizeof e && !memcmp(e.e_ident, ELFMAG, SELFMAG) &&
        e.e_phentsize == sizeof(Elf64_Phdr)) {
        is_elf = true;
        for (unsigned i = 0; i < e.e_phnum && !has_loader; i++) {
            Elf64_Phdr p;
            if (io_pread(fd, &p, sizeof p, e.e_phoff + i * sizeof p) != sizeof p)
                break;
            char loader[PATH_MAX] = "";
            has_loader = p.p_type == PT_INTERP;
            if (has_loader && p.p_filesz < sizeof loader &&
                io_pread(fd, loader, p.p_filesz, p.p_offset) > 0)
                musl = strstr(loader, "/ld-musl-") != NULL;
        }
    }
    close(fd);
    return !is_elf ? KIN : !has_loader ? STATIC : musl ? OTHER_LIBC : KIN;
}

/* What the agents are to do: sample every process, or those with Python beside perf, or none. */
static int start_agents(struct session *s, bool sampling, bool python, struct error *err)
{
    char library[PATH_MAX];
    int rc = find_library(library, sizeof library, err);
    if (rc)
        return rc;
    if (s->options->launch) /* who is attached to must not keep more than it had */
        modules_share(&s->modules, s->options->heap != HEAP_OFF ? library : NULL);
    const struct perf_options *p = &s->options->perf;
    const struct event *e = &p->event[s->inside->event];
    uint64_t rate = e->by_rate || !e->period ? p->rate : 1000000000u / e->period;
    struct agents_options o = {.library = library,
                               .preload = getenv("LD_PRELOAD"),
                               .rows = s->modules.cache,
                               .pack = s->modules.pack_fd,
                               .rate = !sampling && !python ? 0 : (uint32_t)(rate ? rate : 1),
                               .ring_bytes = RING_PYTHON,
                               .python_only = python,
                               .single = p->threads_only,
                               .heap = s->options->heap,
                               .heap_interval = s->options->heap_interval,
                               .heap_memory = s->options->agent_memory,
                               .pymalloc = s->options->pymalloc};
    struct agents_trace trace;
    if (s->options->trace) {
        trace = *s->options->trace;
        trace.tsc = trace_clock_usable();
        o.trace = &trace;
    }
    rc = agents_new(&o, &s->agents, err);
    if (rc == 0 && o.trace && !s->traces)
        s->traces = traces_new(s);
    if (rc == 0 && o.heap != HEAP_OFF && !s->heaps)
        s->heaps = heaps_new(s);
    return rc;
}

static bool traces_calls(const struct session *s)
{
    const struct agents_trace *t = s->options->trace;
    return t && (t->calls || t->lines);
}

/* Beside perf. Without the library there are no Python frames, which is no failure. */
static int open_beside(struct session *s, struct error *err)
{
    const struct perf_options *p = &s->options->perf;
    bool heap = s->options->heap != HEAP_OFF;
    while (s->inside->event < p->events && !p->event[s->inside->event].timed)
        s->inside->event++;
    bool trace = traces_calls(s);
    /* Who is there anyway samples Python better than anyone from outside. */
    bool python = !s->options->no_python && s->inside->event < p->events &&
                  (!s->options->python_outside || heap || trace);
    if (!heap && !python && !trace)
        return 0;
    int rc = start_agents(s, false, python, err);
    if (!rc || heap || trace)
        return rc;
    char note[300];
    snprintf(note, sizeof note, "Python is seen from outside only: %.200s", err->text);
    writer_note(s->writer, NOTE_INFO, note);
    *err = (struct error){0};
    return 0;
}

int inside_open(struct session *s, bool sampling, struct error *err)
{
    char program[PATH_MAX];
    const struct perf_options *p = &s->options->perf;
    if (sampling && (p->events != 1 || !p->event[0].timed))
        return error_set(err, FAULT_SYSTEM,
                         "only the event cpu can be sampled without perf events");
    bool needed = sampling || s->options->heap != HEAP_OFF;
    enum kinship kinship = KIN;
    if (needed && launch_find(s->options->launch->argv[0], program, sizeof program))
        kinship = kinship_of(program);
    if (kinship != KIN)
        return error_set(err, FAULT_SYSTEM,
                         "%s is %s, so it can only be recorded with perf events, and not its heap",
                         program,
                         kinship == STATIC ? "statically linked" : "linked with musl, not glibc");
    s->inside = memory_alloc(sizeof *s->inside);
    return sampling ? start_agents(s, true, false, err) : open_beside(s, err);
}

/* The agents' environment as lines, without what only a loader reads. */
static void settings_text(const struct session *s, struct text *out)
{
    for (const char *const *v = agents_environment(s->agents); *v; v++)
        if (!text_starts(*v, "LD_")) {
            text_add(out, *v);
            text_add_char(out, '\n');
        }
}

int inside_open_late(struct session *s, struct error *err)
{
    if (s->options->heap == HEAP_OFF)
        return 0;
    s->inside = memory_alloc(sizeof *s->inside);
    return start_agents(s, false, false, err);
}

int inside_enter(struct session *s, pid_t pid, struct error *err)
{
    char library[PATH_MAX], link[64];
    if (!s->heaps || s->options->invite)
        return 0;
    snprintf(link, sizeof link, "/proc/%d/exe", pid);
    enum kinship kinship = kinship_of(link);
    if (kinship != KIN)
        return error_set(err, FAULT_SYSTEM, "the heap of process %d cannot be reached: it is %s",
                         pid,
                         kinship == STATIC ? "statically linked" : "linked with musl, not glibc");
    int rc = find_library(library, sizeof library, err);
    if (rc)
        return rc;
    struct text settings = TEXT_INIT;
    settings_text(s, &settings);
    rc = inject_agent(s, pid, library, settings.data, err);
    text_release(&settings);
    return rc;
}

int inside_expect(struct session *s, struct error *err)
{
    const struct perf_options *p = &s->options->perf;
    s->inside = memory_alloc(sizeof *s->inside);
    while (s->inside->event < p->events && !p->event[s->inside->event].timed)
        s->inside->event++;
    return start_agents(s, false, s->inside->event < p->events && !s->options->no_python, err);
}

int inside_invite(struct session *s, struct error *err)
{
    struct text lines = TEXT_INIT;
    int rc = 0;
    for (const char *const *v = agents_environment(s->agents); *v; v++)
        text_format(&lines, "%s\n", *v);
    text_add_char(&lines, '\n'); /* the end, whoever else has the file open */
    int fd = open(s->options->invite, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || io_write(fd, lines.data, lines.len) < 0)
        rc = error_errno(err, FAULT_SYSTEM, "cannot write to %s", s->options->invite);
    if (fd >= 0)
        close(fd);
    text_release(&lines);
    return rc;
}

const char *const *inside_environment(const struct session *s)
{
    return agents_environment(s->agents);
}

int inside_fd(const struct session *s)
{
    return agents_fd(s->agents);
}

/* With perf, its records tell who runs what; the agents' words are for Python and the heap. An
 * agent may be faster, and its process over before anybody could ask /proc whose child it was. */
static void on_process(void *context, struct agents_process *p)
{
    struct session *s = context;
    p->python_user = python_process_new(s->writer, &s->modules, p);
    bool known = tasks_find(&s->tasks, p->pid) != NULL;
    if (known && p->epoch && !s->perf)
        tasks_on_exec(&s->tasks, p->pid, p->comm, p->start);
    else if (!known && (!s->perf || tasks_find(&s->tasks, p->parent)))
        tasks_on_fork(&s->tasks, p->pid, p->pid, p->parent, p->parent, p->start);
    if (s->heaps)
        heaps_on_process(s->heaps, p);
}

static void on_mapping(void *context, struct agents_process *p, const struct agents_mapping *m)
{
    struct session *s = context;
    if (!s->perf)
        tasks_on_map(&s->tasks, p->pid, m->path, m->start, m->end - m->start, m->offset,
                     m->build_id, m->build_id_len, m->since);
    if (s->heaps)
        heaps_on_mapping(s->heaps, p, m);
    if (s->traces)
        traces_on_mapping(s->traces, p, m);
}

static void on_heap(void *context, struct agents_process *p)
{
    struct session *s = context;
    if (s->heaps)
        heaps_on_heap(s->heaps, p);
}

static void on_trace(void *context, struct agents_process *p)
{
    struct session *s = context;
    if (s->traces)
        traces_on_trace(s->traces, p);
}

static struct thread *thread_of(struct session *s, const struct agents_process *p,
                                const struct agents_thread *t)
{
    return tasks_thread(&s->tasks, p->pid, t->tid, t->start);
}

static void cover(struct session *s, pid_t pid, const struct agents_thread *t)
{
    bool added;
    uint64_t *at = map_put(&s->inside->covers, (uint64_t)t->tid, 0, 0, &added);
    struct cover *c = added ? memory_alloc(sizeof *c) : (struct cover *)(uintptr_t)*at;
    *at = (uint64_t)(uintptr_t)c;
    *c = (struct cover){.pid = pid, .from = t->start, .to = UINT64_MAX};
}

static struct cover *cover_of(const struct session *s, pid_t pid, pid_t tid)
{
    const uint64_t *at = s->inside ? map_get(&s->inside->covers, (uint64_t)tid, 0) : NULL;
    struct cover *c = at ? (struct cover *)(uintptr_t)*at : NULL;
    return c && c->pid == pid ? c : NULL;
}

bool inside_covers(const struct session *s, size_t event, pid_t pid, pid_t tid, uint64_t time)
{
    const struct cover *c = cover_of(s, pid, tid);
    return c && event == s->inside->event && time >= c->from && time <= c->to;
}

bool inside_samples(const struct session *s, pid_t pid)
{
    const struct cover *c = cover_of(s, pid, pid);
    return c && c->to == UINT64_MAX && !c->in_part && !c->handed;
}

void inside_mute(struct session *s)
{
    for (size_t i = 0; s->inside->covers.len && i <= s->inside->covers.mask; i++) {
        const struct map_slot *slot = &s->inside->covers.slots[i];
        struct cover *c = slot->used ? (struct cover *)(uintptr_t)slot->value : NULL;
        if (!c || cover_of(s, c->pid, c->pid) != c)
            continue;
        bool mute = c->to == UINT64_MAX && !c->in_part && !c->handed;
        if (c->handed && !c->muted && !c->told) {
            c->told = true;
            agents_hand_over(s->agents, c->pid);
        }
        if (mute == c->muted)
            continue;
        perf_mute(s->perf, c->pid, mute);
        c->muted = mute;
    }
}

/* Says so by name, if it still runs. */
static void look_for_stranger(struct session *s, pid_t pid)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/%d/exe", pid);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    enum kinship kinship = n > 0 ? kinship_of(link) : KIN;
    if (kinship != KIN)
        heaps_on_stranger(s->heaps, pid, path, kinship == STATIC);
}

void inside_on_exec(struct session *s, pid_t pid, uint64_t time)
{
    struct cover *c = cover_of(s, pid, pid);
    if (s->heaps)
        look_for_stranger(s, pid);
    if (c && c->from < time && c->to > time)
        c->to = time;
}

static void on_thread(void *context, struct agents_process *p, struct agents_thread *t)
{
    struct session *s = context;
    t->user = python_thread_new();
    if (s->perf && t->sampled)
        cover(s, p->pid, t);
    if (s->perf)
        return;
    thread_of(s, p, t);
    if (t->name[0])
        tasks_on_name(&s->tasks, p->pid, t->tid, t->name, t->start);
}

static void on_sample(void *context, struct agents_process *p, struct agents_thread *t,
                      const struct agents_sample *sample)
{
    struct session *s = context;
    ((struct python_process *)p->python_user)->samples++;
    if (s->options->gil && !(sample->flags & SAMPLE_GIL))
        return;
    struct queued *q = queue_make(sample->count, sample->python_count,
                                  s->options->perf.no_kernel ? 0 : sample->kernel_count);
    if (q->kernel_count)
        memcpy(q->kernel, sample->kernel, q->kernel_count * sizeof *q->kernel);
    struct python_stack *k = &q->stack;
    q->time = sample->time;
    q->value = sample->value;
    q->pid = p->pid;
    q->tid = t->tid;
    k->eval = p->python_eval;
    k->eval_end = p->python_eval_end;
    k->interrupted = sample->interrupted;
    k->native_whole = sample->reason == UNWIND_COMPLETE;
    k->python_whole = sample->python_whole;
    memcpy(k->address, sample->address, sample->count * sizeof *k->address);
    for (size_t i = 0; i < sample->python_count; i++) {
        const uint64_t *word = &sample->python[2 * i];
        k->frame[i] = python_frame(p->python_user, t->user, word[0], (int32_t)(uint32_t)word[1]);
        k->flags[i] = (uint32_t)(word[1] >> 32);
    }
    queue_add(&s->inside->queue, q);
}

static void on_code(void *context, struct agents_process *p, struct agents_thread *t,
                    const struct agents_code *c)
{
    (void)context;
    python_on_code(p->python_user, t->user, c);
}

static void write_queued(struct session *s, const struct queued *q)
{
    struct thread *th = tasks_thread(&s->tasks, q->pid, q->tid, q->time);
    const struct python_stack *k = &q->stack;
    if (!session_wants(s, th->process))
        return;
    uint32_t stack = k->python
                         ? python_stack_of(&s->stacks, th->process->space, k, s->options->no_native)
                         : stacks_of_addresses(&s->stacks, th->process->space, k->address,
                                               k->native, k->interrupted, k->native_whole);
    stack = stacks_add_kernel(&s->stacks, stack, q->kernel, q->kernel_count);
    writer_sample(s->writer, s->event[s->inside->event], q->time, th->id, stack, q->value);
    s->target_cpu += q->value;
}

void inside_write(struct session *s, uint64_t until)
{
    struct queued *q;
    while (s->inside && (q = queue_take(&s->inside->queue, until))) {
        write_queued(s, q);
        free(q);
    }
}

static void on_thread_end(void *context, struct agents_process *p, struct agents_thread *t)
{
    struct session *s = context;
    if (!s->perf)
        inside_write(s, UINT64_MAX);
    if (t->lost) {
        s->lost += t->lost;
        writer_loss(s->writer, LOSS_RING_FULL, s->event[s->inside->event], thread_of(s, p, t)->id,
                    t->lost);
    }
    s->target_extra += t->cost;
    python_thread_free(t->user);
    struct cover *c = cover_of(s, p->pid, t->tid);
    if (c && t->end && c->from == t->start)
        c->to = t->end;
    if (!s->perf)
        tasks_on_exit(&s->tasks, p->pid, t->tid, t->end);
}

/* An exec takes the kernel about a millisecond, which perf alone can see. */
static void on_paused(void *context, struct agents_process *p, struct agents_thread *t)
{
    struct cover *c = cover_of(context, p->pid, t->tid);
    if (c && c->from == t->start)
        c->to = t->end ? t->end : UINT64_MAX;
}

static const struct {
    uint32_t flag;
    const char *text;
} remarks[] = {
    {SEGMENT_QUIET, "a process put itself under a seccomp filter: threads it started later were "
                    "not sampled"},
    {SEGMENT_SIGNAL_SHARED, "a process uses the signal that samples come by: some may be missing"},
    {SEGMENT_NO_STACK_COPY, "coroutine stacks could not be followed in a process"},
    {SEGMENT_MODULES_FULL, "a process loaded more libraries than could be followed"},
    {SEGMENT_TIMERS_REFUSED, "some threads were not sampled: the limit of pending signals "
                             "('ulimit -i') is too low"},
    {SEGMENT_CLOCK_REFUSED, "a Python process may not use perf events itself: its samples follow "
                            "the kernel's tick"},
    {SEGMENT_NO_SIGNAL, "a process left no signal free: it was not sampled"},
};

static void on_process_end(void *context, struct agents_process *p)
{
    struct session *s = context;
    for (size_t i = 0; i < sizeof remarks / sizeof *remarks; i++)
        if ((!s->perf || p->python) && (p->flags & remarks[i].flag) &&
            !(s->remarked & remarks[i].flag))
            writer_note(s->writer, NOTE_WARNING, remarks[i].text);
    s->remarked |= p->flags;
    if (s->traces)
        traces_on_process_end(s->traces, p);
    if (s->heaps)
        heaps_on_process_end(s->heaps, p);
    struct python_process *python = p->python_user;
    s->inside->gone += python->gone_count;
    python_process_free(python);
    p->python_user = NULL;
    if (!p->execed && !s->perf)
        tasks_on_process_end(&s->tasks, p->pid, clock_now());
}

static void on_refused(void *context, pid_t pid, const char *why)
{
    struct session *s = context;
    char note[256];
    snprintf(note, sizeof note, "process %d was not observed from inside: %.180s", pid, why);
    writer_note(s->writer, NOTE_WARNING, note);
}

/* Whether the kernel is ready to copy the frames of all threads that the agent samples. */
static bool is_expected(struct session *s, pid_t pid)
{
    bool all = pythons_expect(s, pid, pid);
    for (size_t i = 0; all && i <= s->inside->covers.mask; i++) {
        const struct map_slot *slot = &s->inside->covers.slots[i];
        const struct cover *c = slot->used ? (const struct cover *)(uintptr_t)slot->value : NULL;
        if (c && c->pid == pid && c->to == UINT64_MAX)
            pythons_expect(s, pid, (pid_t)slot->a);
    }
    return all;
}

/* A process may make code as it goes, by exec or eval, run it and drop it. */
static void look(struct cover *c, const struct python_process *k, uint64_t now)
{
    if (now - c->looked < LOOK)
        return;
    c->settled = k->samples - c->samples >= NEWS * (k->news - c->news);
    c->looked = now;
    c->samples = k->samples;
    c->news = k->news;
}

/*
 * What happens in a process's first moments, and as long as it goes on like that, code that is
 * loaded, run and dropped, only an agent sees in full. Later the kernel's copies of frames are as
 * good and cost half: a signal takes the thread twice as long as a sample that nobody is told of.
 * First the kernel samples it again, then the agent is told, and each thread says until when it was
 * sampled inside.
 */
static void hand_over(struct session *s, const struct agents_process *p, struct cover *c)
{
    const struct session_options *o = s->options;
    uint64_t now = clock_now();
    if (c->handed || c->to != UINT64_MAX || c->in_part || !c->muted || !p->python || !s->pythons ||
        o->python_inside || o->gil || s->heaps || traces_calls(s))
        return;
    look(c, p->python_user, now);
    if (!c->settled || now - p->start < SETTLED)
        return;
    c->handed = is_expected(s, p->pid);
}

/* What keeps an agent from sampling every thread. */
#define IN_PART                                                                                    \
    (SEGMENT_QUIET | SEGMENT_SIGNAL_SHARED | SEGMENT_TIMERS_REFUSED | SEGMENT_NO_SIGNAL |          \
     SEGMENT_CLOCK_REFUSED)

static void on_round(void *context, struct agents_process *p)
{
    struct session *s = context;
    struct cover *c = cover_of(s, p->pid, p->pid);
    s->agents_cost += p->cost;
    if (c && ((p->flags & IN_PART) || p->threads_refused))
        c->in_part = true;
    if (c)
        hand_over(s, p, c);
}

static const struct agents_sink sink = {.process = on_process,
                                        .mapping = on_mapping,
                                        .thread = on_thread,
                                        .code = on_code,
                                        .sample = on_sample,
                                        .paused = on_paused,
                                        .thread_end = on_thread_end,
                                        .heap = on_heap,
                                        .round = on_round,
                                        .trace = on_trace,
                                        .process_end = on_process_end,
                                        .refused = on_refused};

bool inside_traces(const struct session *s)
{
    return s->traces && traces_active(s->traces);
}

void inside_collect(struct session *s)
{
    if (s->traces)
        traces_see(s->traces);
    agents_drain(s->agents, &sink, s);
    if (!s->perf)
        inside_write(s, UINT64_MAX);
    uint64_t now = clock_now();
    if (s->traces)
        traces_tick(s->traces);
    if (s->heaps) {
        uint64_t before = s->budget ? clock_own_cpu() : 0;
        heaps_tick(s->heaps, now);
        s->heap_own += s->budget ? clock_own_cpu() - before : 0;
    }
}

void inside_finish(struct session *s)
{
    if (s->heaps && !s->options->launch)
        heaps_leave(s->heaps);
    agents_finish(s->agents, &sink, s);
    inside_write(s, UINT64_MAX);
    if (s->inside->gone) {
        char note[128];
        snprintf(note, sizeof note, "%llu Python frames have no name: their code was not to be had",
                 (unsigned long long)s->inside->gone);
        writer_note(s->writer, NOTE_WARNING, note);
    }
    if (s->heaps)
        heaps_finish(s->heaps);
    if (s->traces)
        traces_finish(s->traces);
    if (s->perf)
        return;
    writer_note(s->writer, NOTE_INFO,
                "sampled by timers inside the processes, since perf events are not to be had here: "
                "no kernel frames, a rate bound to the kernel's tick, and nothing of programs that "
                "are static or setuid; 'sysctl kernel.perf_event_paranoid=1' would enable better");
}

void inside_close(struct session *s)
{
    heaps_free(s->heaps);
    traces_free(s->traces);
    s->traces = NULL;
    agents_free(s->agents);
    s->heaps = NULL;
    s->agents = NULL;
    if (!s->inside)
        return;
    queue_release(&s->inside->queue);
    const struct map *m = &s->inside->covers;
    for (size_t i = 0; m->len && i <= m->mask; i++)
        if (m->slots[i].used)
            free((void *)(uintptr_t)m->slots[i].value);
    map_release(&s->inside->covers);
    free(s->inside);
    s->inside = NULL;
}
