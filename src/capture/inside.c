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
#include "capture/heap.h"
#include "capture/session_internal.h"
#include "unwind/walk.h"

/* Where libsonde.so is from where sonde is: in the build folder, and installed. */
static const char *const places[] = {"../agent/libsonde.so", "../lib/sonde/libsonde.so",
                                     "../lib/x86_64-linux-gnu/sonde/libsonde.so",
                                     "../lib64/sonde/libsonde.so"};

static int find_library(char *out, size_t size, struct error *err)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        return error_errno(err, FAULT_SYSTEM, "cannot tell where sonde itself is");
    self[n] = 0;
    *strrchr(self, '/') = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char path[PATH_MAX + 64];
        snprintf(path, sizeof path, "%s/%s", self, places[i]);
        if (access(path, R_OK) == 0 && realpath(path, out) && strlen(out) < size)
            return 0;
    }
    return error_set(err, FAULT_SYSTEM,
                     "libsonde.so, which sonde needs without perf events, is not beside it");
}

/* Nothing can be preloaded into a program that asks for no loader. */
static bool is_static(const char *path)
{
    Elf64_Ehdr e;
    bool is_elf = false, has_loader = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (io_pread(fd, &e, sizeof e, 0) == sizeof e && !memcmp(e.e_ident, ELFMAG, SELFMAG) &&
        e.e_phentsize == sizeof(Elf64_Phdr)) {
        is_elf = true;
        for (unsigned i = 0; i < e.e_phnum && !has_loader; i++) {
            Elf64_Phdr p;
            if (io_pread(fd, &p, sizeof p, e.e_phoff + i * sizeof p) != sizeof p)
                break;
            has_loader = p.p_type == PT_INTERP;
        }
    }
    close(fd);
    return is_elf && !has_loader;
}

int inside_open(struct session *s, bool sampling, struct error *err)
{
    char library[PATH_MAX], program[PATH_MAX];
    const struct perf_options *p = &s->options->perf;
    if (sampling && (p->events != 1 || !p->event[0].timed))
        return error_set(err, FAULT_SYSTEM,
                         "only the event cpu can be sampled without perf events");
    if (launch_find(s->options->launch->argv[0], program, sizeof program) && is_static(program))
        return error_set(err, FAULT_SYSTEM,
                         "%s is statically linked, so it can only be recorded with perf events",
                         program);
    int rc = find_library(library, sizeof library, err);
    if (rc)
        return rc;
    struct agents_options o = {.library = library,
                               .preload = getenv("LD_PRELOAD"),
                               .rows = s->modules.cache,
                               .rate = sampling ? (uint32_t)p->rate : 0,
                               .heap = s->options->heap,
                               .heap_interval = s->options->heap_interval,
                               .heap_memory = s->options->agent_memory};
    rc = agents_new(&o, &s->agents, err);
    if (rc == 0 && o.heap != HEAP_OFF && !s->heaps)
        s->heaps = heaps_new(s);
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

/* With perf, its records tell who runs what; the agents' words are for the heap alone. */
static void on_process(void *context, struct agents_process *p)
{
    struct session *s = context;
    if (s->perf)
        ;
    else if (tasks_find(&s->tasks, p->pid) && p->epoch)
        tasks_on_exec(&s->tasks, p->pid, p->comm, p->start);
    else if (!tasks_find(&s->tasks, p->pid))
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
}

static void on_heap(void *context, struct agents_process *p)
{
    struct session *s = context;
    if (s->heaps)
        heaps_on_heap(s->heaps, p);
}

static struct thread *thread_of(struct session *s, const struct agents_process *p,
                                const struct agents_thread *t)
{
    return tasks_thread(&s->tasks, p->pid, t->tid, t->start);
}

static void on_thread(void *context, struct agents_process *p, struct agents_thread *t)
{
    struct session *s = context;
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
    struct thread *th = thread_of(s, p, t);
    uint32_t stack =
        stacks_of_addresses(&s->stacks, th->process->space, sample->address, sample->count,
                            sample->interrupted, sample->reason == UNWIND_COMPLETE);
    writer_sample(s->writer, s->event[0], sample->time, th->id, stack, sample->value);
}

static void on_thread_end(void *context, struct agents_process *p, struct agents_thread *t)
{
    struct session *s = context;
    if (s->perf)
        return;
    struct thread *th = thread_of(s, p, t);
    if (t->lost) {
        s->lost += t->lost;
        writer_loss(s->writer, LOSS_RING_FULL, s->event[0], th->id, t->lost);
    }
    s->target_extra += t->cost;
    tasks_on_exit(&s->tasks, p->pid, t->tid, t->end);
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
    {SEGMENT_NO_SIGNAL, "a process left no signal free: it was not sampled"},
};

static void on_process_end(void *context, struct agents_process *p)
{
    struct session *s = context;
    for (size_t i = 0; i < sizeof remarks / sizeof *remarks; i++)
        if (!s->perf && (p->flags & remarks[i].flag) && !(s->remarked & remarks[i].flag))
            writer_note(s->writer, NOTE_WARNING, remarks[i].text);
    s->remarked |= p->flags;
    if (s->heaps)
        heaps_on_process_end(s->heaps, p);
    if (!p->execed && !s->perf)
        tasks_on_process_end(&s->tasks, p->pid, clock_now());
}

static void on_refused(void *context, pid_t pid, const char *why)
{
    struct session *s = context;
    char note[256];
    snprintf(note, sizeof note, "process %d was not observed: %.180s", pid, why);
    writer_note(s->writer, NOTE_WARNING, note);
}

static const struct agents_sink sink = {.process = on_process,
                                        .mapping = on_mapping,
                                        .thread = on_thread,
                                        .sample = on_sample,
                                        .thread_end = on_thread_end,
                                        .heap = on_heap,
                                        .process_end = on_process_end,
                                        .refused = on_refused};

void inside_collect(struct session *s)
{
    agents_drain(s->agents, &sink, s);
    if (s->heaps)
        heaps_tick(s->heaps, clock_now());
}

void inside_finish(struct session *s)
{
    agents_finish(s->agents, &sink, s);
    if (s->heaps)
        heaps_finish(s->heaps);
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
    agents_free(s->agents);
    s->heaps = NULL;
    s->agents = NULL;
}
