/*
 * One sample: where the thread was when its CPU timer ran out. In the usual course no system call
 * is made (the clock is the vdso's), errno is not touched, nothing is locked or allocated, and
 * thread-local storage is not needed: the signal itself says whose timer it was.
 */
#include "agent/sample.h"

#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/clock.h"
#include "agent/interrupt.h"
#include "agent/publish.h"
#include "agent/python.h"
#include "agent/registry.h"
#include "agent/ring.h"
#include "agent/signals.h"
#include "agent/stack.h"
#include "agent/timer.h"

#define SAMPLE_WORDS (sizeof(struct segment_sample) / SEGMENT_WORD_BYTES)
#define LATE_NS 100000000u /* far more than any tick */
#define INTERVAL_MIN 100000u
#define KERNEL_FRAME 512 /* bytes that a signal takes on the stack at least */

/* Gives the thread a slot if there is any way; false: the sample is lost but counted. */
static bool has_slot(struct agent_thread *t, uint64_t value)
{
    if (t->slot)
        return true;
    bool outside = agent_settings.python_only; /* seen from there until there is a slot */
    if (agent_phase() == AGENT_WAITING)
        publish_segment();
    uint32_t phase = agent_phase();
    if (phase == AGENT_OFF) {
        registry_disarm(t);
        return false;
    }
    if (phase == AGENT_RUNNING) {
        publish_thread(t);
        if (t->slot)
            return !outside;
        struct segment_count *c = &agent_process->segment->unplaced[SEGMENT_SAMPLE - 1];
        __atomic_fetch_add(&c->generated, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&c->lost, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&c->value, value, __ATOMIC_RELAXED);
        __atomic_fetch_add(&c->value_lost, value, __ATOMIC_RELAXED);
        return false;
    }
    if (!outside) {
        t->missed++;
        t->missed_value += value;
    }
    return false;
}

static void record(struct agent_thread *t, uint64_t time, uint64_t value, const void *ucontext)
{
    struct unwind_regs regs;
    struct unwind_end end = {0};
    bool foreign;
    unwind_regs_from_ucontext(&regs, ucontext);
    size_t count = stack_walk(t, &regs, &end, &foreign);
    bool whole = false, gil = false;
    size_t python = python_walk(t, ucontext, regs.value[UNWIND_SP], &whole, &gil);
    bool late = value > LATE_NS && value > 8 * agent_settings.interval;
    struct segment_sample s = {.time = time,
                               .value = value,
                               .count = (uint16_t)count,
                               .interrupted = (uint16_t)end.interrupted,
                               .guessed = (uint16_t)end.guessed,
                               .reason = (uint8_t)end.reason,
                               .flags = (late ? SAMPLE_LATE : 0) | (foreign ? SAMPLE_FOREIGN : 0) |
                                        (gil ? SAMPLE_GIL : 0),
                               .python = (uint16_t)python,
                               .python_whole = whole};
    if (t->python)
        s.kernel = (uint8_t)clock_kernel(t, t->python->kernel, SEGMENT_KERNEL_DEPTH);
    uint64_t head[SAMPLE_WORDS];
    size_t words;
    const uint64_t *body = python_pack(t, &s, &words);
    memcpy(head, &s, sizeof s);
    t->taking = 0; /* from here on it is in the ring's counts */
    if (ring_put(t, SEGMENT_SAMPLE, value, head, SAMPLE_WORDS, body, words))
        python_packed(t, &s);
}

/* The collector may want samples to be farther apart, or nearer: for the thread that is sampled
 * now, and for those that start from now on. What a sample stands for is measured in any case. */
static void follow_interval(struct agent_thread *t)
{
    uint64_t wanted = 1000ull * __atomic_load_n(&agent_process->segment->wanted, __ATOMIC_RELAXED);
    if (wanted < INTERVAL_MIN || wanted == t->interval || agent_quiet)
        return;
    t->interval = agent_settings.interval = wanted;
    if (t->clock.page && t == agent_self.thread) {
        clock_stop(t);
        clock_start(t);
    }
    if (!t->clock.page)
        timer_change(t->timer - 1, wanted);
}

/* A handler of the program's that came upon ours may leave by a jump, and with it the sample that
 * was under way. One that is still there lies above us, by the kernel's frame at least. */
static void begin_taking(struct agent_thread *t, uint64_t value)
{
    uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    if (t->taking && here + KERNEL_FRAME >= t->taking_at)
        ring_drop(t, SEGMENT_SAMPLE, t->taking);
    t->taking_at = here;
    t->taking = value;
}

static void take(struct agent_thread *t, uint64_t value, const void *ucontext)
{
    uint64_t begin = agent_now();
    if (!has_slot(t, value))
        return;
    begin_taking(t, value);
    /* With a collector that is gone or asleep the walk would be for nothing. */
    if (ring_has_room(t, SAMPLE_WORDS + 1)) {
        record(t, begin, value, ucontext);
    } else {
        t->taking = 0;
        ring_drop(t, SEGMENT_SAMPLE, value);
    }
    follow_interval(t);
    if (t == agent_self.thread && clock_is_handed_over())
        clock_leave(t);
    __atomic_fetch_add(&t->slot->cost, agent_now() - begin, __ATOMIC_RELAXED);
}

static void on_clock(struct agent_thread *t, const void *ucontext)
{
    uint64_t value = clock_value(t);
    if (value)
        take(t, value, ucontext);
}

static void on_timer(struct agent_thread *t, uint64_t intervals, const void *ucontext)
{
    if (!t->clock.page)
        take(t, intervals * t->interval, ucontext);
    if (agent_settings.python_only && t->slot && t == agent_self.thread && !t->slot->end)
        clock_start(t);
}

void sample_on_signal(int signal, siginfo_t *info, void *ucontext)
{
    struct agent_thread *t;
    int saved = errno;
    interrupt_begin();
    if (!registry_of_signal(info, &t))
        signals_pass_on(signal);
    else if (t && info->si_code == SI_TIMER)
        on_timer(t, 1 + (uint64_t)(uint32_t)info->si_overrun, ucontext);
    else if (t)
        on_clock(t, ucontext);
    interrupt_end(ucontext);
    errno = saved;
}

/* A clock tells the next time what it has counted; a timer's signal is all there is. */
static struct agent_thread *awaited(const siginfo_t *info)
{
    struct agent_thread *t;
    bool timed = info->si_code == SI_TIMER && registry_of_signal(info, &t) && t;
    return timed && t->slot && !t->clock.page ? t : NULL;
}

void sample_await(const siginfo_t *info)
{
    struct agent_thread *t = awaited(info);
    if (t) {
        t->taking = (1 + (uint64_t)(uint32_t)info->si_overrun) * t->interval;
        t->taking_at = 0;
    }
}

void sample_comes(const siginfo_t *info)
{
    struct agent_thread *t = awaited(info);
    if (t)
        t->taking = 0;
}
