/*
 * CPU samples of a process that keeps them itself: a timer's signal, a walk, and one more for its
 * stack in a table. The file is gperftools' own: words, in the machine's order,
 *
 *     0 3 0 period(µs) 0 | samples, addresses, address … | … | 0 1 0 | text of /proc/self/maps
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "agent/alone.h"
#include "agent/arch.h"
#include "agent/real.h"
#include "agent/stack.h"

#define ENTRIES 16384u /* stacks; a power of two */
#define FRAMES (1u << 20)
#define PROBES 64u
#define DEPTH 254u

struct entry {
    uint64_t hash; /* 0: free */
    uint64_t samples;
    uint32_t first, count; /* count is set last */
};

struct table {
    struct entry entry[ENTRIES];
    uint64_t frame[FRAMES];
    uint32_t frames_used;
    uint32_t inside; /* handlers that are at work on it */
    uint64_t lost;
};

struct alone alone;
static struct table *table;
static uint32_t running;

static int timer_signal(void)
{
    return alone.real_time ? SIGALRM : SIGPROF;
}

static struct entry *entry_make(struct table *t, struct entry *e, uint64_t hash,
                                const uint64_t *address, uint32_t count)
{
    uint64_t none = 0;
    if (!__atomic_compare_exchange_n(&e->hash, &none, hash, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return none == hash ? e : NULL;
    uint32_t first = __atomic_fetch_add(&t->frames_used, count, __ATOMIC_RELAXED);
    if (first + (uint64_t)count > FRAMES) {
        __atomic_fetch_sub(&t->frames_used, count, __ATOMIC_RELAXED);
        return e; /* its count stays 0: it is left out, and told as lost */
    }
    memcpy(&t->frame[first], address, count * sizeof *address);
    e->first = first;
    __atomic_store_n(&e->count, count, __ATOMIC_RELEASE);
    return e;
}

static void add(struct table *t, const uint64_t *address, uint32_t count)
{
    uint64_t hash = unwind_hash(address, count) | 1;
    for (uint32_t i = 0; i < PROBES; i++) {
        struct entry *e = &t->entry[(hash + i) & (ENTRIES - 1)];
        uint64_t there = __atomic_load_n(&e->hash, __ATOMIC_ACQUIRE);
        if (!there)
            e = entry_make(t, e, hash, address, count);
        else if (there != hash)
            continue;
        if (!e)
            continue;
        __atomic_fetch_add(&e->samples, 1, __ATOMIC_RELAXED);
        return;
    }
    __atomic_fetch_add(&t->lost, 1, __ATOMIC_RELAXED);
}

static void on_timer(int signal, siginfo_t *info, void *ucontext)
{
    (void)signal;
    (void)info;
    int saved = errno;
    struct table *t = table;
    struct agent_thread *self = agent_self.thread;
    __atomic_fetch_add(&t->inside, 1, __ATOMIC_ACQ_REL);
    if (__atomic_load_n(&running, __ATOMIC_ACQUIRE) && self) {
        struct unwind_regs regs;
        struct unwind_end end = {0};
        bool foreign;
        unwind_regs_from_ucontext(&regs, ucontext);
        size_t count = stack_walk(self, &regs, &end, &foreign);
        add(t, self->address, count < DEPTH ? (uint32_t)count : DEPTH);
    } else {
        __atomic_fetch_add(&t->lost, 1, __ATOMIC_RELAXED);
    }
    __atomic_fetch_sub(&t->inside, 1, __ATOMIC_ACQ_REL);
    errno = saved;
}

static void timer_set(uint32_t rate)
{
    uint64_t us = rate ? 1000000u / rate : 0;
    struct itimerval every = {.it_interval = {(time_t)(us / 1000000), (suseconds_t)(us % 1000000)}};
    every.it_value = every.it_interval;
    raw3(SYS_setitimer, alone.real_time ? ITIMER_REAL : ITIMER_PROF, &every, NULL);
}

bool alone_cpu_running(void)
{
    return __atomic_load_n(&running, __ATOMIC_ACQUIRE);
}

/* A signal that the program uses itself is left to it. */
static bool handler_set(void)
{
    struct sigaction now,
        ours = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    if (__sigaction(timer_signal(), NULL, &now) != 0)
        return false;
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_timer)
        return true;
    return now.sa_handler == SIG_DFL && __sigaction(timer_signal(), &ours, NULL) == 0;
}

bool alone_cpu_start(void)
{
    if (alone_cpu_running())
        return false;
    if (!table) {
        long at = raw6(SYS_mmap, NULL, sizeof *table, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at < 0 && at > -4096)
            return false;
        table = (struct table *)at;
    }
    if (!handler_set())
        return false;
    __atomic_store_n(&running, 1, __ATOMIC_RELEASE);
    timer_set(alone.rate);
    return true;
}

static void words(struct alone_file *f, const uint64_t *word, size_t count)
{
    alone_put(f, word, count * sizeof *word);
}

static bool write_all(const struct table *t, const char *path)
{
    struct alone_file f;
    const uint64_t head[] = {0, 3, 0, 1000000u / alone.rate, 0}, end[] = {0, 1, 0};
    if (!alone_open(&f, path))
        return false;
    words(&f, head, 5);
    for (uint32_t i = 0; i < ENTRIES; i++) {
        const struct entry *e = &t->entry[i];
        uint64_t pair[] = {e->samples, __atomic_load_n(&e->count, __ATOMIC_ACQUIRE)};
        if (!pair[0] || !pair[1])
            continue;
        words(&f, pair, 2);
        words(&f, &t->frame[e->first], pair[1]);
    }
    words(&f, end, 3);
    alone_maps(&f);
    return alone_close(&f);
}

bool alone_cpu_stop(const char *path)
{
    uint32_t yes = 1;
    if (!__atomic_compare_exchange_n(&running, &yes, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return false;
    timer_set(0);
    /* Handlers of other threads finish; one that this very thread is in never would. */
    for (int i = 0; i < 1000 && __atomic_load_n(&table->inside, __ATOMIC_ACQUIRE); i++)
        raw0(SYS_sched_yield);
    bool done = write_all(table, path);
    memset(table->entry, 0, sizeof table->entry);
    table->frames_used = 0;
    return done;
}
