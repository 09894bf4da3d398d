/* Curves of processes into a recording; see record.h. */
#include "monitor/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "base/memory.h"
#include "recording/writer.h"

enum curve { CPU, RSS, PSS, READ, WRITTEN, FAULTS, RECEIVED, SENT, CURVES };

static const struct {
    const char *name;
    enum value_unit unit;
} kinds[CURVES] = {{"cpu", UNIT_COUNT},
                   {"rss", UNIT_BYTES},
                   {"pss", UNIT_BYTES},
                   {"disk read/s", UNIT_BYTES},
                   {"disk written/s", UNIT_BYTES},
                   {"faults/s", UNIT_COUNT},
                   {"net in/s", UNIT_BYTES},
                   {"net out/s", UNIT_BYTES}};

struct recorded {
    pid_t pid;
    uint64_t started, look;
    uint32_t process, thread;
    uint32_t series[CURVES];
};

struct watch_record {
    struct writer *writer;
    struct map by_pid; /* -> pointer */
    uint32_t machine[3];
    uint64_t looks;
};

static void put_number(struct writer *w, const char *key, uint64_t v)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)v);
    writer_meta(w, key, digits);
}

int watch_record_open(const char *path, bool replace, struct watch_record **out, struct error *err)
{
    struct utsname u;
    struct writer *w;
    int rc = writer_new(path, replace, &w, err);
    if (rc)
        return rc;
    struct watch_record *r = *out = memory_alloc(sizeof *r);
    r->writer = w;
    put_number(w, "start", clock_now());
    put_number(w, "wall_start", clock_wall());
    writer_meta(w, "mode", "monitor");
    writer_meta(w, "command", "sonde monitor");
    if (uname(&u) == 0) {
        writer_meta(w, "host", u.nodename);
        writer_meta(w, "kernel", u.release);
        writer_meta(w, "machine", u.machine);
    }
    static const char *const names[] = {"machine cpu", "machine memory", "machine stolen"};
    for (size_t i = 0; i < 3; i++)
        r->machine[i] =
            writer_series(w, names[i], i == 1 ? UNIT_BYTES : UNIT_COUNT, WRITER_NONE, WRITER_NONE);
    return 0;
}

static struct recorded *find(const struct watch_record *r, pid_t pid)
{
    const uint64_t *at = map_get(&r->by_pid, (uint64_t)pid, 0);
    return at ? (struct recorded *)(uintptr_t)*at : NULL;
}

static void end(struct watch_record *r, struct recorded *p, uint64_t time)
{
    writer_thread_end(r->writer, p->thread, time, 0);
    writer_process_end(r->writer, p->process, time, -1, 0);
    map_remove(&r->by_pid, (uint64_t)p->pid, 0);
    free(p);
}

static struct recorded *begin(struct watch_record *r, const struct watch_task *t, uint64_t now)
{
    struct recorded *p = memory_alloc(sizeof *p);
    const struct recorded *parent = find(r, t->parent);
    *p = (struct recorded){.pid = t->pid, .started = t->started};
    p->process = writer_process(r->writer, t->pid, parent ? parent->process : WRITER_NONE, now);
    writer_exec(r->writer, p->process, now, t->name, "", t->command);
    p->thread = writer_thread(r->writer, p->process, t->pid, now);
    writer_thread_name(r->writer, p->thread, t->name);
    for (size_t i = 0; i < CURVES; i++)
        p->series[i] =
            writer_series(r->writer, kinds[i].name, kinds[i].unit, p->process, WRITER_NONE);
    map_put(&r->by_pid, (uint64_t)t->pid, 0, (uint64_t)(uintptr_t)p, NULL);
    return p;
}

static void add_points(struct watch_record *r, const struct recorded *p, const struct watch_task *t,
                       uint64_t now)
{
    const double value[CURVES] = {t->cpu_rate * 1000, (double)t->rss, (double)t->pss, t->read_rate,
                                  t->write_rate,      t->fault_rate,  t->net_in,      t->net_out};
    const bool known[CURVES] = {true,        true, t->memory_known, t->io_known,
                                t->io_known, true, t->net_known,    t->net_known};
    for (size_t i = 0; i < CURVES; i++)
        if (known[i])
            writer_point(r->writer, p->series[i], now, (int64_t)(value[i] + 0.5));
}

void watch_record_look(struct watch_record *r, struct watch *w, const struct listing *rows)
{
    const struct watch_machine *m = &w->machine;
    r->looks++;
    for (size_t i = 0; i < rows->list.len; i++) {
        struct watch_task *t = rows->list.data[i].task;
        struct recorded *p = find(r, t->pid);
        if (t->pid != t->tid)
            continue;
        if (p && p->started != t->started) {
            end(r, p, w->now);
            p = NULL;
        }
        if (!p)
            p = begin(r, t, w->now);
        p->look = r->looks;
        watch_detail(w, t);
        add_points(r, p, t, w->now);
    }
    for (size_t i = 0; r->by_pid.len && i <= r->by_pid.mask; i++) {
        struct recorded *p =
            r->by_pid.slots[i].used ? (struct recorded *)(uintptr_t)r->by_pid.slots[i].value : NULL;
        if (p && p->look != r->looks) {
            end(r, p, w->now);
            i--; /* what followed may have moved up */
        }
    }
    writer_point(r->writer, r->machine[0], w->now, (int64_t)((m->cpus - m->idle) * 1000));
    writer_point(r->writer, r->machine[1], w->now, (int64_t)(m->memory - m->available));
    writer_point(r->writer, r->machine[2], w->now, (int64_t)(m->steal * 1000));
    writer_flush(r->writer, NULL);
}

int watch_record_close(struct watch_record *r, struct error *err)
{
    for (size_t i = 0; r->by_pid.len && i <= r->by_pid.mask; i++)
        if (r->by_pid.slots[i].used)
            free((void *)(uintptr_t)r->by_pid.slots[i].value);
    map_release(&r->by_pid);
    int rc = writer_free(r->writer, true, clock_now(), err);
    free(r);
    return rc;
}
