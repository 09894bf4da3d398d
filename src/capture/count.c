/* A counted run; see count.h. */
#include "capture/count.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "capture/count_threads.h"
#include "capture/proc.h"
#include "capture/usage.h"

#define DRAIN_MS 100
#define RSS_SLACK (1 << 20) /* touched by us between fork and exec */

struct run {
    const struct count_options *o;
    struct counter_plan *plan;
    struct counts *c;
    struct count_result *r;
    struct counters counters;
    struct count_threads *threads;
    struct launch launch;
    pid_t child;
    int signals;
    sigset_t mask;
    uint64_t start, end, tick;
    struct counts_usage usage;
    struct counts_usage *before; /* of the attached */
    int *pidfds;
    struct counts_value *earlier; /* at the last tick */
    bool stop;
    uint64_t rss_before; /* of the command before its exec, which its maximum starts from */
};

static bool counts_command(const struct count_options *o)
{
    return !o->attach_count && !o->all_cpus;
}

static int add_task(struct run *x, pid_t pid, pid_t tid, bool on_exec, struct error *err)
{
    if (x->threads)
        return count_threads_add(x->threads, pid, tid, on_exec, err);
    return counters_add_task(&x->counters, tid, on_exec ? COUNTER_ON_EXEC : COUNTER_TREE, err);
}

static int add_process(struct run *x, pid_t pid, struct error *err)
{
    struct pids threads = {0};
    proc_threads(pid, &threads);
    int rc = 0;
    for (size_t i = 0; i < threads.len && !rc; i++) {
        rc = add_task(x, pid, threads.data[i], false, err);
        if (rc == FAULT_MISSING)
            rc = 0; /* it ended meanwhile */
    }
    vector_release(&threads);
    return rc;
}

static int add_attached(struct run *x, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < x->o->attach_count && !rc; i++) {
        struct pids tree = {0};
        pid_t pid = x->o->attach[i];
        char state = proc_state(pid);
        if (!state || state == 'Z' || state == 'X')
            return error_set(err, FAULT_MISSING, "there is no process %d%s", pid,
                             state ? ": it has ended and waits for its parent (a zombie)" : "");
        x->pidfds[i] = (int)syscall(SYS_pidfd_open, pid, 0);
        usage_of_process(pid, &x->before[i]);
        rc = add_process(x, pid, err);
        proc_descendants(pid, &tree);
        for (size_t k = 0; k < tree.len && !rc; k++)
            rc = add_process(x, tree.data[k], err);
        vector_release(&tree);
    }
    return rc;
}

static int open_counters(struct run *x, struct error *err)
{
    counters_init(&x->counters, x->plan, x->c);
    if (x->o->per_thread)
        x->threads = count_threads_new(x->plan, x->c);
    if (x->o->all_cpus)
        return counters_add_cpus(&x->counters, err);
    if (x->o->attach_count)
        return add_attached(x, err);
    return add_task(x, x->launch.pid, x->launch.pid, true, err);
}

