/*
 * The registry of threads: private halves in blocks of memory of our own, claimed without locks.
 * A place is free again when its thread has ended and the collector has read its slot.
 */
#include "agent/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "agent/arch.h"
#include "agent/publish.h"
#include "agent/signals.h"
#include "agent/timer.h"

#define COOKIE_MARK 0x50deull

/* Blocks stay where they are over a fork; their content is wiped then, as agent_process is. */
static struct agent_thread *block[AGENT_SLOTS / AGENT_BLOCK];
static pthread_key_t end_key;
__thread struct agent_self agent_self;

static struct agent_thread *block_of(uint32_t index)
{
    struct agent_thread **at = &block[index / AGENT_BLOCK];
    struct agent_thread *b = __atomic_load_n(at, __ATOMIC_ACQUIRE);
    if (b)
        return b;
    size_t size = AGENT_BLOCK * sizeof *b;
    long memory = raw6(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory < 0 && memory > -4096)
        return NULL;
    struct agent_thread *none = NULL;
    if (raw3(SYS_madvise, memory, size, MADV_WIPEONFORK) == 0 &&
        __atomic_compare_exchange_n(at, &none, (struct agent_thread *)memory, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return (struct agent_thread *)memory;
    raw2(SYS_munmap, memory, size);
    return none;
}

/* The private half at `index` if its block is there. */
static struct agent_thread *at_index(uint32_t index)
{
    struct agent_thread *b = __atomic_load_n(&block[index / AGENT_BLOCK], __ATOMIC_ACQUIRE);
    return b ? &b[index % AGENT_BLOCK] : NULL;
}

static bool claim_index(uint32_t index)
{
    struct agent_process *p = agent_process;
    if (__atomic_load_n(&p->claimed[index], __ATOMIC_RELAXED))
        return false;
    struct segment_thread *slot = publish_slot(index);
    if (slot && __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != SLOT_FREE)
        return false;
    return __atomic_exchange_n(&p->claimed[index], 1, __ATOMIC_ACQ_REL) == 0;
}

void threads_refuse(void)
{
    struct agent_process *p = agent_process;
    uint32_t *count = agent_phase() == AGENT_RUNNING ? &p->segment->threads_refused
                                                     : &p->threads_refused;
    __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
}

/* A thread made by clone and gone by the bare system call left its place claimed. */
static void release_dead(void)
{
    struct agent_process *p = agent_process;
    for (uint32_t i = 0; i < AGENT_SLOTS; i++) {
        struct agent_thread *t = at_index(i);
        if (!t || !__atomic_load_n(&t->alive, __ATOMIC_ACQUIRE) ||
            raw3(SYS_tgkill, p->pid, t->tid, 0) != -ESRCH ||
            __atomic_exchange_n(&t->alive, 0, __ATOMIC_ACQ_REL) == 0)
            continue;
        threads_disarm(t);
        publish_thread_end(t);
        __atomic_store_n(&p->claimed[i], 0, __ATOMIC_RELEASE);
    }
}

static struct agent_thread *claim_first(uint32_t slots)
{
    for (uint32_t i = 0; i < slots; i++) {
        if (!claim_index(i))
            continue;
        if (!block_of(i)) {
            __atomic_store_n(&agent_process->claimed[i], 0, __ATOMIC_RELEASE);
            return NULL;
        }
        struct agent_thread *t = at_index(i);
        t->index = i;
        t->generation++;
        t->timer = 0;
        t->tid = 0;
        t->rounds = 0;
        t->slot = NULL;
        t->missed = t->missed_value = 0;
        t->stack_low = t->stack_end = 0;
        return t;
    }
    return NULL;
}

static struct agent_thread *claim(void)
{
    uint32_t slots = agent_phase() == AGENT_RUNNING ? agent_process->slots : AGENT_SLOTS;
    struct agent_thread *t = claim_first(slots);
    if (t)
        return t;
    if (++agent_process->claims_failed % 256 == 1) {
        release_dead();
        t = claim_first(slots);
    }
    if (!t)
        threads_refuse();
    return t;
}

static uint64_t cookie_of(const struct agent_thread *t)
{
    return COOKIE_MARK << 48 | (uint64_t)(t->generation & 0xffff) << 32 | t->index;
}

static void arm(struct agent_thread *t)
{
    if (!agent_settings.interval || !agent_settings.signal || agent_quiet)
        return;
    int timer =
        timer_start(t->tid, agent_settings.interval, agent_settings.signal, cookie_of(t));
    if (timer < 0) {
        agent_declare(SEGMENT_TIMERS_REFUSED);
        threads_refuse();
        return;
    }
    __atomic_store_n(&t->timer, timer + 1, __ATOMIC_RELEASE);
    if (t->slot)
        t->slot->timer = 1;
}

/* The thread has its number and its stack: show it and arm its timer. */
static void go(struct agent_thread *t)
{
    __atomic_store_n(&t->alive, 1, __ATOMIC_RELEASE);
    publish_thread(t);
    arm(t);
}

void threads_disarm(struct agent_thread *t)
{
    int timer = __atomic_exchange_n(&t->timer, 0, __ATOMIC_ACQ_REL);
    if (timer > 0 && !agent_quiet)
        timer_stop(timer - 1);
}

/* Other keys' destructors may run after ours and do work worth seeing: ask to be called again
 * until the rounds that POSIX promises are nearly over. */
static void on_thread_end(void *value)
{
    struct agent_thread *t = value;
    if (agent_self.thread != t)
        return; /* forked since: the value is the parent's */
    if (++t->rounds < PTHREAD_DESTRUCTOR_ITERATIONS - 1 && pthread_setspecific(end_key, t) == 0)
        return;
    agent_self.thread = NULL;
    threads_disarm(t);
    if (__atomic_exchange_n(&t->alive, 0, __ATOMIC_ACQ_REL) == 0)
        return;
    publish_thread_end(t);
    __atomic_store_n(&agent_process->claimed[t->index], 0, __ATOMIC_RELEASE);
}

bool threads_init(void)
{
    return pthread_key_create(&end_key, on_thread_end) == 0;
}

static void self_set(struct agent_thread *t)
{
    t->tid = (int32_t)raw0(SYS_gettid);
    agent_self.tid = t->tid;
    agent_self.stack_low = t->stack_low;
    agent_self.stack_end = t->stack_end;
    agent_self.thread = t;
    pthread_setspecific(end_key, t);
}

struct agent_thread *threads_adopt_self(uint64_t stack_low, uint64_t stack_end)
{
    struct agent_thread *t = claim();
    if (!t)
        return NULL;
    t->stack_low = stack_low;
    t->stack_end = stack_end;
    self_set(t);
    go(t);
    return t;
}

struct agent_thread *threads_reserve(const pthread_attr_t *attr, void *(*start)(void *),
                                     void *argument)
{
    struct agent_thread *t = claim();
    if (!t)
        return NULL;
    size_t size = 0;
    if (!attr || pthread_attr_getstacksize(attr, &size) != 0 || size == 0)
        size = agent_settings.other_stack_size;
    size_t guard = 0;
    if (!attr || pthread_attr_getguardsize(attr, &guard) != 0)
        guard = 4096;
    t->stack_low = size > guard ? size - guard : 0; /* a length until threads_main knows the end */
    t->hidden = agent_self.hidden;
    t->start = start;
    t->argument = argument;
    return t;
}

void threads_cancel(struct agent_thread *t)
{
    __atomic_store_n(&agent_process->claimed[t->index], 0, __ATOMIC_RELEASE);
}

void *threads_main(void *thread)
{
    struct agent_thread *t = thread;
    void *(*start)(void *) = t->start;
    void *argument = t->argument;
    /* glibc puts the control block at the top of the stack, its own or one that was given. */
    uint64_t end = arch_thread_pointer();
    uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    uint64_t low = end - t->stack_low;
    bool sound = t->stack_low && here < end && here >= low;
    t->stack_low = sound ? low : 0;
    t->stack_end = sound ? end : 0;
    self_set(t);
    agent_self.hidden = t->hidden;
    signals_unblock();
    go(t);
    return start(argument); /* a jump: our frame is not on the thread's stack */
}

bool threads_of_signal(const siginfo_t *info, struct agent_thread **thread)
{
    uint64_t cookie = (uint64_t)(uintptr_t)info->si_value.sival_ptr;
    uint32_t index = (uint32_t)cookie;
    *thread = NULL;
    if (info->si_code != SI_TIMER || cookie >> 48 != COOKIE_MARK || index >= AGENT_SLOTS)
        return false;
    struct agent_thread *t = at_index(index);
    if (t && __atomic_load_n(&t->alive, __ATOMIC_ACQUIRE) && cookie_of(t) == cookie)
        *thread = t;
    return true;
}

static bool is_known(int32_t tid)
{
    for (uint32_t i = 0; i < AGENT_SLOTS; i++) {
        struct agent_thread *t = at_index(i);
        if (t && t->alive && t->tid == tid)
            return true;
    }
    return false;
}

void threads_disarm_all(void)
{
    for (uint32_t i = 0; i < AGENT_SLOTS; i++) {
        struct agent_thread *t = at_index(i);
        if (t && __atomic_load_n(&t->alive, __ATOMIC_ACQUIRE))
            threads_disarm(t);
    }
}

void threads_arm_all(void)
{
    for (uint32_t i = 0; i < AGENT_SLOTS; i++) {
        struct agent_thread *t = at_index(i);
        if (t && __atomic_load_n(&t->alive, __ATOMIC_ACQUIRE))
            arm(t);
    }
}

static int32_t number(const char *text)
{
    int32_t n = 0;
    for (; *text >= '0' && *text <= '9' && n < 100000000; text++)
        n = n * 10 + (*text - '0');
    return *text ? 0 : n;
}

struct entry {
    uint64_t inode, next;
    uint16_t size;
    uint8_t type;
    char name[];
};

void threads_scan(void)
{
    _Alignas(8) char names[2048];
    long fd = raw4(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return;
    long got;
    while ((got = raw3(SYS_getdents64, fd, names, sizeof names)) > 0) {
        for (long at = 0; at < got;) {
            const struct entry *e = (const struct entry *)(names + at);
            int32_t tid = number(e->name);
            at += e->size;
            struct agent_thread *t = tid > 0 && !is_known(tid) ? claim() : NULL;
            if (!t)
                continue;
            t->tid = tid;
            go(t);
        }
    }
    raw1(SYS_close, fd);
}
