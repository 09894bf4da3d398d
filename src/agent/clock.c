/* See clock.h. */
#include "agent/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "agent/agent.h"
#include "agent/arch.h"
#include "agent/session.h"
#include "agent/signals.h"
#include "agent/timer.h"

#define PAGE 4096u

static uint64_t thread_cpu(void)
{
    struct timespec t = {0};
    raw2(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int event_open(uint64_t interval)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.type = PERF_TYPE_SOFTWARE;
    attr.size = sizeof attr;
    attr.config = PERF_COUNT_SW_CPU_CLOCK;
    attr.sample_period = interval;
    attr.disabled = 1;
    attr.exclude_hv = 1;
    attr.wakeup_events = 1;
    attr.sample_type = PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN;
    attr.exclude_callchain_user = 1;
    long fd = raw5(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd != -EACCES && fd != -EPERM)
        return (int)fd;
    attr.exclude_kernel = 1;
    attr.sample_type = PERF_SAMPLE_READ;
    return (int)raw5(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static bool signal_to(int fd, int32_t tid)
{
    struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = tid};
    return raw3(SYS_fcntl, fd, F_SETOWN_EX, &owner) == 0 &&
           raw3(SYS_fcntl, fd, F_SETSIG, agent_settings.signal) == 0 &&
           raw3(SYS_fcntl, fd, F_SETFL, O_ASYNC | O_RDWR) == 0;
}

static void *event_map(int fd, uint32_t size)
{
    long at = raw6(SYS_mmap, NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    return at < 0 && at > -(long)PAGE ? NULL : (void *)at;
}

/* Its mapping keeps the event when the descriptor is closed: one page of it and, where there is
 * room, one of ring, which the kernel writes to over and over. */
static void *event_start(int32_t tid, uint64_t interval, uint32_t *size)
{
    int fd = event_open(interval);
    if (fd < 0)
        return NULL;
    void *page = NULL;
    if (signal_to(fd, tid)) {
        *size = 2 * PAGE;
        page = event_map(fd, *size);
        if (!page) {
            *size = PAGE;
            page = event_map(fd, *size);
        }
    }
    if (page)
        raw3(SYS_ioctl, fd, PERF_EVENT_IOC_ENABLE, 0);
    raw1(SYS_close, fd);
    return page;
}

void clock_start(struct agent_thread *t)
{
    struct clock_state *c = &t->clock;
    if (c->page || c->refused || agent_quiet || !agent_settings.signal || !signals_guard())
        return;
    c->cpu = thread_cpu();
    t->interval = agent_settings.interval;
    c->head = c->newest = c->counted = 0;
    void *page = event_start(t->tid, t->interval, &c->size);
    if (!page) {
        c->refused = true;
        agent_declare(SEGMENT_CLOCK_REFUSED);
        return;
    }
    __atomic_store_n(&c->page, page, __ATOMIC_RELEASE);
    timer_change(t->timer - 1, 0);
}

void clock_stop(struct agent_thread *t)
{
    void *page = __atomic_exchange_n(&t->clock.page, NULL, __ATOMIC_ACQ_REL);
    if (page && !agent_quiet)
        raw2(SYS_munmap, page, t->clock.size);
}

bool clock_of_signal(const siginfo_t *info, struct agent_thread **thread)
{
    struct agent_thread *t = agent_self.thread;
    *thread = NULL;
    if (info->si_code != POLL_IN && info->si_code != POLL_HUP)
        return false;
    if (t && __atomic_load_n(&t->alive, __ATOMIC_ACQUIRE) && t->clock.page)
        *thread = t;
    return true;
}

/* A word of the ring, which is a page long and wraps. */
static uint64_t ring_word(const struct clock_state *c, uint64_t at)
{
    return *(const uint64_t *)((const char *)c->page + PAGE + at % PAGE);
}

/* How many samples lie between `from` and `head`; where the newest begins, else `head`. Records are
 * | type u32 | misc u16 | size u16 |, and of a sample | what the event has counted | and, with the
 * kernel's frames, | count | addresses |.
 */
static uint64_t ring_read(const struct clock_state *c, uint64_t from, uint64_t head,
                          uint64_t *newest)
{
    uint64_t count = 0;
    *newest = head;
    for (uint64_t at = from; at < head;) {
        uint64_t word = ring_word(c, at), size = word >> 48;
        if (size < 8 || size % 8 || size > head - at) {
            *newest = head;
            break;
        }
        count += (uint32_t)word == PERF_RECORD_SAMPLE;
        if ((uint32_t)word == PERF_RECORD_SAMPLE && size >= 16)
            *newest = at;
        at += size;
    }
    return count;
}

/* What the kernel's event has run since the sample before, by its own count: a timer that comes
 * late stands for more. The thread's CPU clock is another one: in a virtual machine it leaves out
 * what the host took away, which the kernel's samples and sums do not. */
static uint64_t ring_value(struct clock_state *c, uint64_t interval)
{
    const struct perf_event_mmap_page *page = c->page;
    uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), from = c->head, count;
    c->head = c->newest = head;
    if (head - from > PAGE) /* the oldest are written over: as many as there usually are */
        count = c->bytes ? (head - from) * c->samples / c->bytes : 1;
    else
        count = ring_read(c, from, head, &c->newest);
    c->samples += count;
    c->bytes += head - from;
    uint64_t now = c->newest < head ? ring_word(c, c->newest + 8) : c->counted + count * interval;
    uint64_t value = count && now > c->counted ? now - c->counted : 0;
    c->counted += value;
    return value;
}

uint64_t clock_value(struct agent_thread *t)
{
    if (agent_quiet)
        return t->interval;
    if (t->clock.size > PAGE && t->clock.page)
        return ring_value(&t->clock, t->interval);
    uint64_t now = thread_cpu(), value = now - t->clock.cpu;
    if (value < t->interval / 4)
        return 0;
    t->clock.cpu = now;
    return value;
}

size_t clock_kernel(struct agent_thread *t, uint64_t *out, size_t max)
{
    const struct clock_state *c = &t->clock;
    size_t count = 0;
    if (!c->page || c->size <= PAGE || c->newest >= c->head)
        return 0;
    uint64_t at = c->newest, words = (ring_word(c, at) >> 48) / 8;
    uint64_t left = words > 3 ? words - 3 : 0, said = left ? ring_word(c, at + 16) : 0;
    /* Markers of whose frames follow are not addresses; they are the last 4096 numbers. */
    for (uint64_t i = 0; i < left && i < said && count < max; i++) {
        uint64_t word = ring_word(c, at + 24 + 8 * i);
        if (word < (uint64_t)-4096)
            out[count++] = word;
    }
    return count;
}

/* The calling thread, unless this is vfork's child, which has our memory but no event. */
static struct agent_thread *caller(void)
{
    struct agent_thread *t = agent_self.thread;
    return t && !agent_quiet && agent_self.tid == (int32_t)raw0(SYS_gettid) ? t : NULL;
}

/* The kernel's own clock, which sees what is left, is told to look again by a name that stays as it
 * is: see capture/tree_filter.c. */
static void clock_hand_over(struct agent_thread *t)
{
    char name[16] = "";
    __atomic_store_n(&t->slot->end, agent_now(), __ATOMIC_RELEASE);
    if (raw2(SYS_prctl, PR_GET_NAME, name) == 0)
        raw2(SYS_prctl, PR_SET_NAME, name);
}

bool clock_is_handed_over(void)
{
    const struct segment_header *h = agent_process ? agent_process->segment : NULL;
    return h && __atomic_load_n(&h->handed, __ATOMIC_RELAXED);
}

void clock_leave(struct agent_thread *t)
{
    if (t->slot->end)
        return;
    clock_stop(t);
    if (!agent_quiet)
        timer_change(t->timer - 1, 0);
    __atomic_store_n(&t->slot->end, agent_now(), __ATOMIC_RELEASE);
}

void clock_pause(void)
{
    struct agent_thread *t = caller();
    if (!t || !t->clock.page)
        return;
    clock_stop(t);
    if (t->slot)
        clock_hand_over(t);
}

void clock_resume(void)
{
    struct agent_thread *t = caller();
    if (!t || !agent_settings.python_only || !t->slot || clock_is_handed_over())
        return;
    clock_start(t);
    __atomic_store_n(&t->slot->end, 0, __ATOMIC_RELEASE);
}
