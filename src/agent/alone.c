/* The variables of gperftools, and what a program can ask for itself; see alone.h. */
#include "agent/alone.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "agent/arch.h"
#include "agent/real.h"
#include <sonde.h>

#define CHILD_MARK 0x80 /* on a path's first byte, as gperftools leaves it for children */

static int32_t owner; /* a forked child is not the one that writes */
static uint32_t cpu_number;

static uint64_t number(const char *text, uint64_t otherwise)
{
    uint64_t n = 0;
    if (!text || !*text)
        return otherwise;
    for (; *text >= '0' && *text <= '9' && n < UINT64_MAX / 100; text++)
        n = n * 10 + (uint64_t)(*text - '0');
    return *text ? otherwise : n;
}

/* The first process uses the name as it is, and marks it, in the environment that its children get;
 * they add their own number. */
static bool path_take(char *to, const char *from)
{
    size_t len = from ? strlen(from) : 0;
    if (len == 0 || len >= ALONE_PATH - 16)
        return false;
    memcpy(to, from, len + 1);
    if (!((unsigned char)to[0] & CHILD_MARK)) {
        *(char *)(uintptr_t)from = (char)((unsigned char)from[0] | CHILD_MARK);
        return true;
    }
    char out[ALONE_PATH + 32];
    to[0] = (char)((unsigned char)to[0] & ~CHILD_MARK);
    alone_name(out, to, "_", (uint64_t)raw0(SYS_getpid), 1, "");
    memcpy(to, out, strlen(out) + 1);
    return true;
}

bool alone_read(const char *(*variable)(const char *name))
{
    struct alone *a = &alone;
    bool cpu = path_take(a->cpu, variable("CPUPROFILE"));
    bool heap = path_take(a->heap, variable("HEAPPROFILE"));
    const char *real_time = variable("CPUPROFILE_REALTIME");
    if (!cpu && !heap)
        return false;
    uint64_t rate = number(variable("CPUPROFILE_FREQUENCY"), 100);
    a->on = true;
    a->rate = rate < 1 ? 1 : rate > 4000 ? 4000 : (uint32_t)rate;
    a->real_time = real_time && *real_time && strcmp(real_time, "0") != 0;
    a->cpu_signal = (int)number(variable("CPUPROFILESIGNAL"), 0);
    a->heap_signal = (int)number(variable("HEAPPROFILESIGNAL"), 0);
    a->allocation_interval = number(variable("HEAP_PROFILE_ALLOCATION_INTERVAL"), 1ull << 30);
    a->inuse_interval = number(variable("HEAP_PROFILE_INUSE_INTERVAL"), 100ull << 20);
    return true;
}

static bool is_owner(void)
{
    return owner && owner == (int32_t)raw0(SYS_getpid);
}

/* One file for each time that it is switched on: .0, .1 … */
static bool cpu_stop(void)
{
    char path[ALONE_PATH + 32];
    if (!alone_cpu_running())
        return false;
    if (!alone.cpu_signal && !cpu_number)
        return alone_cpu_stop(alone.cpu);
    alone_name(path, alone.cpu, ".", cpu_number ? cpu_number - 1 : 0, 1, "");
    return alone_cpu_stop(path);
}

static bool cpu_start(void)
{
    if (!alone_cpu_start())
        return false;
    cpu_number++;
    return true;
}

static void on_switch(int signal)
{
    if (!is_owner())
        return;
    if (signal == alone.heap_signal)
        alone_heap_dump();
    else if (!cpu_stop())
        cpu_start();
}

static void signal_take(int signal)
{
    struct sigaction now, ours = {.sa_handler = on_switch, .sa_flags = SA_RESTART | SA_ONSTACK};
    if (signal > 0 && __sigaction(signal, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
        __sigaction(signal, &ours, NULL);
}

void alone_start(void)
{
    owner = (int32_t)raw0(SYS_getpid);
    alone_heap_on = alone.heap[0] != 0;
    if (alone.cpu_signal)
        signal_take(alone.cpu_signal);
    else if (alone.cpu[0])
        alone_cpu_start();
    if (alone_heap_on)
        signal_take(alone.heap_signal);
}

__attribute__((destructor)) static void finish(void)
{
    if (!is_owner())
        return;
    cpu_stop();
    if (alone.heap[0])
        alone_heap_dump();
}

EXPORT int sonde_is_profiled(void)
{
    return agent_phase() == AGENT_RUNNING;
}

/* Children that are forked later start as their parent is. */
static bool heap_switch(bool on)
{
    if (!heap_process)
        return false;
    struct heap_header *h = __atomic_load_n(&heap_process->segment, __ATOMIC_ACQUIRE);
    heap_pause = on ? 0 : HEAP_PAUSED_BY_PROGRAM;
    if (h && on)
        __atomic_fetch_and(&h->paused, ~(uint32_t)HEAP_PAUSED_BY_PROGRAM, __ATOMIC_RELAXED);
    else if (h)
        __atomic_fetch_or(&h->paused, HEAP_PAUSED_BY_PROGRAM, __ATOMIC_RELAXED);
    return true;
}

EXPORT int sonde_start(void)
{
    bool cpu = is_owner() && alone.cpu[0] && cpu_start();
    return heap_switch(true) || cpu ? 0 : -1;
}

EXPORT int sonde_stop(void)
{
    bool cpu = is_owner() && cpu_stop();
    return heap_switch(false) || cpu ? 0 : -1;
}

EXPORT int sonde_snapshot(void)
{
    return is_owner() && alone.heap[0] && alone_heap_dump() ? 0 : -1;
}

EXPORT void sonde_thread_name(const char *name)
{
    if (name && !agent_quiet && agent_phase() == AGENT_RUNNING)
        raw2(SYS_prctl, PR_SET_NAME, name);
}
