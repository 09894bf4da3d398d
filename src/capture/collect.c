/* From perf's records to the recording's, one function a kind. */
#include "capture/inside.h"
#include "capture/proc.h"
#include "capture/session_internal.h"

static void on_sample(struct session *s, const struct perf_record *r)
{
    int event = perf_event_of(s->perf, r->id);
    if (event < 0 || r->pid <= 0 || !s->begun)
        return;
    /* On its very last steps a thread has no number any more. */
    pid_t tid = r->tid > 0 ? r->tid : r->pid;
    struct thread *t = tasks_thread(&s->tasks, r->pid, tid, r->time);
    if (inside_covers(s, (size_t)event, r->pid, r->tid, r->time))
        return;
    if (!session_wants(s, t->process))
        return;
    uint64_t weight = event < PERF_EVENTS_MAX ? perf_weigh(s->perf, event, r) : 0;
    if (event < PERF_EVENTS_MAX && !weight)
        return;
    struct pythons_sample python;
    uint32_t stack = pythons_stack(s, t, r, event == PERF_EVENTS_MAX, &python);
    bool timed = event < PERF_EVENTS_MAX && s->options->perf.event[event].timed;
    if (timed && s->pythons)
        weight = pythons_weigh(s, r->pid, python.cpu, weight);
    if (s->options->gil && !(python.read && python.gil))
        return;
    if (event == PERF_EVENTS_MAX) {
        if (perf_switches(s->perf) >= 0)
            writer_sample(s->writer, s->event[perf_switches(s->perf)], r->time, t->id, stack, 1);
        offcpu_on_sample(&s->offcpu, t, r, stack);
        if (python.for_gil)
            offcpu_on_gil(&s->offcpu, t);
        const struct thread *holder =
            python.holder ? tasks_find_thread(&s->tasks, r->pid, python.holder) : NULL;
        if (holder)
            offcpu_on_holder(&s->offcpu, t, holder->id, python.holder_stack);
        return;
    }
    writer_sample(s->writer, s->event[event], r->time, t->id, stack, weight);
    if (timed)
        s->target_cpu += weight;
}

/* What a loss is charged to: nothing, if it was no sample that was lost. */
static uint32_t event_in_recording(const struct session *s, int event)
{
    if (event < 0)
        return WRITER_NONE;
    return event < PERF_EVENTS_MAX ? s->event[event] : s->offcpu.event[CAUSE_OTHER];
}

static void lose(struct session *s, int event, uint32_t thread, uint64_t count)
{
    if (event == PERF_EVENTS_MAX && perf_switches(s->perf) >= 0)
        lose(s, perf_switches(s->perf), thread, count);
    s->lost += event < 0 ? 0 : count;
    writer_loss(s->writer, LOSS_RING_FULL, event_in_recording(s, event), thread, count);
}

static void on_lost(struct session *s, const struct perf_record *r)
{
    int event = perf_event_of(s->perf, r->id);
    struct thread *t = r->tid > 0 ? tasks_thread(&s->tasks, r->pid, r->tid, r->time) : NULL;
    if (event < 0)
        s->lost_tasks += r->count;
    else
        s->lost_told[event] += r->count;
    lose(s, event, t ? t->id : WRITER_NONE, r->count);
}

static void on_task_exit(struct session *s, const struct perf_record *r)
{
    if (s->options->perf.wall) {
        struct process *p = tasks_find(&s->tasks, r->pid);
        if (p)
            tasks_thread(&s->tasks, r->pid, r->tid, r->time)->blocked = (struct blocked){0};
    }
    if (r->pid == r->tid)
        pythons_forget(s, r->pid, r->time);
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
        pythons_on_map(s, r->pid, r->path);
        break;
    case PERF_COMM:
        s->begun |= r->exec;
        if (r->exec)
            inside_on_exec(s, r->pid, r->time);
        if (r->exec)
            pythons_forget(s, r->pid, r->time);
        if (r->exec)
            tasks_on_exec(&s->tasks, r->pid, r->comm, r->time);
        else
            tasks_on_name(&s->tasks, r->pid, r->tid, r->comm, r->time);
        break;
    case PERF_FORK:
        if (s->options->perf.threads_only && r->pid != r->parent_pid)
            break;
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
    if (s->tasks.commands)
        commands_refresh(s->tasks.commands);
    while (perf_next(s->perf, until, &r)) {
        inside_write(s, r.time);
        on_record(s, &r);
    }
    inside_write(s, until);
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

/* The kernel tells of a loss with the next record that has room: of the last one it never does. */
static void settle_counts(struct session *s)
{
    struct perf_totals totals;
    perf_read_totals(s->perf, &totals);
    tasks_settle_cpu(&s->tasks, totals.cpu);
    if (totals.unfollowed)
        writer_note(s->writer, NOTE_WARNING,
                    "more processes lived at once than could be followed: some were not sampled");
    for (size_t i = 0; i <= PERF_EVENTS_MAX; i++) {
        if (totals.lost[i] <= s->lost_told[i])
            continue;
        lose(s, (int)i, WRITER_NONE, totals.lost[i] - s->lost_told[i]);
    }
}

void collect_finish(struct session *s, uint64_t now)
{
    struct closing c = {.session = s, .now = now};
    tasks_each_thread(&s->tasks, close_thread, &c);
    tasks_retire(&s->tasks, UINT64_MAX);
    if (s->perf)
        settle_counts(s);
    uint64_t bad = s->perf ? perf_malformed(s->perf) : 0;
    if (bad) {
        s->lost += bad;
        writer_loss(s->writer, LOSS_UNREADABLE, WRITER_NONE, WRITER_NONE, bad);
    }
    if (s->lost_tasks)
        writer_note(s->writer, NOTE_WARNING,
                    "so much was started and ended at once that the kernel dropped word of some of "
                    "it: processes, threads or their names may be missing");
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
