/* From perf's records to the recording's, one function a kind. */
#include "capture/proc.h"
#include "capture/session_internal.h"

static void on_sample(struct session *s, const struct perf_record *r)
{
    int event = perf_event_of(s->perf, r->id);
    if (event < 0 || r->pid <= 0)
        return;
    struct thread *t = tasks_thread(&s->tasks, r->pid, r->tid, r->time);
    uint32_t stack = stacks_of_sample(&s->stacks, t->process->space, r);
    if (event == PERF_EVENTS_MAX) {
        offcpu_on_sample(&s->offcpu, t, r, stack);
        return;
    }
    writer_sample(s->writer, s->event[event], r->time, t->id, stack, r->period);
}

static void on_lost(struct session *s, const struct perf_record *r)
{
    int event = perf_event_of(s->perf, r->id);
    struct thread *t = r->tid > 0 ? tasks_thread(&s->tasks, r->pid, r->tid, r->time) : NULL;
    s->lost += r->count;
    writer_loss(s->writer, LOSS_RING_FULL,
                event >= 0 && event < PERF_EVENTS_MAX ? s->event[event] : WRITER_NONE,
                t ? t->id : WRITER_NONE, r->count);
}

static void on_task_exit(struct session *s, const struct perf_record *r)
{
    if (s->options->perf.wall) {
        struct process *p = tasks_find(&s->tasks, r->pid);
        if (p)
            tasks_thread(&s->tasks, r->pid, r->tid, r->time)->blocked = (struct blocked){0};
    }
    tasks_on_exit(&s->tasks, r->pid, r->tid, r->time);
}

static void on_record(struct session *s, const struct perf_record *r)
{
    switch (r->kind) {
    case PERF_SAMPLE:
        on_sample(s, r);
        break;
    case PERF_MMAP:
        tasks_thread(&s->tasks, r->pid, r->tid, r->time);
        tasks_on_map(&s->tasks, r->pid, r->path, r->start, r->length, r->offset, r->build_id,
                     r->build_id_len, r->time);
        break;
    case PERF_COMM:
        if (r->exec)
            tasks_on_exec(&s->tasks, r->pid, r->comm, r->time);
        else
            tasks_on_name(&s->tasks, r->pid, r->tid, r->comm, r->time);
        break;
    case PERF_FORK:
        tasks_on_fork(&s->tasks, r->pid, r->tid, r->parent_pid, r->parent_tid, r->time);
        break;
    case PERF_EXIT:
        on_task_exit(s, r);
        break;
    case PERF_LOST:
        on_lost(s, r);
        break;
    case PERF_THROTTLE:
        s->throttled++;
        break;
    case PERF_SWITCH:
        if (s->options->perf.wall && r->pid > 0)
            offcpu_on_switch(&s->offcpu, tasks_thread(&s->tasks, r->pid, r->tid, r->time), r);
        break;
    case PERF_READ:
        tasks_on_cpu(&s->tasks, r->tid, r->count);
        break;
    case PERF_OTHER:
        break;
    }
}

void collect_records(struct session *s, uint64_t until)
{
    struct perf_record r;
    perf_refresh(s->perf);
    while (perf_next(s->perf, until, &r))
        on_record(s, &r);
}

struct closing {
    struct session *session;
    uint64_t now;
};

static void close_thread(void *context, struct thread *t)
{
    struct closing *c = context;
    struct session *s = c->session;
    if (s->options->perf.wall)
        offcpu_close(&s->offcpu, t, c->now);
    uint64_t cpu = proc_thread_cpu(t->process->pid, t->tid);
    if (cpu > t->cpu_before)
        writer_thread_end(s->writer, t->id, 0, cpu - t->cpu_before);
}

void collect_finish(struct session *s, uint64_t now)
{
    struct closing c = {.session = s, .now = now};
    tasks_each_thread(&s->tasks, close_thread, &c);
    tasks_retire(&s->tasks, UINT64_MAX);
    uint64_t bad = s->perf ? perf_malformed(s->perf) : 0;
    if (bad) {
        s->lost += bad;
        writer_loss(s->writer, LOSS_UNREADABLE, WRITER_NONE, WRITER_NONE, bad);
    }
    if (s->throttled)
        writer_note(s->writer, NOTE_WARNING,
                    "the kernel held back samples (kernel.perf_event_max_sample_rate or "
                    "perf_cpu_time_max_percent): the rate was lower than asked for at times");
    if (s->perf && !perf_ability(s->perf)->kernel)
        writer_note(s->writer, NOTE_INFO,
                    "time in the kernel is not in this recording: this user may not see it "
                    "('sysctl kernel.perf_event_paranoid=1', or run as root)");
    if (s->options->perf.wall && s->perf && !perf_ability(s->perf)->kernel)
        writer_note(s->writer, NOTE_WARNING,
                    "blocked time is not in this recording: --wall needs the kernel's side, which "
                    "this user may not see");
}
