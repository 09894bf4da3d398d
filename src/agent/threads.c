/*
 * How threads come to be observed and stop to be: through pthread_create, a key's destructor, and a
 * look into /proc/self/task. The registry keeps them.
 */
#include "agent/threads.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>

#include "agent/arch.h"
#include "agent/publish.h"
#include "agent/registry.h"
#include "agent/signals.h"

static pthread_key_t end_key;

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
    registry_disarm(t);
    if (__atomic_exchange_n(&t->alive, 0, __ATOMIC_ACQ_REL) == 0)
        return;
    publish_thread_end(t);
    registry_unclaim(t);
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
    struct agent_thread *t = registry_claim();
    if (!t)
        return NULL;
    t->stack_low = stack_low;
    t->stack_end = stack_end;
    self_set(t);
    registry_go(t);
    return t;
}

struct agent_thread *threads_reserve(const pthread_attr_t *attr, void *(*start)(void *),
                                     void *argument)
{
    struct agent_thread *t = registry_claim();
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
    registry_unclaim(t);
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
    registry_go(t);
    return start(argument); /* a jump: our frame is not on the thread's stack */
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
            struct agent_thread *t = tid > 0 && !registry_knows(tid) ? registry_claim() : NULL;
            if (!t)
                continue;
            t->tid = tid;
            registry_go(t);
        }
    }
    raw1(SYS_close, fd);
}
