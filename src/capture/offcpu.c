/* Time off the CPU; see offcpu.h. */
#include "capture/offcpu.h"

#include <stdlib.h>
#include <string.h>

#include "base/io.h"

#define KALLSYMS_MAX ((size_t)64 << 20)

/* Kernel functions that wait, and what they wait for. The innermost one on the stack decides. */
static const struct {
    const char *name;
    enum cause cause;
} telling[] = {
    {"futex_wait_queue", CAUSE_LOCK},
    {"futex_do_wait", CAUSE_LOCK},
    {"__futex_wait", CAUSE_LOCK},
    {"futex_wait", CAUSE_LOCK},
    {"futex_lock_pi", CAUSE_LOCK},
    {"do_futex", CAUSE_LOCK},
    {"do_nanosleep", CAUSE_SLEEP},
    {"hrtimer_nanosleep", CAUSE_SLEEP},
    {"do_sigtimedwait", CAUSE_SLEEP},
    {"__do_sys_pause", CAUSE_SLEEP},
    {"__x64_sys_pause", CAUSE_SLEEP},
    {"sigsuspend", CAUSE_SLEEP},
    {"do_wait", CAUSE_CHILD},
    {"kernel_wait4", CAUSE_CHILD},
    {"wait_for_vfork_done", CAUSE_CHILD},
    {"io_schedule", CAUSE_IO},
    {"io_schedule_timeout", CAUSE_IO},
    {"anon_pipe_read", CAUSE_IO},
    {"anon_pipe_write", CAUSE_IO},
    {"pipe_read", CAUSE_IO},
    {"pipe_write", CAUSE_IO},
    {"pipe_wait_readable", CAUSE_IO},
    {"ep_poll", CAUSE_IO},
    {"do_epoll_wait", CAUSE_IO},
    {"do_sys_poll", CAUSE_IO},
    {"do_poll", CAUSE_IO},
    {"do_select", CAUSE_IO},
    {"core_sys_select", CAUSE_IO},
    {"folio_wait_bit_common", CAUSE_IO},
    {"__skb_wait_for_more_packets", CAUSE_IO},
    {"sk_wait_data", CAUSE_IO},
    {"sk_stream_wait_memory", CAUSE_IO},
    {"unix_stream_read_generic", CAUSE_IO},
    {"inet_csk_accept", CAUSE_IO},
    {"n_tty_read", CAUSE_IO},
    {"io_cqring_wait", CAUSE_IO},
    {"jbd2_log_wait_commit", CAUSE_IO},
    {"wait_for_completion_io", CAUSE_IO},
    {"eventfd_read", CAUSE_IO},
    {"signalfd_read_iter", CAUSE_IO},
    {"ksys_read", CAUSE_IO},
    {"ksys_write", CAUSE_IO},
    {"vfs_fsync_range", CAUSE_IO},
    {"rwsem_down_read_slowpath", CAUSE_LOCK},
    {"rwsem_down_write_slowpath", CAUSE_LOCK},
    {"__mutex_lock", CAUSE_LOCK},
    {"do_msgrcv", CAUSE_IO},
    {"do_semtimedop", CAUSE_LOCK},
};

static int by_start(const void *a, const void *b)
{
    const struct kernel_range *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

static int cause_of_name(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof telling / sizeof *telling; i++)
        if (strlen(telling[i].name) == len && !memcmp(telling[i].name, name, len))
            return (int)telling[i].cause;
    return -1;
}

/* One line of /proc/kallsyms: "ffffffff81000000 T name [module]". False if it is not one. */
static bool parse_symbol(const char *line, uint64_t *address, const char **name, size_t *len)
{
    char *end;
    *address = strtoull(line, &end, 16);
    if (end == line || !*address || end[0] != ' ' || !end[1] || end[2] != ' ')
        return false;
    *name = end + 3;
    *len = strcspn(*name, "\t \n");
    return true;
}

