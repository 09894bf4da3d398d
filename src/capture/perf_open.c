/* Opening perf events, with a next-best way for what this kernel or user may not do. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "capture/cpus.h"
#include "capture/perf_internal.h"

#define TASK_RING_PAGES 512
#define TASK_RING_PAGES_SMALL 32
#define COUNT_RING_PAGES 128
#define COUNT_RING_PAGES_SMALL 8
#define SAMPLE_RING_PAGES 2048
#define SAMPLE_RING_PAGES_MIN 16
#define SWITCH_RING_PAGES 8192   /* switches come by the ten thousand a second */
#define SWITCH_RINGS_PAGES 65536 /* at most, of all CPUs */
/* Copied are only as many bytes as the stack has; room in the ring is taken for all of them. */
#define STACK_BYTES_LARGE 61440
#define STACK_BYTES_FAST 32768 /* at high rates */
#define STACK_BYTES_SMALL 16384
#define RATE_HIGH 2000

static int perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu)
{
    return (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

void perf_find_cpus(struct perf *p)
{
    struct cpus online = {0};
    cpus_online(&online);
    for (size_t i = 0; i < online.len; i++)
        *vector_push(&p->cpus) = (struct perf_cpu){.cpu = online.data[i]};
    vector_release(&online);
}

/* What every event has: who it follows, which clock, and the trailer of its records. */
static void set_common(const struct perf *p, struct perf_event_attr *a, bool on_exec)
{
    a->disabled = 1;
    a->enable_on_exec = on_exec;
    a->inherit = 1;
    a->inherit_thread = p->options.threads_only;
    a->sample_id_all = 1;
    a->use_clockid = 1;
    a->clockid = CLOCK_MONOTONIC;
    a->watermark = 1;
}

/* Of a clock all; where samples may come as fast as the program causes them, less. */
static size_t stack_bytes(const struct perf *p, const struct perf_event_attr *a)
{
    size_t bytes = p->ability.stack_bytes;
    size_t most = a->freq ? STACK_BYTES_FAST
                  : a->type == PERF_TYPE_SOFTWARE && a->config <= PERF_COUNT_SW_TASK_CLOCK
                      ? bytes
                      : STACK_BYTES_SMALL;
    return bytes < most ? bytes : most;
}

static bool has_bell(const struct perf *p)
{
    return p->filter && tree_filter_bell(p->filter) >= 0;
}

static void set_sampling(const struct perf *p, struct perf_event_attr *a)
{
    a->sample_type = PERF_SAMPLE_FIELDS;
    a->sample_regs_user = UNWIND_PERF_MASK;
    a->sample_stack_user = (uint32_t)stack_bytes(p, a);
    a->exclude_callchain_user = 1;
    a->exclude_callchain_kernel = !p->ability.kernel;
    a->exclude_guest = 1;
    if (!p->ability.kernel)
        a->exclude_kernel = 1;
    bool prompt = p->options.prompt && !has_bell(p);
    a->watermark = !prompt;
    if (prompt)
        a->wakeup_events = 1;
    else
        a->wakeup_watermark = (uint32_t)(p->ability.ring_bytes / 4);
}

/*
 * The event that tells of forks, execs, mappings and exits. It and the counter that it leads are
 * pinned, in one group, and opened on all CPUs before anything else. Where the kernel swaps the
 * contexts of two threads, it swaps counts too, pair by pair of both lists, and looks only at one
 * side whether it should: a child's list has pinned groups first and the others by CPU and kind, so
 * in any other order the ns of the counter end up as page faults.
 */
static void make_task_attr(const struct perf *p, struct perf_event_attr *a, bool on_exec)
{
    *a = (struct perf_event_attr){
        .size = sizeof *a, .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY};
    set_common(p, a, on_exec);
    a->sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
    a->exclude_kernel = !p->ability.kernel;
    a->mmap = a->mmap2 = 1;
    a->comm = a->comm_exec = 1;
    a->task = 1;
    a->build_id = p->ability.build_ids;
    a->context_switch = p->options.wall;
    a->pinned = 1;
    a->wakeup_watermark = (uint32_t)(p->ability.task_ring_bytes / 4);
}

static int explain(const struct perf *p, const char *what, struct error *err, bool *unavailable)
{
    (void)p;
    int code = errno;
    *unavailable = code == EACCES || code == EPERM || code == ENOSYS;
    if (code == EACCES || code == EPERM)
        return error_set(err, FAULT_SYSTEM,
                         "the kernel does not let this user open perf events (%s): run as root, or "
                         "'sysctl kernel.perf_event_paranoid=1', or give sonde CAP_PERFMON",
                         strerror(code));
    if (code == ENOSYS)
        return error_set(err, FAULT_SYSTEM,
                         "perf events are switched off here (seccomp filter or kernel built "
                         "without them)");
    if (code == ENOENT || code == EOPNOTSUPP || code == ENODEV)
        return error_set(err, FAULT_SYSTEM,
                         "the event %s cannot be sampled on this machine (no such counter: a "
                         "virtual machine without a PMU?): use cpu, or see 'perf list'",
                         what);
    if (code == EMFILE || code == ENFILE)
        return error_set(err, FAULT_SYSTEM,
                         "too many open files for one event a thread and CPU: raise 'ulimit -n'");
    if (code == ESRCH)
        return error_set(err, FAULT_MISSING, "the task ended before it could be observed");
    errno = code;
    return error_errno(err, FAULT_SYSTEM, "cannot open the perf event %s", what);
}

/* Tries to map a ring from `pages` down to `least`; returns the pages, or 0 with errno. */
static size_t open_ring(struct ring *r, int fd, size_t pages, size_t least)
{
    for (; pages >= least; pages /= 2) {
        int rc = ring_open(r, fd, pages);
        if (!rc)
            return pages;
        errno = -rc;
        if (errno != EPERM && errno != ENOMEM)
            break;
    }
    return 0;
}

static int keep(struct perf *p, int fd, int event)
{
    uint64_t id = 0;
    *vector_push(&p->fds) = (struct perf_fd){.fd = fd, .event = event};
    if (event >= 0 && ioctl(fd, PERF_EVENT_IOC_ID, &id) == 0)
        map_put(&p->ids, id, 0, (uint64_t)event, NULL);
    return fd;
}

/* Opens the task event, giving up in turn build-ids and the kernel side. */
static int open_task_event(struct perf *p, pid_t tid, int cpu, bool on_exec)
{
    for (;;) {
        struct perf_event_attr a;
        make_task_attr(p, &a, on_exec);
        int fd = perf_event_open(&a, tid, cpu);
        if (fd >= 0)
            return fd;
        if ((errno == EINVAL || errno == E2BIG) && p->ability.build_ids)
            p->ability.build_ids = false;
        else if ((errno == EACCES || errno == EPERM) && p->ability.kernel)
            p->ability.kernel = false;
        else
            return -1;
    }
}

/* Its descriptor, or -1. */
static int add_task_event(struct perf *p, struct perf_cpu *c, pid_t tid, bool on_exec)
{
    int fd = open_task_event(p, tid, c->cpu, on_exec);
    if (fd < 0)
        return -1;
    keep(p, fd, PERF_OF_TASKS);
    if (c->tasks_fd)
        return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, c->tasks_fd) ? -1 : fd;
    if (!open_ring(&c->tasks, fd, p->ability.task_ring_bytes / 4096, 2))
        return -1;
    c->tasks_fd = fd;
    *vector_push(&p->poll) = fd;
    return fd;
}

/*
 * CPU time, told at each thread's end. The kernel writes the counts of all CPUs from the one that
 * the thread ends on, into rings that are made for one writer each: a count may be overwritten. In
 * rings of their own they do no harm to other records.
 */
static int add_counter(struct perf *p, struct perf_cpu *c, pid_t tid, bool on_exec, int leader)
{
    struct perf_event_attr a = {
        .size = sizeof a, .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK};
    set_common(p, &a, on_exec);
    a.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
    a.exclude_kernel = !p->ability.kernel;
    a.inherit_stat = 1;
    int fd = event_open(&a, tid, c->cpu, leader);
    if (fd < 0)
        return -1;
    keep(p, fd, PERF_OF_COUNTS);
    if (c->counts_fd)
        return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, c->counts_fd);
    bool small = p->ability.task_ring_bytes < TASK_RING_PAGES * 4096;
    if (!open_ring(&c->counts, fd, small ? COUNT_RING_PAGES_SMALL : COUNT_RING_PAGES, 1))
        return -1;
    c->counts_fd = fd;
    return 0;
}

