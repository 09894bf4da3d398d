/* See clock.h. */
#include "agent/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "agent/agent.h"
#include "agent/arch.h"
#include "agent/signals.h"
#include "agent/timer.h"

#define FD_LOW 1024             /* beyond what select can name */
#define FD_ROOM 64              /* left to the program under a small limit */
#define WATCH_NS 100000000ull   /* of the slowed timer */
#define WATCH_INTERVALS 16      /* and that many samples must have been due */
#define CREDIT 64               /* signals that may be under way */
#define OWNER_THREAD 0          /* F_OWNER_TID */

/* What a fork's child must close: not wiped with the rest. */
static struct {
    int32_t fd; /* + 1 */
    uint64_t id;
} opened[AGENT_SLOTS];
static uint32_t opened_mark; /* places at and above this were never used */

static uint64_t thread_cpu(void)
{
    struct timespec t = {0};
    raw2(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t watch_interval(void)
{
    uint64_t due = WATCH_INTERVALS * agent_settings.interval;
    return due > WATCH_NS ? due : WATCH_NS;
}

static int event_open(void)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.type = PERF_TYPE_SOFTWARE;
    attr.size = sizeof attr;
    attr.config = PERF_COUNT_SW_CPU_CLOCK;
    attr.sample_period = agent_settings.interval;
    attr.disabled = 1;
    attr.exclude_hv = 1;
    attr.wakeup_events = 1;
    long fd = raw5(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd != -EACCES && fd != -EPERM)
        return (int)fd;
    attr.exclude_kernel = 1;
    return (int)raw5(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* A number that no program counts on. */
static int move_away(int fd)
{
    struct rlimit limit = {.rlim_cur = FD_LOW};
    raw4(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit);
    uint64_t low = limit.rlim_cur > FD_LOW + FD_ROOM    ? FD_LOW
                   : limit.rlim_cur > 2 * FD_ROOM       ? limit.rlim_cur - FD_ROOM
                                                        : limit.rlim_cur;
    long moved = raw3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, low);
    raw1(SYS_close, fd);
    return (int)moved;
}

static bool signal_to(int fd, int32_t tid)
{
    struct {
        int type, pid;
    } owner = {OWNER_THREAD, tid};
    return raw3(SYS_fcntl, fd, F_SETOWN_EX, &owner) == 0 &&
           raw3(SYS_fcntl, fd, F_SETSIG, agent_settings.signal) == 0 &&
           raw3(SYS_fcntl, fd, F_SETFL, O_ASYNC | O_RDWR) == 0;
}

static bool is_event(int fd, uint64_t id)
{
    uint64_t found = 0;
    return raw3(SYS_ioctl, fd, PERF_EVENT_IOC_ID, &found) == 0 && found == id;
}

static void close_event(int fd, uint64_t id)
{
    if (!is_event(fd, id))
        return;
    raw3(SYS_ioctl, fd, PERF_EVENT_IOC_DISABLE, 0); /* a child may hold it open still */
    raw1(SYS_close, fd);
}

static void remember(const struct agent_thread *t)
{
    opened[t->index].id = t->clock.id;
    __atomic_store_n(&opened[t->index].fd, t->clock.fd, __ATOMIC_RELEASE);
    uint32_t mark = __atomic_load_n(&opened_mark, __ATOMIC_RELAXED);
    while (mark <= t->index &&
           !__atomic_compare_exchange_n(&opened_mark, &mark, t->index + 1, true, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
        ;
}

static void refuse(struct agent_thread *t)
{
    t->clock.refused = true;
    agent_declare(SEGMENT_CLOCK_REFUSED);
}

void clock_start(struct agent_thread *t)
{
    struct clock_state *c = &t->clock;
    if (c->fd || c->refused || agent_quiet || !signals_guard())
        return;
    int fd = event_open();
    fd = fd < 0 ? fd : move_away(fd);
    if (fd < 0) {
        refuse(t);
        return;
    }
    if (!signal_to(fd, t->tid) || raw3(SYS_ioctl, fd, PERF_EVENT_IOC_ID, &c->id) != 0) {
        raw1(SYS_close, fd);
        refuse(t);
        return;
    }
    c->cpu = thread_cpu();
    c->ticks = 1;
    __atomic_store_n(&c->fd, fd + 1, __ATOMIC_RELEASE);
    remember(t);
    timer_change(t->timer - 1, watch_interval());
    raw3(SYS_ioctl, fd, PERF_EVENT_IOC_REFRESH, CREDIT);
}

void clock_stop(struct agent_thread *t)
{
    int fd = __atomic_exchange_n(&t->clock.fd, 0, __ATOMIC_ACQ_REL);
    if (fd <= 0)
        return;
    __atomic_store_n(&opened[t->index].fd, 0, __ATOMIC_RELEASE);
    if (!agent_quiet)
        close_event(fd - 1, t->clock.id);
}

bool clock_of_signal(const siginfo_t *info, struct agent_thread **thread)
{
    struct agent_thread *t = agent_self.thread;
    *thread = NULL;
    if (info->si_code != POLL_IN && info->si_code != POLL_HUP)
        return false;
    if (t && __atomic_load_n(&t->alive, __ATOMIC_ACQUIRE) && t->clock.fd == info->si_fd + 1)
        *thread = t;
    return true;
}

uint64_t clock_value(struct agent_thread *t)
{
    if (agent_quiet)
        return agent_settings.interval;
    struct clock_state *c = &t->clock;
    uint64_t now = thread_cpu(), value = now - c->cpu;
    c->ticks++;
    if (++c->used >= CREDIT / 2) {
        raw3(SYS_ioctl, c->fd - 1, PERF_EVENT_IOC_REFRESH, c->used);
        c->used = 0;
    }
    if (value < agent_settings.interval / 4)
        return 0;
    c->cpu = now;
    return value;
}

uint64_t clock_watch(struct agent_thread *t)
{
    struct clock_state *c = &t->clock;
    if (is_event(c->fd - 1, c->id)) {
        if (!c->ticks) { /* not one in all that time: signals went astray */
            raw3(SYS_ioctl, c->fd - 1, PERF_EVENT_IOC_REFRESH, CREDIT);
            c->used = 0;
        }
        c->ticks = 0;
        return 0;
    }
    __atomic_store_n(&c->fd, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&opened[t->index].fd, 0, __ATOMIC_RELEASE);
    c->refused = true;
    agent_declare(SEGMENT_CLOCK_LOST);
    timer_change(t->timer - 1, agent_settings.interval);
    return thread_cpu() - c->cpu;
}

/* The calling thread's, unless this is vfork's child, which has our memory but no event. */
static int own_event(void)
{
    struct agent_thread *t = agent_self.thread;
    if (!t || !t->clock.fd || agent_quiet || agent_self.tid != (int32_t)raw0(SYS_gettid) ||
        !is_event(t->clock.fd - 1, t->clock.id))
        return -1;
    return t->clock.fd - 1;
}

void clock_pause(void)
{
    int fd = own_event();
    if (fd >= 0)
        raw3(SYS_ioctl, fd, PERF_EVENT_IOC_DISABLE, 0);
}

void clock_resume(void)
{
    int fd = own_event();
    if (fd >= 0)
        raw3(SYS_ioctl, fd, PERF_EVENT_IOC_ENABLE, 0);
}

void clock_forget(void)
{
    uint32_t mark = __atomic_load_n(&opened_mark, __ATOMIC_ACQUIRE);
    if (!mark)
        return;
    __atomic_store_n(&opened_mark, 0, __ATOMIC_RELEASE);
    for (uint32_t i = 0; i < mark; i++) {
        int fd = __atomic_exchange_n(&opened[i].fd, 0, __ATOMIC_ACQ_REL);
        if (fd > 0 && is_event(fd - 1, opened[i].id))
            raw1(SYS_close, fd - 1);
    }
}