/* A function ends where the next one begins, which is the next line of the listing. */
static void learn(struct offcpu *o)
{
    char *text;
    if (io_slurp("/proc/kallsyms", KALLSYMS_MAX, &text, NULL, NULL))
        return;
    bool open = false;
    for (char *line = text; line && *line;) {
        uint64_t address;
        const char *name;
        size_t len;
        if (parse_symbol(line, &address, &name, &len)) {
            if (open && address > o->ranges.data[o->ranges.len - 1].start) {
                o->ranges.data[o->ranges.len - 1].end = address;
                open = false;
            }
            int cause = open ? -1 : cause_of_name(name, len);
            if (cause >= 0) {
                *vector_push(&o->ranges) = (struct kernel_range){
                    .start = address, .end = address, .cause = (enum cause)cause};
                open = true;
            }
        }
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    free(text);
    if (o->ranges.len)
        qsort(o->ranges.data, o->ranges.len, sizeof *o->ranges.data, by_start);
}

void offcpu_init(struct offcpu *o, struct writer *writer)
{
    static const char *const names[CAUSES] = {"off-cpu:sleep", "off-cpu:lock",  "off-cpu:io",
                                              "off-cpu:child", "off-cpu:queue", "off-cpu:other"};
    *o = (struct offcpu){.writer = writer};
    for (int i = 0; i < CAUSES; i++)
        o->event[i] = writer_event(writer, names[i], UNIT_NANOSECONDS, 0);
    learn(o);
}

void offcpu_release(struct offcpu *o)
{
    vector_release(&o->ranges);
}

static enum cause cause_of(const struct offcpu *o, uint64_t address)
{
    size_t low = 0, high = o->ranges.len;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (o->ranges.data[mid].end <= address)
            low = mid + 1;
        else
            high = mid;
    }
    if (low < o->ranges.len && o->ranges.data[low].start <= address)
        return o->ranges.data[low].cause;
    return CAUSES;
}

void offcpu_on_sample(struct offcpu *o, struct thread *t, const struct perf_record *r,
                      uint32_t stack)
{
    enum cause cause = CAUSES;
    for (size_t i = 0; i < r->chain_len && cause == CAUSES; i++)
        cause = cause_of(o, r->chain[i] - (i > 0));
    t->blocked = (struct blocked){.since = r->time,
                                  .stack = stack,
                                  .event = o->event[cause == CAUSES ? CAUSE_OTHER : cause],
                                  .has_stack = true};
}

void offcpu_on_gil(struct offcpu *o, struct thread *t)
{
    if (!o->gil)
        o->gil = 1 + writer_event(o->writer, "off-cpu:gil", UNIT_NANOSECONDS, 0);
    t->blocked.event = o->gil - 1;
}

void offcpu_on_holder(struct offcpu *o, struct thread *t, uint32_t holder, uint32_t stack)
{
    if (!o->held)
        o->held = 1 + writer_event(o->writer, "waited-for", UNIT_NANOSECONDS, 0);
    t->blocked.has_holder = true;
    t->blocked.holder = holder;
    t->blocked.holder_stack = stack;
}

void offcpu_close(struct offcpu *o, struct thread *t, uint64_t time)
{
    struct blocked *b = &t->blocked;
    if (b->since && b->has_stack && time > b->since)
        writer_sample(o->writer, b->event, b->since, t->id, b->stack, time - b->since);
    if (b->since && b->has_holder && time > b->since)
        writer_sample(o->writer, o->held - 1, b->since, b->holder, b->holder_stack,
                      time - b->since);
    *b = (struct blocked){0};
}

void offcpu_on_switch(struct offcpu *o, struct thread *t, const struct perf_record *r)
{
    if (!r->out)
        offcpu_close(o, t, r->time);
    else if (r->preempted && t->blocked.has_stack)
        t->blocked.event = o->event[CAUSE_QUEUE];
}
