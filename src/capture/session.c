/* The recorder's life: start, collect, stop, finish; see session.h. */
#include "capture/session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "capture/budget.h"
#include "capture/control.h"
#include "capture/exits.h"
#include "capture/heap.h"
#include "capture/inside.h"
#include "capture/priority.h"
#include "capture/proc.h"
#include "capture/python_files.h"
#include "capture/session_internal.h"

#define SECOND 1000000000ull
#define POLL_MS 50
#define POLL_TRACE_MS 5 /* a ring of calls is full in some tens */
#define POLL_YOUNG_MS 5 /* an interpreter that nobody told us of is found by looking */
#define YOUNG (SECOND / 4)
/* A record's time is taken before it is in the ring: younger ones may still be on their way. */
#define HOLD_BACK (5 * 1000000ull)

static void put_number(struct session *s, const char *key, uint64_t v)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)v);
    writer_meta(s->writer, key, digits);
}

static void write_command(struct session *s)
{
    struct text t = TEXT_INIT;
    char one[4096];
    const struct session_options *o = s->options;
    for (size_t i = 0; o->launch && o->launch->argv[i]; i++)
        text_format(&t, "%s%s", i ? " " : "", o->launch->argv[i]);
    for (size_t i = 0; !o->launch && i < o->attach_count; i++) {
        if (!proc_arguments(o->attach[i], one, sizeof one))
            snprintf(one, sizeof one, "pid %d", o->attach[i]);
        text_format(&t, "%s%s", i ? ", " : "", one);
    }
    writer_meta(s->writer, "command", t.data);
    text_release(&t);
}

static void write_meta(struct session *s)
{
    struct utsname u;
    s->start = clock_now();
    put_number(s, "start", s->start);
    put_number(s, "wall_start", clock_wall());
    put_number(s, "rate", s->options->perf.rate);
    put_number(s, "cpus", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
    writer_meta(s->writer, "mode", s->options->launch ? "run" : "attach");
    write_command(s);
    if (uname(&u) == 0) {
        writer_meta(s->writer, "host", u.nodename);
        writer_meta(s->writer, "kernel", u.release);
        writer_meta(s->writer, "machine", u.machine);
    }
}

static void declare_events(struct session *s)
{
    const struct perf_options *p = &s->options->perf;
    for (size_t i = 0; i < p->events; i++) {
        const struct event *e = &p->event[i];
        /* Timers inside follow the kernel's tick: each sample says how long it stands for. */
        bool varies = !s->perf || s->options->budget > 0;
        uint64_t period = varies ? 0 : event_period(e, p->rate);
        s->event[i] = writer_event(s->writer, e->name, e->unit, period);
    }
    if (p->wall && !s->perf)
        writer_note(s->writer, NOTE_WARNING,
                    "blocked time is not in this recording: --wall needs perf events");
    else if (p->wall)
        offcpu_init(&s->offcpu, s->writer);
}

/* One descriptor a thread, event and CPU: as many as we may have. Ours alone: the command was
 * forked before. */
static void raise_file_limit(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
    }
}