static int open_sampler(struct perf *p, struct perf_cpu *c, pid_t tid, struct perf_event_attr *a)
{
    set_sampling(p, a);
    a->read_format = p->tells_lost ? PERF_FORMAT_LOST : 0;
    int fd = perf_event_open(a, tid, c->cpu);
    if (fd < 0 && errno == EINVAL && p->tells_lost) {
        p->tells_lost = false; /* a kernel before 6.0 */
        a->read_format = 0;
        fd = perf_event_open(a, tid, c->cpu);
    }
    return fd;
}

/* The event's samples go to the CPU's ring, which the first of them makes. */
static int keep_sampler(struct perf *p, struct perf_cpu *c, int fd, int event)
{
    keep(p, fd, event);
    if (c->samples_fd)
        return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, c->samples_fd);
    size_t pages = open_ring(&c->samples, fd, p->ability.ring_bytes / 4096, SAMPLE_RING_PAGES_MIN);
    if (!pages)
        return -1;
    p->ability.ring_bytes = pages * 4096;
    c->samples_fd = fd;
    *vector_push(&p->poll) = fd;
    return 0;
}

static int add_sampler(struct perf *p, struct perf_cpu *c, pid_t tid, int event,
                       struct perf_event_attr *a, bool on_exec)
{
    set_common(p, a, on_exec);
    int fd = open_sampler(p, c, tid, a);
    if (fd < 0)
        return -1;
    if (has_bell(p))
        tree_filter_ring(p->filter, fd);
    return keep_sampler(p, c, fd, event);
}

