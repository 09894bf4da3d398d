/* Counters of the kernel; see counter.h. */
#include "capture/counter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/io.h"
#include "base/text.h"
#include "capture/cpus.h"

struct plan_context {
    struct counter_plan *plan;
    struct counts *counts;
};

static int plan_event(void *context, const char *name, unsigned group, struct error *err)
{
    struct plan_context *x = context;
    struct counter_event e = {0};
    struct error why = {0};
    if (x->plan->events.len == COUNTER_EVENTS_MAX)
        return error_set(err, FAULT_USAGE, "more than %d events", COUNTER_EVENTS_MAX);
    int rc = event_parse(name, &e.event, &why);
    if (rc == FAULT_USAGE) {
        *err = why;
        return rc;
    }
    bool clock = !rc && e.event.timed && !strcmp(e.event.name, "cpu");
    struct counts_event *row = counts_add_event(x->counts, name,
                                                rc      ? name
                                                : clock ? "cpu-clock"
                                                        : e.event.name);
    row->group = group;
    row->timed = e.event.timed;
    row->scale = e.event.scale;
    row->measure = arena_strdup(&x->counts->arena, e.event.measure);
    e.broken = rc != 0;
    if (rc)
        row->refused = arena_strdup(&x->counts->arena, why.text);
    *vector_push(&x->plan->events) = e;
    return 0;
}

int counter_plan_add(struct counter_plan *p, struct counts *c, const char *list, struct error *err)
{
    struct plan_context x = {.plan = p, .counts = c};
    return event_split(list, plan_event, &x, &p->groups, err);
}

int counter_plan_default(struct counter_plan *p, struct counts *c, struct error *err)
{
    return counter_plan_add(p, c,
                            "task-clock,context-switches,cpu-migrations,page-faults,cycles,"
                            "instructions,branches,branch-misses",
                            err);
}

void counter_plan_release(struct counter_plan *p)
{
    vector_release(&p->events);
}

void counters_init(struct counters *s, struct counter_plan *plan, struct counts *c)
{
    *s = (struct counters){.plan = plan, .counts = c};
}

/* Without the kernel's side where this user may not look at it: as perf does. */
static int open_one(struct counters *s, size_t i, struct perf_event_attr *a, pid_t tid, int cpu,
                    int leader)
{
    struct counter_event *e = &s->plan->events.data[i];
    int fd = event_open(a, tid, cpu, leader);
    if (fd < 0 && (errno == EACCES || errno == EPERM) && !a->exclude_kernel && !e->event.no_user &&
        !e->event.per_cpu) {
        a->exclude_kernel = 1;
        fd = event_open(a, tid, cpu, leader);
        if (fd < 0)
            return -1;
        e->event.no_kernel = true;
        s->counts->events.data[i].user_only = true;
    }
    return fd;
}

static int leader_of(const struct counters *s, unsigned group)
{
    return group && group < s->leaders.len ? s->leaders.data[group] : -1;
}

static void set_leader(struct counters *s, unsigned group, int fd)
{
    while (s->leaders.len <= group)
        *vector_push(&s->leaders) = -1;
    s->leaders.data[group] = fd;
}

/* Every event that can be had, on this task or CPU. */
static int add(struct counters *s, pid_t tid, int cpu, enum counter_how how, struct error *err)
{
    s->leaders.len = 0;
    for (size_t i = 0; i < s->plan->events.len; i++) {
        struct counter_event *e = &s->plan->events.data[i];
        struct counts_event *row = &s->counts->events.data[i];
        struct perf_event_attr a;
        if (e->broken)
            continue;
        int leader = leader_of(s, row->group);
        event_count_attr(&e->event, &a);
        a.inherit = how != COUNTER_TASK && tid >= 0;
        a.enable_on_exec = how == COUNTER_ON_EXEC && leader < 0;
        a.disabled = leader < 0; /* members go with their leader */
        int fd = open_one(s, i, &a, tid, cpu, leader);
        if (fd < 0 && errno == ESRCH)
            return error_set(err, FAULT_MISSING, "there is no task %d any more", tid);
        if (fd < 0) {
            e->broken = true;
            row->refused = arena_strdup(&s->counts->arena, event_refusal(&e->event, errno));
            continue;
        }
        if (row->group && leader < 0)
            set_leader(s, row->group, fd);
        *vector_push(&s->fds) = (struct counter_fd){.fd = fd, .event = (uint32_t)i};
    }
    return 0;
}

int counters_add_task(struct counters *s, pid_t tid, enum counter_how how, struct error *err)
{
    return add(s, tid, -1, how, err);
}

int counters_add_cpus(struct counters *s, struct error *err)
{
    struct cpus cpus = {0};
    int rc = 0;
    cpus_online(&cpus);
    for (size_t i = 0; i < cpus.len && !rc; i++)
        rc = add(s, -1, cpus.data[i], COUNTER_TASK, err);
    s->counts->cpus = cpus.len;
    vector_release(&cpus);
    return rc;
}

void counters_enable(struct counters *s)
{
    for (size_t i = 0; i < s->fds.len; i++)
        ioctl(s->fds.data[i].fd, PERF_EVENT_IOC_ENABLE, 0);
}

void counters_read(const struct counters *s, struct counts_value *out)
{
    struct reading {
        uint64_t value, enabled, running;
    } one;
    size_t n = s->plan->events.len;
    struct reading *sum = memory_array(n ? n : 1, sizeof *sum);
    bool *seen = memory_array(n ? n : 1, sizeof *seen);
    for (size_t i = 0; i < s->fds.len; i++) {
        uint32_t e = s->fds.data[i].event;
        if (io_read(s->fds.data[i].fd, &one, sizeof one) != (ssize_t)sizeof one)
            continue;
        seen[e] = true;
        sum[e].value += one.value;
        sum[e].enabled += one.enabled;
        sum[e].running += one.running;
    }
    for (size_t i = 0; i < n; i++)
        if (seen[i])
            out[i] = counts_scale(sum[i].value, sum[i].enabled, sum[i].running);
    free(sum);
    free(seen);
}

void counters_release(struct counters *s)
{
    for (size_t i = 0; i < s->fds.len; i++)
        close(s->fds.data[i].fd);
    vector_release(&s->fds);
    vector_release(&s->leaders);
}