static int open_signals(struct run *x, struct error *err)
{
    int wanted[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        sigaddset(&set, wanted[i]);
    sigprocmask(SIG_BLOCK, &set, &x->mask);
    x->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return x->signals < 0 ? error_errno(err, FAULT_SYSTEM, "cannot wait for signals") : 0;
}

static void reap(struct run *x)
{
    siginfo_t info = {0};
    struct rusage usage;
    if (!x->child || waitid(P_PID, (id_t)x->child, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
        !info.si_pid)
        return;
    x->end = clock_now();
    usage_add_io(x->child, &x->usage);
    usage_add_delay(x->child, &x->usage);
    if (wait4(x->child, &x->r->status, 0, &usage) == x->child && counts_command(x->o))
        usage_of_child(&usage, &x->usage);
    x->usage.rss_bound = x->usage.max_rss <= x->rss_before + RSS_SLACK;
    x->r->ended = true;
    x->child = 0;
}

/* From the terminal the command has got it too; from anyone else it is for us to pass on. */
static void take_signals(struct run *x)
{
    struct signalfd_siginfo info;
    while (read(x->signals, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGCHLD) {
            reap(x);
            continue;
        }
        x->r->interrupted = true;
        if (x->child && (info.ssi_signo != SIGINT || info.ssi_code == SI_USER))
            kill(x->child, (int)info.ssi_signo);
        x->stop |= !x->child;
    }
}

static void read_values(struct run *x, struct counts_value *out)
{
    if (x->threads)
        count_threads_drain(x->threads);
    else
        counters_read(&x->counters, out);
}

static void take_interval(struct run *x, uint64_t now)
{
    struct counts_value *values = counts_values(x->c), *between = counts_values(x->c);
    read_values(x, values);
    uint64_t length = now - x->start - (x->c->intervals.len && x->tick ? x->tick : 0);
    for (size_t i = 0; i < x->c->events.len; i++)
        between[i] = x->earlier ? counts_minus(values[i], x->earlier[i]) : values[i];
    *vector_push(&x->c->intervals) =
        (struct counts_interval){.end = now - x->start, .length = length, .values = between};
    x->earlier = values;
    x->tick = now - x->start;
    if (x->o->on_interval)
        x->o->on_interval(x->o->context, x->c);
}

static bool attached_ended(struct run *x)
{
    struct pollfd one = {.events = POLLIN};
    for (size_t i = 0; i < x->o->attach_count; i++) {
        one.fd = x->pidfds[i];
        if (one.fd >= 0 ? poll(&one, 1, 0) == 0 : proc_state(x->o->attach[i]) != 0)
            return false;
    }
    return true;
}

/* Until when to sleep, in ms; -1 for as long as it takes. */
static int next_wait(const struct run *x, uint64_t now)
{
    uint64_t until = UINT64_MAX;
    if (x->o->duration)
        until = x->start + x->o->duration;
    if (x->o->interval && x->start + x->tick + x->o->interval < until)
        until = x->start + x->tick + x->o->interval;
    if (x->o->attach_count && now + DRAIN_MS * 1000000ull < until)
        until = now + DRAIN_MS * 1000000ull;
    if (until == UINT64_MAX)
        return -1;
    return until <= now ? 0 : (int)((until - now) / 1000000) + 1;
}

static void wait_for_news(struct run *x, uint64_t now)
{
    const int *rings = NULL;
    size_t n = x->threads ? count_threads_fds(x->threads, &rings) : 0;
    struct pollfd *fds = memory_array(n + 1, sizeof *fds);
    fds[0] = (struct pollfd){.fd = x->signals, .events = POLLIN};
    for (size_t i = 0; i < n; i++)
        fds[i + 1] = (struct pollfd){.fd = rings[i], .events = POLLIN};
    int wait = next_wait(x, now);
    if (n && (wait < 0 || wait > DRAIN_MS))
        wait = DRAIN_MS; /* rings tell of nothing below their watermark */
    poll(fds, n + 1, wait);
    free(fds);
}

static void watch(struct run *x)
{
    for (uint64_t now = clock_now(); !x->stop && !x->r->ended; now = clock_now()) {
        if (x->o->duration && now - x->start >= x->o->duration)
            break;
        wait_for_news(x, now);
        take_signals(x);
        if (x->threads)
            count_threads_drain(x->threads);
        now = clock_now();
        if (x->o->interval && now - x->start >= x->tick + x->o->interval && !x->r->ended)
            take_interval(x, now);
        if (x->o->attach_count && attached_ended(x))
            break;
    }
}

/* The command that outlived the time is no longer wanted: it is asked to end, as timeout(1) does.
 */
static void end_command(struct run *x)
{
    int status;
    if (!x->child)
        return;
    kill(x->child, SIGTERM);
    struct pollfd fd = {.fd = x->signals, .events = POLLIN};
    for (int i = 0; i < 20 && x->child; i++) {
        poll(&fd, 1, 100);
        take_signals(x);
    }
    if (x->child) {
        kill(x->child, SIGKILL);
        if (waitpid(x->child, &status, 0) == x->child)
            x->r->status = status;
    }
    x->r->ended = true;
    x->child = 0;
}

static void add_attached_usage(struct run *x)
{
    struct counts_usage sum = {.io_known = true, .delay_known = true}, now, one;
    for (size_t i = 0; i < x->o->attach_count; i++) {
        usage_of_process(x->o->attach[i], &now);
        usage_between(&x->before[i], &now, &one);
        sum.user += one.user;
        sum.sys += one.sys;
        sum.minor_faults += one.minor_faults;
        sum.major_faults += one.major_faults;
        sum.voluntary += one.voluntary;
        sum.involuntary += one.involuntary;
        sum.read_bytes += one.read_bytes;
        sum.written_bytes += one.written_bytes;
        sum.delayed += one.delayed;
        sum.max_rss += one.max_rss;
        sum.io_known &= one.io_known;
    }
    x->usage = sum;
}

static void finish(struct run *x, uint64_t stolen)
{
    struct counts_value *values = counts_values(x->c);
    if (!x->end)
        x->end = clock_now();
    if (x->threads)
        count_threads_finish(x->threads, values);
    else
        counters_read(&x->counters, values);
    if (x->o->attach_count)
        add_attached_usage(x);
    x->usage.real = x->end - x->start;
    x->usage.stolen = usage_stolen() - stolen;
    if (!x->o->all_cpus)
        usage_fill(x->c, &x->usage, values);
    if (x->o->interval && x->end > x->start + x->tick)
        take_interval(x, x->end);
    *vector_push(&x->c->runs) = (struct counts_run){.usage = x->usage, .values = values};
}

static int start(struct run *x, struct error *err)
{
    int rc = x->o->launch ? launch_start(x->o->launch, &x->launch, err) : 0;
    if (rc)
        return rc;
    rc = open_counters(x, err);
    if (!rc)
        rc = open_signals(x, err);
    if (rc) {
        if (x->o->launch)
            launch_cancel(&x->launch);
        return rc;
    }
    if (x->o->launch)
        x->rss_before = proc_peak_rss(x->launch.pid);
    x->start = clock_now();
    if (!counts_command(x->o)) {
        counters_enable(&x->counters);
        if (x->threads)
            count_threads_enable(x->threads);
    }
    if (x->o->launch) {
        rc = launch_go(&x->launch, x->o->launch, &x->r->exec_errno, err);
        x->child = rc ? 0 : x->launch.pid;
        x->r->started = !rc;
    }
    return rc;
}

int count_run(const struct count_options *o, struct counter_plan *plan, struct counts *c,
              struct count_result *r, struct error *err)
{
    struct run x = {.o = o, .plan = plan, .c = c, .r = r, .signals = -1};
    *r = (struct count_result){0};
    x.before = memory_array(o->attach_count + 1, sizeof *x.before);
    x.pidfds = memory_array(o->attach_count + 1, sizeof *x.pidfds);
    memset(x.pidfds, 0xff, o->attach_count * sizeof *x.pidfds);
    uint64_t stolen = usage_stolen();
    int rc = start(&x, err);
    if (!rc) {
        reap(&x); /* it may have ended before the signal was waited for */
        watch(&x);
        end_command(&x);
        finish(&x, stolen);
    }
    if (x.signals >= 0) {
        close(x.signals);
        sigprocmask(SIG_SETMASK, &x.mask, NULL);
    }
    for (size_t i = 0; i < o->attach_count; i++)
        if (x.pidfds[i] >= 0)
            close(x.pidfds[i]);
    free(x.pidfds);
    free(x.before);
    counters_release(&x.counters);
    count_threads_free(x.threads);
    return rc;
}
