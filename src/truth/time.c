/* Shares of CPU time and of elapsed time, as the program's own clocks have them. */
#include <poll.h>
#include <semaphore.h>
#include <time.h>

#include "truth/truth.h"

#define ROUNDS 900
#define TURNS 25

uint64_t truth_most(uint64_t seed, uint64_t units);
uint64_t truth_some(uint64_t seed, uint64_t units);
uint64_t truth_least(uint64_t seed, uint64_t units);
uint64_t truth_runs(uint64_t seed, uint64_t units);
void truth_sleeps(uint64_t ns);
void truth_polls(uint64_t ns);
void truth_waits(uint64_t ns);

static uint64_t now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Rounds of changing length: nothing that looks at regular times can run in step with them. */
static uint64_t vary(uint64_t *state, uint64_t low, uint64_t high)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return low + (*state >> 33) % (high - low);
}

KEPT uint64_t truth_most(uint64_t seed, uint64_t units)
{
    return work(seed, units);
}

KEPT uint64_t truth_some(uint64_t seed, uint64_t units)
{
    return work(seed, units);
}

KEPT uint64_t truth_least(uint64_t seed, uint64_t units)
{
    return work(seed, units);
}

void truth_cpu(FILE *out)
{
    uint64_t (*const function[])(uint64_t, uint64_t) = {truth_most, truth_some, truth_least};
    static const char *const names[] = {"truth_most", "truth_some", "truth_least"};
    static const uint64_t tenths[] = {6, 3, 1};
    uint64_t part[3] = {0}, seed = 1, random = 7, all = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t units = vary(&random, 500, 3000);
        uint64_t before = now(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < 3; i++) {
            seed = function[i](seed, units * tenths[i] / 10);
            uint64_t after = now(CLOCK_THREAD_CPUTIME_ID);
            part[i] += after - before;
            before = after;
        }
    }
    for (int i = 0; i < 3; i++)
        all += part[i];
    fputs("kind cpu\nevent cpu\nbound 3%\n", out);
    for (int i = 0; i < 3; i++)
        fprintf(out, "total %s %.3f%%\n", names[i], 100.0 * (double)part[i] / (double)all);
    fprintf(out, "# %016llx\n", (unsigned long long)seed);
}

KEPT uint64_t truth_runs(uint64_t seed, uint64_t units)
{
    return work(seed, units);
}

KEPT void truth_sleeps(uint64_t ns)
{
    struct timespec t = {.tv_nsec = (long)ns};
    nanosleep(&t, NULL);
    __asm__ volatile("" ::: "memory"); /* no tail call: the function stays on the stack */
}

KEPT void truth_polls(uint64_t ns)
{
    struct pollfd none = {.fd = -1};
    poll(&none, 1, (int)(ns / 1000000));
    __asm__ volatile("" ::: "memory");
}

/* For a lock that nobody will release. */
KEPT void truth_waits(uint64_t ns)
{
    sem_t never;
    struct timespec until;
    sem_init(&never, 0, 0);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (sem_timedwait(&never, &until) == 0)
        ;
    sem_destroy(&never);
}

void truth_wall(FILE *out)
{
    static const char *const names[] = {"truth_runs", "truth_sleeps", "truth_polls", "truth_waits"};
    uint64_t part[4] = {0}, seed = 1, random = 7, all = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        uint64_t ms = vary(&random, 3, 9), t[5];
        t[0] = now(CLOCK_MONOTONIC);
        seed = truth_runs(seed, 1000 * ms);
        t[1] = now(CLOCK_MONOTONIC);
        truth_sleeps(4 * ms * 1000000);
        t[2] = now(CLOCK_MONOTONIC);
        truth_polls(2 * ms * 1000000);
        t[3] = now(CLOCK_MONOTONIC);
        truth_waits(3 * ms * 1000000);
        t[4] = now(CLOCK_MONOTONIC);
        for (int i = 0; i < 4; i++)
            part[i] += t[i + 1] - t[i];
    }
    for (int i = 0; i < 4; i++)
        all += part[i];
    fputs("kind wall\nevent wall\nbound 3%\n", out);
    for (int i = 0; i < 4; i++)
        fprintf(out, "total %s %.3f%%\n", names[i], 100.0 * (double)part[i] / (double)all);
    fprintf(out, "# %016llx\n", (unsigned long long)seed);
}
