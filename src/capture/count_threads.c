/* Counts by thread; see count_threads.h. */
#include "capture/count_threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/map.h"
#include "capture/cpus.h"
#include "capture/perf_record.h"
#include "capture/proc.h"
#include "capture/ring.h"

#define RING_PAGES 128
#define RING_PAGES_MIN 2
#define TRAILER 32

struct reading {
    uint64_t value, enabled, running;
};

struct member {
    pid_t pid, tid;
    char name[32];
    uint32_t root;        /* the task that it was started by, directly or not: a member */
    bool told;            /* the kernel said what it had when it ended */
    struct reading *sums; /* by event */
    struct reading *rest; /* of a root: sums of all that come from it, less what was told */
};

struct opened {
    int fd;
    uint32_t member, event;
};

struct cpu_ring {
    int cpu, fd; /* of the event that owns the ring; -1 before there is one */
    struct ring ring;
};

struct count_threads {
    struct counter_plan *plan;
    struct counts *counts;
    VECTOR(struct cpu_ring) rings;
    VECTOR(int) poll;
    VECTOR(struct opened) opened;
    VECTOR(int) others; /* descriptors of the events that only tell of tasks */
    VECTOR(struct member) members;
    struct map by_tid; /* tid -> member */
    struct map by_id;  /* event id -> opened */
    uint64_t lost;
};

struct count_threads *count_threads_new(struct counter_plan *plan, struct counts *c)
{
    struct count_threads *t = memory_alloc(sizeof *t);
    struct cpus cpus = {0};
    t->plan = plan;
    t->counts = c;
    cpus_online(&cpus);
    for (size_t i = 0; i < cpus.len; i++)
        *vector_push(&t->rings) = (struct cpu_ring){.cpu = cpus.data[i], .fd = -1};
    vector_release(&cpus);
    return t;
}

static uint32_t member_of(struct count_threads *t, pid_t pid, pid_t tid)
{
    bool added;
    uint64_t *at = map_put(&t->by_tid, (uint64_t)tid, 0, t->members.len, &added);
    if (added) {
        struct member *m = vector_push(&t->members);
        *m = (struct member){.pid = pid, .tid = tid};
        m->root = (uint32_t)t->members.len - 1;
        m->sums = memory_array(t->plan->events.len + 1, sizeof *m->sums);
        proc_comm(pid, tid, m->name, sizeof m->name);
    }
    return (uint32_t)*at;
}

static int give_ring(struct count_threads *t, struct cpu_ring *r, int fd)
{
    if (r->fd >= 0)
        return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, r->fd);
    for (size_t pages = RING_PAGES; pages >= RING_PAGES_MIN; pages /= 2) {
        int rc = ring_open(&r->ring, fd, pages);
        if (!rc) {
            r->fd = fd;
            *vector_push(&t->poll) = fd;
            return 0;
        }
        errno = -rc;
    }
    return -1;
}

static void set_telling(struct perf_event_attr *a, bool on_exec)
{
    a->disabled = 1;
    a->enable_on_exec = on_exec;
    a->inherit = 1;
    a->sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
    a->sample_id_all = 1;
    a->use_clockid = 1;
    a->clockid = CLOCK_MONOTONIC;
    a->watermark = 1;
    a->wakeup_watermark = RING_PAGES * 4096 / 8;
}

/* Tells of threads and their names. */
static int add_teller(struct count_threads *t, struct cpu_ring *r, pid_t tid, bool on_exec,
                      int leader)
{
    struct perf_event_attr a = {
        .size = sizeof a, .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY};
    set_telling(&a, on_exec && leader < 0);
    a.disabled = leader < 0;
    a.comm = a.task = 1;
    a.exclude_kernel = 1;
    int fd = event_open(&a, tid, r->cpu, leader);
    if (fd < 0)
        return -1;
    *vector_push(&t->others) = fd;
    return give_ring(t, r, fd);
}

