/*
 * Makes the segment of this process and opens its slots. A memfd is sparse: a slot's pages exist
 * once its thread has written to them, so room for thousands of threads costs only addresses.
 */
#include "agent/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <linux/prctl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "agent/arch.h"
#include "agent/modules.h"
#include "agent/python.h"
#include "agent/session.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

#define TRIES_MAX 64

static const uint32_t slot_choices[] = {AGENT_SLOTS, 512, 64, 8};

/* ftruncate beyond RLIMIT_FSIZE raises SIGXFSZ, which would end the program: ask first. */
uint64_t publish_file_limit(void)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    raw4(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit);
    return limit.rlim_cur;
}

int publish_memory_file(uint64_t size)
{
    static const char name[] = "sonde";
    long fd = raw2(SYS_memfd_create, name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd == -EINVAL)
        fd = raw2(SYS_memfd_create, name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return (int)fd;
    long result = raw2(SYS_ftruncate, fd, size);
    if (result == 0)
        result = raw3(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    if (result == 0)
        return (int)fd;
    raw1(SYS_close, fd);
    return (int)result;
}

/* mlockall(MCL_FUTURE) is in force: what is mapped is locked, with all its pages. */
static uint32_t unlocked;

void publish_unlocked(void)
{
    __atomic_store_n(&unlocked, 1, __ATOMIC_RELEASE);
}

/* What cannot be accessed gets no pages. */
static long map(uint64_t size, int access, int flags, int fd)
{
    bool locks = __atomic_load_n(&unlocked, __ATOMIC_ACQUIRE);
    long at = raw6(SYS_mmap, NULL, size, locks ? PROT_NONE : access, flags, fd, 0);
    if (!locks || (at < 0 && at > -4096))
        return at;
    raw2(SYS_munlock, at, size);
    if (raw3(SYS_mprotect, at, size, access) == 0)
        return at;
    raw2(SYS_munmap, at, size);
    return -ENOMEM;
}

void *publish_map_file(int fd, uint64_t size)
{
    long at = map(size, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    if (at < 0 && at > -4096)
        return NULL;
    if (raw3(SYS_madvise, at, size, MADV_DONTFORK) != 0) {
        raw2(SYS_munmap, at, size);
        return NULL;
    }
    raw3(SYS_madvise, at, size, MADV_DONTDUMP);
    return (void *)at;
}

void *publish_map_sealed(const char *path, uint64_t size, int access)
{
    int flags = (access & PROT_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    long fd = raw4(SYS_openat, AT_FDCWD, path, flags, 0);
    if (fd < 0)
        return NULL;
    struct stat st;
    long seals = raw3(SYS_fcntl, fd, F_GET_SEALS, 0), at = -EINVAL;
    if (seals > 0 && seals & F_SEAL_SHRINK && raw2(SYS_fstat, fd, &st) == 0 &&
        (uint64_t)st.st_size == size)
        at = map(size, access, MAP_SHARED, (int)fd);
    raw1(SYS_close, fd);
    return at < 0 && at > -4096 ? NULL : (void *)at;
}

void *publish_map_advised(size_t size, int advice)
{
    long at = map(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    if (at < 0 && at > -4096)
        return NULL;
    if (raw3(SYS_madvise, at, size, advice) != 0) {
        raw2(SYS_munmap, at, size);
        return NULL;
    }
    raw3(SYS_madvise, at, size, MADV_DONTDUMP);
    return (void *)at;
}

void *publish_map_wiped(size_t size)
{
    return publish_map_advised(size, MADV_WIPEONFORK);
}

static void header_fill(struct segment_header *h, const struct segment_layout *l, uint32_t slots)
{
    const struct agent_settings *s = &agent_settings;
    struct agent_process *p = agent_process;
    h->header_size = sizeof *h;
    h->size = l->size;
    h->slots = slots;
    h->ring_bytes = s->ring_bytes;
    h->modules = AGENT_MODULES;
    h->flags = s->flags | p->flags | (slots < AGENT_SLOTS ? SEGMENT_FEWER_SLOTS : 0);
    h->pid = (uint32_t)raw0(SYS_getpid);
    h->parent = (uint32_t)raw0(SYS_getppid);
    h->clock = CLOCK_MONOTONIC;
    h->start = p->start ? p->start : agent_now();
    h->interval = s->interval;
    h->signal = (uint32_t)s->signal;
    h->kinds = s->interval ? 1u << (SEGMENT_SAMPLE - 1) | 1u << (SEGMENT_CODE - 1) : 0;
    h->threads_refused = p->threads_refused;
    h->exe_len = (uint32_t)strlen(s->exe);
    memcpy(h->exe, s->exe, sizeof h->exe);
    raw2(SYS_prctl, PR_GET_NAME, h->comm);
    python_show(h);
    h->version = SEGMENT_VERSION;
    __atomic_store_n(&h->magic, SEGMENT_MAGIC, __ATOMIC_RELEASE);
}

/* The largest segment that the process's limits allow: its descriptor, mapped at *out. */
static int segment_open(struct segment_header **out, struct segment_layout *layout, uint32_t *slots,
                        enum session_reason *reason)
{
    uint64_t limit = publish_file_limit();
    int error = -EFBIG;
    *reason = SESSION_LIMIT_FSIZE;
    for (size_t i = 0; i < sizeof slot_choices / sizeof *slot_choices; i++) {
        *slots = slot_choices[i];
        if (!segment_layout(*slots, agent_settings.ring_bytes, AGENT_MODULES, layout) ||
            layout->size > limit)
            continue;
        int fd = publish_memory_file(layout->size);
        if (fd < 0) {
            *reason = SESSION_NO_MEMFD;
            return fd;
        }
        *out = publish_map_file(fd, layout->size);
        if (*out)
            return fd;
        raw1(SYS_close, fd);
        *reason = SESSION_NO_MEMORY;
        error = -ENOMEM;
    }
    return error;
}

/* 0, -EAGAIN to try again at the next sample, or another negative errno: never. */
static int segment_hand_over(void)
{
    struct agent_process *p = agent_process;
    struct segment_header *h = NULL;
    struct segment_layout layout = {0};
    uint32_t slots = 0;
    enum session_reason reason = SESSION_NO_REASON;
    int fd = segment_open(&h, &layout, &slots, &reason);
    if (fd < 0) {
        session_send(SESSION_REFUSED, reason, -fd, -1);
        return fd == -EAGAIN ? -ENOMEM : fd;
    }
    header_fill(h, &layout, slots);
    int result = session_send(SESSION_SEGMENT, SESSION_NO_REASON, 0, fd);
    raw1(SYS_close, fd);
    if (result < 0) {
        raw2(SYS_munmap, h, layout.size);
        return result;
    }
    p->layout = layout;
    p->slots = slots;
    __atomic_store_n(&p->segment, h, __ATOMIC_RELEASE);
    return 0;
}

void publish_segment(void)
{
    struct agent_process *p = agent_process;
    uint32_t phase = AGENT_WAITING;
    if (!__atomic_compare_exchange_n(&p->phase, &phase, AGENT_MAKING, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return;
    int result = agent_quiet ? -EPERM : segment_hand_over();
    if (result == 0) {
        __atomic_store_n(&p->phase, AGENT_RUNNING, __ATOMIC_SEQ_CST);
        modules_show();
    } else if (result == -EAGAIN && ++p->tries < TRIES_MAX) {
        __atomic_store_n(&p->phase, AGENT_WAITING, __ATOMIC_RELEASE);
    } else {
        agent_settings.active = false; /* for children as well */
        __atomic_store_n(&p->phase, AGENT_OFF, __ATOMIC_RELEASE);
    }
}

struct segment_thread *publish_slot(uint32_t index)
{
    struct agent_process *p = agent_process;
    if (agent_phase() != AGENT_RUNNING || index >= p->slots)
        return NULL;
    char *base = (char *)p->segment;
    return (struct segment_thread *)(base + p->layout.slots) + index;
}

/* Raises the mark under which the collector looks for slots. */
static void slots_used_raise(uint32_t used)
{
    uint32_t *mark = &agent_process->segment->slots_used;
    uint32_t now = __atomic_load_n(mark, __ATOMIC_RELAXED);
    while (now < used &&
           !__atomic_compare_exchange_n(mark, &now, used, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

void publish_thread(struct agent_thread *t)
{
    struct segment_thread *s = publish_slot(t->index);
    if (!s || t->slot || __atomic_load_n(&s->state, __ATOMIC_ACQUIRE) != SLOT_FREE)
        return;
    uint32_t generation = s->generation + 1;
    memset(s, 0, sizeof *s);
    s->generation = generation;
    s->tid = (uint32_t)t->tid;
    /* Or is about to have one; registry.c takes this back. */
    s->timer = t->timer > 0 || (agent_settings.interval && agent_settings.signal && !agent_quiet &&
                                !clock_is_handed_over());
    s->start = agent_now();
    struct segment_count *c = &s->count[SEGMENT_SAMPLE - 1];
    c->generated = c->lost = t->missed;
    c->value = c->value_lost = t->missed_value;
    if (!agent_quiet && t->tid == agent_self.tid)
        raw2(SYS_prctl, PR_GET_NAME, s->name);
    t->ring = (uint64_t *)((char *)agent_process->segment + agent_process->layout.rings +
                           (uint64_t)t->index * agent_settings.ring_bytes);
    slots_used_raise(t->index + 1);
    __atomic_store_n(&s->state, SLOT_LIVE, __ATOMIC_RELEASE);
    t->slot = s;
}

void publish_thread_end(struct agent_thread *t)
{
    struct segment_thread *s = t->slot;
    t->slot = NULL;
    if (!s)
        return;
    if (!s->end) /* else it was sampled until then */
        s->end = agent_now();
    if (!agent_quiet && t->tid == agent_self.tid)
        raw2(SYS_prctl, PR_GET_NAME, s->name);
    __atomic_store_n(&s->state, SLOT_ENDED, __ATOMIC_RELEASE);
}
