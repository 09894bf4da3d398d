/* See trace_clock.h. */
#include "capture/trace_clock.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"

#if defined(__x86_64__)
static uint64_t ticks(void)
{
    return __builtin_ia32_rdtsc();
}

static bool holds(const char *path, const char *word)
{
    char *text;
    if (io_slurp(path, 1 << 20, &text, NULL, NULL) != 0)
        return false;
    bool found = strstr(text, word) != NULL;
    free(text);
    return found;
}

/* Where the kernel itself does not trust the counter, neither do we. */
bool trace_clock_usable(void)
{
    static const char source[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    return holds("/proc/cpuinfo", " constant_tsc") && holds("/proc/cpuinfo", " nonstop_tsc") &&
           (holds(source, "tsc") || holds(source, "kvm-clock"));
}
#else
static uint64_t ticks(void)
{
    return clock_now();
}

bool trace_clock_usable(void)
{
    return false;
}
#endif

/* The pair that took least: nothing came between its two halves. */
static struct trace_clock_pair pair(void)
{
    struct trace_clock_pair best = {0};
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 8; i++) {
        uint64_t before = ticks(), ns = clock_now(), after = ticks();
        if (after - before >= least)
            continue;
        least = after - before;
        best = (struct trace_clock_pair){before + (after - before) / 2, ns};
    }
    return best;
}

void trace_clock_start(struct trace_clock *c)
{
    c->first = pair();
    /* A millisecond is enough to know the rate within a ten-thousandth. */
    do
        c->now = pair();
    while (c->now.ns - c->first.ns < 1000000);
    c->rate = (double)(c->now.ns - c->first.ns) / (double)(c->now.ticks - c->first.ticks);
}

void trace_clock_compare(struct trace_clock *c)
{
    c->now = pair();
    c->rate = (double)(c->now.ns - c->first.ns) / (double)(c->now.ticks - c->first.ticks);
}