static size_t sample_pages(const struct perf *p)
{
    size_t pages = SAMPLE_RING_PAGES;
    while (p->options.wall && pages < SWITCH_RING_PAGES &&
           2 * pages * p->cpus.len <= SWITCH_RINGS_PAGES)
        pages *= 2;
    return pages;
}

static void choose_sizes(struct perf *p)
{
    bool large = geteuid() == 0;
    p->ability.stack_bytes = !large                        ? STACK_BYTES_SMALL
                             : p->options.rate > RATE_HIGH ? STACK_BYTES_FAST
                                                           : STACK_BYTES_LARGE;
    p->ability.ring_bytes = (large ? sample_pages(p) : SAMPLE_RING_PAGES / 16) * 4096;
    p->ability.task_ring_bytes = (large ? TASK_RING_PAGES : TASK_RING_PAGES_SMALL) * 4096;
}

/*
 * The clock of a CPU, kept to the tree: see tree_filter.h. Pinned, since the tasks' events are: the
 * kernel would otherwise stop and start it at every switch from one task to another.
 */
static int open_clock(struct perf *p, struct perf_cpu *c, int event, bool now)
{
    struct perf_event_attr a;
    event_attr(&p->options.event[event], p->options.rate, &a);
    set_common(p, &a, false);
    a.inherit = a.inherit_thread = 0;
    a.disabled = !now;
    a.pinned = 1;
    int fd = open_sampler(p, c, -1, &a);
    if (fd >= 0 && tree_filter_apply(p->filter, fd)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* On every CPU or on none. */
static int add_clocks(struct perf *p, int event, bool now)
{
    int *fds = memory_array(p->cpus.len, sizeof *fds), rc = 0;
    size_t n = 0;
    while (n < p->cpus.len && (fds[n] = open_clock(p, &p->cpus.data[n], event, now)) >= 0)
        n++;
    if (n < p->cpus.len) {
        while (n > 0)
            close(fds[--n]);
        rc = -1;
    }
    for (size_t i = 0; i < n && !rc; i++)
        rc = keep_sampler(p, &p->cpus.data[i], fds[i], event);
    free(fds);
    return rc;
}

static bool is_clock(const struct event *e)
{
    return e->type == PERF_TYPE_SOFTWARE && e->config == PERF_COUNT_SW_CPU_CLOCK && e->by_rate;
}

void perf_add_process(struct perf *p, pid_t pid, bool now)
{
    if (!p->ability.stack_bytes)
        choose_sizes(p);
    if (!p->filter && !p->tried_filter) {
        p->tried_filter = true;
        size_t i = 0;
        while (i < p->options.events && !is_clock(&p->options.event[i]))
            i++;
        if (i < p->options.events)
            p->filter = tree_filter_new(!p->options.threads_only, p->options.bell);
        if (p->filter && add_clocks(p, (int)i, now)) {
            tree_filter_free(p->filter);
            p->filter = NULL;
        }
        if (p->filter && has_bell(p))
            *vector_push(&p->poll) = tree_filter_bell(p->filter);
        p->clock = (int)i;
    }
    if (p->filter)
        tree_filter_add(p->filter, pid);
}

/* The stack that blocks, at every switch away from the CPU. */
static void make_switch_attr(struct perf_event_attr *a)
{
    *a = (struct perf_event_attr){.size = sizeof *a,
                                  .type = PERF_TYPE_SOFTWARE,
                                  .config = PERF_COUNT_SW_CONTEXT_SWITCHES,
                                  .sample_period = 1};
}

static int add_pinned(struct perf *p, struct perf_cpu *c, pid_t tid, bool on_exec,
                      bool *unavailable, struct error *err)
{
    int leader = add_task_event(p, c, tid, on_exec);
    if (leader < 0)
        return explain(p, "dummy", err, unavailable);
    if (add_counter(p, c, tid, on_exec, leader))
        return explain(p, "task-clock", err, unavailable);
    return 0;
}

static int add_samplers(struct perf *p, struct perf_cpu *c, pid_t tid, bool on_exec,
                        bool *unavailable, struct error *err)
{
    struct perf_event_attr a;
    for (size_t i = 0; i < p->options.events; i++) {
        if ((p->filter && (int)i == p->clock) || (int)i == perf_switches(p))
            continue;
        event_attr(&p->options.event[i], p->options.rate, &a);
        if (add_sampler(p, c, tid, (int)i, &a, on_exec))
            return explain(p, p->options.event[i].name, err, unavailable);
    }
    if (p->options.wall && p->ability.kernel) {
        make_switch_attr(&a);
        if (add_sampler(p, c, tid, PERF_EVENTS_MAX, &a, on_exec))
            return explain(p, "context-switches", err, unavailable);
    }
    return 0;
}

int perf_add_task(struct perf *p, pid_t tid, bool on_exec, bool *unavailable, struct error *err)
{
    *unavailable = false;
    if (!p->ability.stack_bytes)
        choose_sizes(p);
    int rc = 0;
    for (size_t i = 0; i < p->cpus.len && !rc; i++)
        rc = add_pinned(p, &p->cpus.data[i], tid, on_exec, unavailable, err);
    for (size_t i = 0; i < p->cpus.len && !rc; i++)
        rc = add_samplers(p, &p->cpus.data[i], tid, on_exec, unavailable, err);
    return rc;
}
