/* POSIX timers by system call: glibc's own timer_create may take memory from the heap. */
#include "agent/timer.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "agent/arch.h"

/* The kernel's numbering of another thread's CPU clock (scheduler time). */
static int32_t thread_clock(int32_t tid)
{
    return (int32_t)(~(uint32_t)tid << 3 | 6);
}

static uint64_t scramble(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ x >> 33;
}

static struct timespec span(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u),
                             .tv_nsec = (long)(ns % 1000000000u)};
}

static long set(int timer, uint64_t first, uint64_t interval)
{
    struct itimerspec when = {.it_interval = span(interval), .it_value = span(first)};
    return raw4(SYS_timer_settime, timer, 0, &when, NULL);
}

int timer_start(int32_t tid, uint64_t interval, int signal, uint64_t cookie)
{
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = signal;
    event.sigev_value.sival_ptr = (void *)(uintptr_t)cookie;
    event._sigev_un._tid = tid;
    int timer = -1;
    long result = raw3(SYS_timer_create, thread_clock(tid), &event, &timer);
    if (result < 0)
        return (int)result;
    uint64_t first = 1 + scramble((uint64_t)tid << 16 ^ cookie) % interval;
    result = set(timer, first, interval);
    if (result < 0) {
        timer_stop(timer);
        return (int)result;
    }
    return timer;
}

void timer_change(int timer, uint64_t interval)
{
    if (timer >= 0)
        set(timer, interval, interval);
}

void timer_stop(int timer)
{
    raw1(SYS_timer_delete, timer);
}
