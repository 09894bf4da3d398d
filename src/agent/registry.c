/*
 * The registry of threads: private halves in blocks of memory of our own, claimed without locks.
 * A place is free again when its thread has ended and the collector has read its slot.
 */
#include "agent/registry.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "agent/arch.h"
#include "agent/clock.h"
#include "agent/publish.h"
#include "agent/python.h"
#include "agent/timer.h"

#define COOKIE_MARK 0x50deull

/* Blocks stay where they are over a fork; their content is wiped then, as agent_process is. */
static struct agent_thread *block[AGENT_SLOTS / AGENT_BLOCK];

static struct agent_thread *block_of(uint32_t index)
{
    struct agent_thread **at = &block[index / AGENT_BLOCK];
    struct agent_thread *b = __atomic_load_n(at, __ATOMIC_ACQUIRE);
    if (b)
        return b;
    size_t size = AGENT_BLOCK * sizeof *b;
    struct agent_thread *memory = publish_map_wiped(size), *none = NULL;
    if (!memory ||
        __atomic_compare_exchange_n(at, &none, memory, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return memory;
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

void registry_refuse(void)
{
    struct agent_process *p = agent_process;
    uint32_t *count =
        agent_phase() == AGENT_RUNNING ? &p->segment->threads_refused : &p->threads_refused;
    __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
}

void registry_unclaim(struct agent_thread *t)
{
    __atomic_store_n(&agent_process->claimed[t->index], 0, __ATOMIC_RELEASE);
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
        registry_disarm(t);
        publish_thread_end(t);
        registry_unclaim(t);
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
        t->missed = t->missed_value = t->taking = 0;
        t->clock = (struct clock_state){0};
        t->stack_low = t->stack_end = 0;
        return t;
    }
    return NULL;
}

struct agent_thread *registry_claim(void)
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
        registry_refuse();
    return t;
}

static uint64_t cookie_of(const struct agent_thread *t)
{
    return COOKIE_MARK << 48 | (uint64_t)(t->generation & 0xffff) << 32 | t->index;
}

static void arm(struct agent_thread *t)
{
    if (!agent_settings.interval || !agent_settings.signal || agent_quiet || clock_is_handed_over())
        return;
    t->interval = agent_settings.interval;
    int timer = timer_start(t->tid, t->interval, agent_settings.signal, cookie_of(t));
    if (timer < 0) {
        agent_declare(SEGMENT_TIMERS_REFUSED);
        registry_refuse();
        if (t->slot)
            t->slot->timer = 0;
        return;
    }
    __atomic_store_n(&t->timer, timer + 1, __ATOMIC_RELEASE);
    if (t->slot)
        t->slot->timer = 1;
}

/* The thread has its number and its stack: show it and arm its timer. */
void registry_go(struct agent_thread *t)
{
    __atomic_store_n(&t->alive, 1, __ATOMIC_RELEASE);
    publish_thread(t);
    arm(t);
}

void registry_disarm(struct agent_thread *t)
{
    clock_stop(t);
    int timer = __atomic_exchange_n(&t->timer, 0, __ATOMIC_ACQ_REL);
    if (timer > 0 && !agent_quiet)
        timer_stop(timer - 1);
}

bool registry_of_signal(const siginfo_t *info, struct agent_thread **thread)
{
    uint64_t cookie = (uint64_t)(uintptr_t)info->si_value.sival_ptr;
    uint32_t index = (uint32_t)cookie;
    *thread = NULL;
    if (clock_of_signal(info, thread))
        return true;
    if (info->si_code != SI_TIMER || cookie >> 48 != COOKIE_MARK || index >= AGENT_SLOTS)
        return false;
    struct agent_thread *t = at_index(index);
    if (t && __atomic_load_n(&t->alive, __ATOMIC_ACQUIRE) && cookie_of(t) == cookie)
        *thread = t;
    return true;
}

bool registry_knows(int32_t tid)
{
    for (uint32_t i = 0; i < AGENT_SLOTS; i++) {
        struct agent_thread *t = at_index(i);
        if (t && t->alive && t->tid == tid)
            return true;
    }
    return false;
}

void registry_disarm_all(void)
{
    for (uint32_t i = 0; i < AGENT_SLOTS; i++) {
        struct agent_thread *t = at_index(i);
        if (t && __atomic_load_n(&t->alive, __ATOMIC_ACQUIRE))
            registry_disarm(t);
    }
}

void registry_begin_again(void)
{
    for (uint32_t i = 0; i < AGENT_SLOTS; i++) {
        struct agent_thread *t = at_index(i);
        if (!t || !__atomic_load_n(&t->alive, __ATOMIC_ACQUIRE))
            continue;
        t->slot = NULL;
        if (t->python)
            t->python->generation = 0; /* the new reader has been told nothing */
        publish_thread(t);
    }
    registry_arm_all();
}

void registry_arm_all(void)
{
    for (uint32_t i = 0; i < AGENT_SLOTS; i++) {
        struct agent_thread *t = at_index(i);
        if (t && __atomic_load_n(&t->alive, __ATOMIC_ACQUIRE))
            arm(t);
    }
}