/* Ours alone too: the command has its own signals since before. */
static int open_signals(struct session *s, struct error *err)
{
    sigset_t set;
    sigemptyset(&set);
    int wanted[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        sigaddset(&set, wanted[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return s->signals < 0 ? error_errno(err, FAULT_SYSTEM, "cannot wait for signals") : 0;
}

static int attach_process(struct session *s, pid_t pid, struct error *err)
{
    struct pids threads = {0};
    perf_add_process(s->perf, pid, false);
    if (s->pythons && python_files_likely(pid))
        perf_tell(s->perf, pid);
    s->tasks.commands = perf_commands(s->perf);
    errno = 0;
    proc_threads(pid, &threads);
    if (!threads.len && (errno == EMFILE || errno == ENFILE))
        return error_set(err, FAULT_SYSTEM,
                         "too many open files to look at process %d: raise 'ulimit -n'", pid);
    for (size_t i = 0; i < threads.len; i++) {
        bool unavailable;
        int rc = perf_add_task(s->perf, threads.data[i], false, &unavailable, err);
        if (rc == FAULT_MISSING)
            continue; /* it ended meanwhile */
        if (rc) {
            vector_release(&threads);
            return rc;
        }
        struct thread *t = tasks_thread(&s->tasks, pid, threads.data[i], clock_now());
        t->cpu_before = proc_thread_cpu(pid, threads.data[i]);
    }
    vector_release(&threads);
    return 0;
}

static int check_attachable(pid_t pid, struct error *err)
{
    char state = proc_state(pid);
    if (!state)
        return error_set(err, FAULT_MISSING, "there is no process %d", pid);
    if (state == 'Z' || state == 'X')
        return error_set(err, FAULT_MISSING,
                         "process %d has ended already and only waits for its parent (a zombie)",
                         pid);
    return 0;
}

/* It does not run now: said in the report, where there will be little of it. */
static void note_if_stopped(struct session *s, pid_t pid)
{
    char state = proc_state(pid), text[160];
    if (state == 'T')
        snprintf(text, sizeof text,
                 "process %d was stopped when recording began; 'kill -CONT %d' lets it go on", pid,
                 pid);
    else if (state == 't')
        snprintf(text, sizeof text,
                 "process %d was stopped by its debugger, process %d, when recording began", pid,
                 proc_tracer(pid));
    else
        return;
    writer_note(s->writer, NOTE_WARNING, text);
}

/* One that was not named may be of a kind that cannot be entered: that is told, and no more. */
static void enter_descendant(struct session *s, pid_t pid)
{
    struct error why = {0};
    if (inside_enter(s, pid, &why) && proc_state(pid))
        writer_note(s->writer, NOTE_WARNING, why.text);
}

static int attach_all(struct session *s, struct error *err)
{
    const struct session_options *o = s->options;
    int rc = 0;
    for (size_t i = 0; i < o->attach_count && !rc; i++) {
        struct pids tree = {0};
        rc = check_attachable(o->attach[i], err);
        if (!rc)
            note_if_stopped(s, o->attach[i]);
        if (!rc)
            rc = attach_process(s, o->attach[i], err);
        if (!rc && !o->perf.threads_only)
            proc_descendants(o->attach[i], &tree);
        for (size_t k = 0; k < tree.len && !rc; k++)
            if (tree.data[k] != getpid()) /* a program that records itself has started us */
                rc = attach_process(s, tree.data[k], err);
        if (!rc)
            rc = inside_enter(s, o->attach[i], err);
        for (size_t k = 0; k < tree.len && !rc; k++)
            if (tree.data[k] != getpid())
                enter_descendant(s, tree.data[k]);
        vector_release(&tree);
    }
    if (!rc)
        perf_enable(s->perf);
    return rc;
}

/* Holds the command back, with perf events on it. */
static int prepare_perf(struct session *s, bool *unavailable, struct error *err)
{
    *unavailable = false;
    struct launch_options o = *s->options->launch;
    o.agent = s->agents ? inside_environment(s) : NULL;
    int rc = launch_start(&o, &s->launch, err);
    if (rc)
        return rc;
    raise_file_limit();
    struct perf_options perf = s->options->perf;
    if (!s->options->no_python)
        s->pythons = pythons_new();
    perf.prompt = s->pythons && (perf.wall || s->options->python_outside);
    perf.bell = s->pythons;
    s->perf = perf_new(&perf);
    s->tasks.counters = perf_cpus(s->perf);
    perf_add_process(s->perf, s->launch.pid, true);
    s->tasks.commands = perf_commands(s->perf);
    rc = perf_add_task(s->perf, s->launch.pid, true, unavailable, err);
    if (!rc)
        return 0;
    launch_cancel(&s->launch);
    s->tasks.commands = NULL;
    perf_free(s->perf);
    s->perf = NULL;
    return rc;
}

/* Holds the command back, with the agent in its environment. */
static int prepare_inside(struct session *s, struct error *err)
{
    struct error why = *err, also = {0};
    inside_close(s);
    int rc = inside_open(s, true, &also);
    if (rc)
        return error_set(err, rc, "%.300s; and %.250s", why.text, also.text);
    *err = (struct error){0};
    struct launch_options o = *s->options->launch;
    o.agent = inside_environment(s);
    return launch_start(&o, &s->launch, err);
}

static int start_command(struct session *s, struct error *err)
{
    bool unavailable;
    int rc = inside_open(s, false, err);
    if (rc)
        return rc;
    rc = prepare_perf(s, &unavailable, err);
    if (rc && unavailable)
        rc = prepare_inside(s, err);
    if (rc)
        return rc;
    declare_events(s);
    rc = open_signals(s, err);
    if (rc) {
        launch_cancel(&s->launch);
        return rc;
    }
    rc = launch_go(&s->launch, s->options->launch, &s->result->exec_errno, err);
    if (rc)
        return rc;
    s->child = s->launch.pid;
    s->result->started = true;
    char path[4096];
    if (launch_find(s->options->launch->argv[0], path, sizeof path))
        tasks_warn_of_setuid(&s->tasks, path);
    return 0;
}

/* Whatever has come, up to then. */
static void collect_all(struct session *s, uint64_t until)
{
    s->seen = until;
    if (s->agents)
        inside_collect(s); /* first: what the agents take over, perf's records are not used for */
    if (s->perf)
        collect_records(s, until);
    if (s->agents && s->perf)
        inside_mute(s);
}

/* The command has ended: its CPU time is still to be had before it is reaped. */
static void reap_child(struct session *s)
{
    siginfo_t info = {0};
    struct rusage usage;
    if (!s->child || waitid(P_PID, (id_t)s->child, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
        !info.si_pid)
        return;
    uint64_t cpu = proc_thread_cpu(s->child, s->child);
    if (wait4(s->child, &s->result->status, 0, &usage) != s->child)
        return;
    s->result->ended = true;
    collect_all(s, clock_now() - HOLD_BACK);
    /* With children that it waited for, it is the largest one's. */
    uint64_t rss = s->tasks.all_processes == 1 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
    tasks_on_status(&s->tasks, s->child, s->result->status, rss, clock_now());
    tasks_on_cpu_seen(&s->tasks, s->child, cpu);
    s->child = 0;
    s->reaped = clock_now();
}

static void on_interrupt(struct session *s, const struct signalfd_siginfo *info)
{
    /* From the terminal the command has got it too; from anyone else it is for us to pass on. */
    if (s->child && info->ssi_code == SI_USER)
        kill(s->child, (int)info->ssi_signo);
    if (!s->options->launch || ++s->interrupts > 1 || !s->child)
        s->stop = true;
}

static void take_signals(struct session *s)
{
    struct signalfd_siginfo info;
    while (read(s->signals, &info, sizeof info) == sizeof info) {
        switch (info.ssi_signo) {
        case SIGCHLD:
            reap_child(s);
            break;
        case SIGINT:
            on_interrupt(s, &info);
            break;
        default:
            if (s->child)
                kill(s->child, (int)info.ssi_signo);
            else
                s->stop = true;
        }
    }
}

static void report_progress(struct session *s, uint64_t now)
{
    if (!s->options->progress || now - s->last_progress < SECOND / 2)
        return;
    s->last_progress = now;
    struct session_progress p = {.phase = SESSION_RECORDING,
                                 .elapsed = now - s->start,
                                 .processes = s->tasks.live_processes,
                                 .threads = s->tasks.live_threads,
                                 .samples = writer_samples(s->writer),
                                 .lost = s->lost};
    s->options->progress(s->options->context, &p);
}

#define GRACE (2 * SECOND) /* between asking the command to end and ending it */

/* It has had its time: it and all that it started are asked to end, then ended. */
static void end_after_timeout(struct session *s, uint64_t now)
{
    const struct session_options *o = s->options;
    if (!o->timeout || !s->launch.pid || now - s->start < o->timeout || s->timeouts > 1 ||
        (s->timeouts == 1 && now - s->start < o->timeout + GRACE))
        return;
    struct pids tree = {0};
    int number = s->timeouts++ ? SIGKILL : SIGTERM;
    if (s->child) {
        proc_descendants(s->child, &tree);
        kill(s->child, number);
    }
    for (size_t i = 0; i < tree.len; i++)
        kill(tree.data[i], number);
    vector_release(&tree);
}

static void note_limits(struct session *s)
{
    struct limits *l = s->options->launch ? s->options->launch->limits : NULL;
    if (s->timeouts) {
        struct text t = TEXT_INIT;
        text_add(&t, "the command was ended after the ");
        text_add_duration(&t, s->options->timeout);
        text_add(&t, " that --timeout gave it");
        writer_note(s->writer, NOTE_WARNING, t.data);
        text_release(&t);
    } else if (s->options->timeout) {
        writer_note(s->writer, NOTE_INFO, "the command ended before --timeout would have ended it");
    }
    if (!l)
        return;
    limits_finish(l);
    char *copy = memory_strdup(l->told.data), *rest = copy;
    for (char *line; (line = strsep(&rest, "\n"));)
        if (*line)
            writer_note(s->writer, NOTE_INFO, line);
    free(copy);
}

static void do_chores(struct session *s, uint64_t now)
{
    end_after_timeout(s, now);
    report_progress(s, now);
    pythons_tick(s, now);
    resident_tick(s->resident, s, now);
    if (s->budget)
        budget_tick(s->budget, now);
    if (now - s->last_flush >= (s->options->live ? SECOND / 2 : SECOND)) {
        s->last_flush = now;
        tasks_retire(&s->tasks, now - SECOND);
        if (s->heaps && s->options->live)
            heaps_tell(s->heaps);
        writer_flush(s->writer, NULL);
    }
    /* The command is gone or the word of an end may have been lost: look for ourselves. */
    if (now - s->last_sweep >= (s->child ? SECOND : SECOND / 5)) {
        s->last_sweep = now;
        if (!s->child)
            tasks_sweep(&s->tasks, now - HOLD_BACK);
    }
}

static bool is_over(const struct session *s, uint64_t now)
{
    const struct session_options *o = s->options;
    if (s->stop || (o->duration && now - s->start >= o->duration))
        return true;
    /* Until then word of what the command started last may still be on its way to us. */
    if (s->child || s->seen < s->reaped)
        return false;
    if (s->agents && agents_processes(s->agents))
        return false;
    return (o->launch && o->perf.threads_only) || s->tasks.live_processes == 0;
}

static void wait_for_news(struct session *s, struct pollfd *fds, size_t n)
{
    uint64_t now = clock_now(), timeout = inside_traces(s) ? POLL_TRACE_MS : POLL_MS;
    if (s->budget && !inside_traces(s))
        timeout *= budget_pace(s->budget);
    if (s->options->timeout && timeout > 10)
        timeout = 10;
    if (s->pythons && now - s->start < YOUNG && timeout > POLL_YOUNG_MS)
        timeout = POLL_YOUNG_MS;
    if (s->options->duration) {
        uint64_t left = s->start + s->options->duration - now;
        if (left < timeout * 1000000)
            timeout = left / 1000000 + 1;
    }
    timeout = resident_wait(s->resident, now, timeout);
    if (!s->child) {
        uint64_t settled = s->reaped + HOLD_BACK;
        uint64_t most = s->seen < s->reaped && settled > now ? (settled - now) / 1000000 + 1 : 5;
        timeout = timeout > most ? most : timeout;
    }
    poll(fds, n, (int)timeout);
}

static void on_exit_status(void *context, pid_t pid, int status, uint64_t time)
{
    struct session *s = context;
    if (pid != s->launch.pid)
        tasks_on_status(&s->tasks, pid, status, 0, time);
}

/* Statuses come by another way than the records: they may be early, never late. */
static void take_exits(struct session *s)
{
    if (s->exits >= 0)
        exits_read(s->exits, on_exit_status, s);
}

static void collect(struct session *s)
{
    const int *rings = NULL;
    size_t n = s->perf ? perf_poll_fds(s->perf, &rings) : 0;
    struct pollfd *fds = memory_array(n + 3, sizeof *fds);
    fds[0] = (struct pollfd){.fd = s->signals, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = s->agents ? inside_fd(s) : -1, .events = POLLIN};
    fds[2] = (struct pollfd){.fd = control_fd(s->control), .events = POLLIN};
    for (size_t i = 0; i < n; i++)
        fds[i + 3] = (struct pollfd){.fd = rings[i], .events = POLLIN};
    bool raised = priority_raise();
    for (uint64_t now = clock_now(); !is_over(s, now); now = clock_now()) {
        wait_for_news(s, fds, n + 3);
        /* A ring whose task has ended hangs up for good: it is drained all the same. */
        for (size_t i = 3; i < n + 3; i++)
            if (fds[i].revents & (POLLHUP | POLLERR))
                fds[i].fd = -1;
        pythons_scan(s); /* first: what they ask for is passing */
        take_signals(s);
        collect_all(s, clock_now() - HOLD_BACK);
        take_exits(s);
        control_take(s->control, session_command, s);
        do_chores(s, clock_now());
    }
    if (raised)
        priority_restore();
    free(fds);
}

static void write_cost(struct session *s)
{
    struct rusage self;
    getrusage(RUSAGE_SELF, &self);
    struct writer_cost c = {.collector_cpu = clock_own_cpu(),
                            .collector_rss = (uint64_t)self.ru_maxrss * 1024,
                            .target_extra = s->target_extra,
                            .stacks_whole = s->stacks.whole,
                            .stacks_cut = s->stacks.cut};
    writer_set_cost(s->writer, &c);
}

static void write_ending(struct session *s)
{
    if (s->options->launch && s->result->ended) {
        put_number(s, "status", (uint32_t)s->result->status);
    }
    if (s->stop)
        writer_note(s->writer, NOTE_INFO, "recording was stopped before the program ended");
}

/* The way that was taken where the best one was closed; the notes of the recording tell more. */
static const char *way_taken(const struct session *s)
{
    if (!s->perf)
        return "perf events are refused here, so it was sampled by timers inside the processes";
    if (!perf_ability(s->perf)->kernel && !s->options->perf.no_kernel)
        return "this user may not see the kernel's side, so only the programs' own was recorded";
    return NULL;
}

static void finish(struct session *s)
{
    uint64_t end = clock_now();
    if (s->budget)
        budget_stop(s->budget, end);
    if (s->perf) {
        perf_disable(s->perf);
        collect_all(s, UINT64_MAX);
    }
    take_exits(s);
    reap_child(s);
    if (s->agents)
        inside_finish(s);
    pythons_finish(s);
    collect_finish(s, end);
    write_ending(s);
    note_limits(s);
    if (s->budget)
        budget_tell(s->budget);
    if (!s->options->no_symbols)
        session_symbolize(s);
    write_cost(s);
    s->result->left_running = s->child;
    s->result->samples = writer_samples(s->writer);
    s->result->lost = s->lost + writer_dropped(s->writer);
    s->result->processes = s->tasks.all_processes;
    s->result->threads = s->tasks.all_threads;
    s->result->duration = end - s->start;
    s->result->bytes = writer_bytes(s->writer);
    s->result->instead = way_taken(s);
}

static int begin(struct session *s, struct error *err)
{
    const struct session_options *o = s->options;
    int rc = writer_new(o->output, o->replace, &s->writer, err);
    if (rc)
        return rc;
    write_meta(s);
    modules_init(&s->modules, s->writer);
    tasks_init(&s->tasks, s->writer, &s->modules);
    stacks_init(&s->stacks, s->writer, &s->modules);
    s->exits = exits_open();
    s->resident = o->rss_rate ? resident_new(o->rss_rate) : NULL;
    if (o->launch)
        return start_command(s, err);
    s->begun = true;
    struct perf_options perf = o->perf;
    for (size_t i = 0; i < o->attach_count && !o->no_python; i++)
        perf.prompt |= python_files_likely(o->attach[i]);
    s->pythons = perf.prompt ? pythons_new() : NULL;
    perf.bell = s->pythons;
    s->perf = perf_new(&perf);
    declare_events(s);
    s->tasks.counters = perf_cpus(s->perf);
    raise_file_limit();
    rc = open_signals(s, err);
    if (!rc)
        rc = o->invite ? inside_expect(s, err) : inside_open_late(s, err);
    if (!rc)
        rc = attach_all(s, err);
    /* Last: who accepts finds everything in place, and may end at once. */
    return rc || !o->invite ? rc : inside_invite(s, err);
}

/* Who cannot be told anything records all the same. */
static void open_control(struct session *s)
{
    struct error err = {0};
    s->rate = s->options->perf.rate;
    writer_flush(s->writer, NULL);
    if (s->options->controllable && control_new(&s->control, &err)) {
        char note[400];
        snprintf(note, sizeof note, "this session takes no commands: %.300s", err.text);
        writer_note(s->writer, NOTE_INFO, note);
    }
}

static void release(struct session *s)
{
    control_free(s->control);
    budget_free(s->budget);
    perf_free(s->perf);
    inside_close(s);
    pythons_free(s->pythons);
    resident_free(s->resident);
    if (s->modules.writer) {
        tasks_release(&s->tasks);
        modules_release(&s->modules);
    }
    offcpu_release(&s->offcpu);
    if (s->signals > 0)
        close(s->signals);
    if (s->exits >= 0)
        close(s->exits);
}

int session_run(const struct session_options *o, struct session_result *r, struct error *err)
{
    struct session s = {.options = o, .result = r, .exits = -1};
    *r = (struct session_result){0};
    int rc = begin(&s, err);
    if (!rc) {
        open_control(&s);
        if (o->begun)
            o->begun(o->begun_context);
        s.budget = o->budget > 0 ? budget_new(&s) : NULL;
        collect(&s);
        finish(&s);
        rc = writer_free(s.writer, true, s.start + r->duration, err);
    } else if (s.writer) {
        writer_free(s.writer, false, 0, NULL);
        unlink(o->output);
    }
    release(&s);
    return rc;
}