/* Returns the descriptor; -1 if this one cannot be had, FAULT_MISSING if the task is gone. */
static int add_event(struct count_threads *t, struct cpu_ring *r, uint32_t member, size_t i,
                     bool on_exec, int leader)
{
    struct counter_event *e = &t->plan->events.data[i];
    struct counts_event *row = &t->counts->events.data[i];
    struct perf_event_attr a;
    uint64_t id;
    event_count_attr(&e->event, &a);
    set_telling(&a, on_exec && leader < 0);
    a.disabled = leader < 0;
    a.inherit_stat = 1;
    int fd = event_open(&a, t->members.data[member].tid, r->cpu, leader);
    if (fd < 0 && (errno == EACCES || errno == EPERM) && !a.exclude_kernel && !e->event.no_user) {
        e->event.no_kernel = row->user_only = true;
        a.exclude_kernel = 1;
        fd = event_open(&a, t->members.data[member].tid, r->cpu, leader);
    }
    if (fd < 0 && errno == ESRCH)
        return FAULT_MISSING;
    if (fd < 0 || give_ring(t, r, fd) || ioctl(fd, PERF_EVENT_IOC_ID, &id)) {
        e->broken = true;
        row->refused = arena_strdup(&t->counts->arena, event_refusal(&e->event, errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    *map_put(&t->by_id, id, 0, t->opened.len, NULL) = t->opened.len;
    *vector_push(&t->opened) = (struct opened){.fd = fd, .member = member, .event = (uint32_t)i};
    return fd;
}

static bool is_software(const struct counter_event *e)
{
    return e->event.type == PERF_TYPE_SOFTWARE || e->event.type == PERF_TYPE_TRACEPOINT;
}

/*
 * When the kernel switches from a task to one that inherited from it, it swaps their counters and
 * then what was counted, pair by pair in the order of its lists. Parents have them in the order in
 * which they were opened, children in the order of PMU and opening. So that the two are the same,
 * software events, whose PMUs differ, all stand in the group of the first event.
 */
static int add_on_cpu(struct count_threads *t, struct cpu_ring *r, uint32_t member, bool on_exec)
{
    enum { FIRST, SOFTWARE, REST };
    pid_t tid = t->members.data[member].tid;
    int leader = -1;
    for (int pass = FIRST; pass <= REST; pass++) {
        for (size_t i = 0; i < t->plan->events.len; i++) {
            const struct counter_event *e = &t->plan->events.data[i];
            bool software = is_software(e),
                 had = t->opened.len && t->opened.data[t->opened.len - 1].event == i;
            if (e->broken || software != (pass == SOFTWARE) || (pass == FIRST && leader >= 0) ||
                (pass == REST && had))
                continue;
            int fd = add_event(t, r, member, i, on_exec, pass == SOFTWARE ? leader : -1);
            if (fd == FAULT_MISSING)
                return fd;
            leader = leader < 0 && fd >= 0 ? fd : leader;
        }
        if (pass == SOFTWARE && add_teller(t, r, tid, on_exec, leader))
            return errno == ESRCH ? FAULT_MISSING : FAULT_SYSTEM;
    }
    return 0;
}

int count_threads_add(struct count_threads *t, pid_t pid, pid_t tid, bool on_exec,
                      struct error *err)
{
    uint32_t member = member_of(t, pid, tid);
    if (!t->members.data[member].rest)
        t->members.data[member].rest =
            memory_array(t->plan->events.len + 1, sizeof(struct reading));
    for (size_t c = 0; c < t->rings.len; c++) {
        int rc = add_on_cpu(t, &t->rings.data[c], member, on_exec);
        if (rc == FAULT_MISSING)
            return error_set(err, rc, "there is no task %d any more", tid);
        if (rc)
            return error_set(err, rc, "threads cannot be counted one by one: %s",
                             event_refusal(&(struct event){.type = PERF_TYPE_SOFTWARE}, errno));
    }
    return 0;
}

void count_threads_enable(struct count_threads *t)
{
    for (size_t i = 0; i < t->others.len; i++)
        ioctl(t->others.data[i], PERF_EVENT_IOC_ENABLE, 0);
    for (size_t i = 0; i < t->opened.len; i++)
        ioctl(t->opened.data[i].fd, PERF_EVENT_IOC_ENABLE, 0);
}

static void add_reading(struct reading *to, const struct reading *from, bool minus)
{
    to->value += minus ? -from->value : from->value; /* modulo 2^64 it comes out right */
    to->enabled += minus ? -from->enabled : from->enabled;
    to->running += minus ? -from->running : from->running;
}

/* A thread has ended and this is what it had: off the sum of the task that led to it. */
static void take_reading(struct count_threads *t, const struct perf_event_header *h,
                         const struct perf_record *r)
{
    struct reading got;
    const uint64_t *at = map_get(&t->by_id, r->id, 0);
    if (!at || h->size < sizeof *h + 8 + sizeof got + TRAILER)
        return;
    memcpy(&got, (const uint8_t *)h + sizeof *h + 8, sizeof got);
    const struct opened o = t->opened.data[*at];
    struct member *m = &t->members.data[member_of(t, r->pid, r->tid)];
    m->told = true;
    m->root = o.member;
    add_reading(&m->sums[o.event], &got, false);
    add_reading(&t->members.data[o.member].rest[o.event], &got, true);
}

static void take_record(struct count_threads *t, const struct perf_event_header *h)
{
    struct perf_record r;
    if (!perf_record_decode(h, 0, &r))
        return;
    switch (r.kind) {
    case PERF_FORK: {
        const uint64_t *parent = map_get(&t->by_tid, (uint64_t)r.parent_tid, 0);
        uint32_t from = parent ? (uint32_t)*parent : UINT32_MAX;
        uint32_t index = member_of(t, r.pid, r.tid);
        struct member *m = &t->members.data[index];
        if (from != UINT32_MAX && from != index) {
            if (!m->name[0])
                memcpy(m->name, t->members.data[from].name, sizeof m->name);
            m->root = t->members.data[from].root;
        }
        break;
    }
    case PERF_COMM:
        snprintf(t->members.data[member_of(t, r.pid, r.tid)].name, sizeof(struct member){0}.name,
                 "%s", r.comm);
        break;
    case PERF_READ:
        take_reading(t, h, &r);
        break;
    case PERF_LOST:
        t->lost += r.count;
        break;
    default:
        break;
    }
}

void count_threads_drain(struct count_threads *t)
{
    for (size_t i = 0; i < t->rings.len; i++) {
        struct cpu_ring *r = &t->rings.data[i];
        if (r->fd < 0)
            continue;
        ring_refresh(&r->ring);
        for (const struct perf_event_header *h; (h = ring_peek(&r->ring));) {
            take_record(t, h);
            ring_take(&r->ring);
        }
    }
}

size_t count_threads_fds(const struct count_threads *t, const int **fds)
{
    *fds = t->poll.data;
    return t->poll.len;
}

/*
 * Whom the rest belongs to. Counters change hands when threads of one origin follow each other on a
 * CPU: the one that ended with the first task's own ones was not told of, the first task was.
 */
static uint32_t owner_of_rest(struct count_threads *t, uint32_t root)
{
    uint32_t owner = root, candidates = 0;
    if (!t->members.data[root].told)
        return root;
    for (uint32_t i = 0; i < t->members.len; i++)
        if (t->members.data[i].root == root && !t->members.data[i].told) {
            owner = i;
            candidates++;
        }
    return candidates == 1 ? owner : root;
}

/* Software events are always on; others take turns, and of one CPU's event a task is enabled also
 * while it is on another. */
static struct counts_value value_of(const struct count_threads *t, size_t event,
                                    const struct reading *r)
{
    if (is_software(&t->plan->events.data[event]))
        return counts_scale(r->value, 1, 1);
    return counts_scale(r->value, r->enabled / (t->rings.len ? t->rings.len : 1), r->running);
}

static void settle_rests(struct count_threads *t)
{
    for (uint32_t i = 0; i < t->members.len; i++) {
        struct reading *rest = t->members.data[i].rest;
        struct reading *to = rest ? t->members.data[owner_of_rest(t, i)].sums : NULL;
        for (size_t k = 0; rest && k < t->plan->events.len; k++)
            if ((int64_t)rest[k].value >= 0) /* less than nothing: records were lost */
                add_reading(&to[k], &rest[k], false);
    }
}

static void add_row(struct count_threads *t, const struct member *m)
{
    struct counts_thread *row = vector_push(&t->counts->threads);
    *row = (struct counts_thread){.pid = m->pid, .tid = m->tid};
    row->name = arena_strdup(&t->counts->arena, m->name);
    row->values = counts_values(t->counts);
    for (size_t k = 0; k < t->plan->events.len; k++)
        if (!t->plan->events.data[k].broken)
            row->values[k] = value_of(t, k, &m->sums[k]);
}

void count_threads_finish(struct count_threads *t, struct counts_value *out)
{
    size_t n = t->plan->events.len;
    struct reading *whole = memory_array(n + 1, sizeof *whole), got;
    count_threads_drain(t);
    for (size_t i = 0; i < t->opened.len; i++) {
        const struct opened *o = &t->opened.data[i];
        if (io_read(o->fd, &got, sizeof got) != (ssize_t)sizeof got)
            continue;
        add_reading(&t->members.data[o->member].rest[o->event], &got, false);
        add_reading(&whole[o->event], &got, false);
    }
    settle_rests(t);
    for (size_t i = 0; i < n; i++)
        if (!t->plan->events.data[i].broken)
            out[i] = value_of(t, i, &whole[i]);
    for (size_t i = 0; i < t->members.len; i++)
        add_row(t, &t->members.data[i]);
    if (t->lost)
        counts_note(t->counts, NOTE_WARNING,
                    "the kernel dropped %llu records of ended threads: their counts stand with the "
                    "thread that started them",
                    (unsigned long long)t->lost);
    free(whole);
}

void count_threads_free(struct count_threads *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->rings.len; i++)
        if (t->rings.data[i].fd >= 0)
            ring_close(&t->rings.data[i].ring);
    for (size_t i = 0; i < t->opened.len; i++)
        close(t->opened.data[i].fd);
    for (size_t i = 0; i < t->others.len; i++)
        close(t->others.data[i]);
    for (size_t i = 0; i < t->members.len; i++) {
        free(t->members.data[i].sums);
        free(t->members.data[i].rest);
    }
    vector_release(&t->rings);
    vector_release(&t->poll);
    vector_release(&t->opened);
    vector_release(&t->others);
    vector_release(&t->members);
    map_release(&t->by_tid);
    map_release(&t->by_id);
    free(t);
}
