/* Views of what is watched; see tables.h. */
#include "monitor/tables.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "monitor/files.h"
#include "monitor/machine.h"

const char *tables_user(uid_t user)
{
    static char name[40];
    static uid_t last = (uid_t)-1;
    if (user == last && *name)
        return name;
    const struct passwd *p = getpwuid(user);
    last = user;
    if (p)
        snprintf(name, sizeof name, "%s", p->pw_name);
    else
        snprintf(name, sizeof name, "%u", user);
    return name;
}

static struct view_value share(double part, double whole)
{
    return (struct view_value){.known = whole > 0, .percent = whole > 0 ? 100 * part / whole : 0};
}

static struct view_value amount(double v)
{
    return view_number(v > 0 ? (uint64_t)(v + 0.5) : 0);
}

static void add_cpu_facts(struct view_section *s, const struct watch_machine *m)
{
    static const struct {
        const char *id, *after;
    } names[] = {{"user", " user"},
                 {"system", " system"},
                 {"wait", " waiting for disks"},
                 {"steal", " stolen"},
                 {"idle", " idle"}};
    const double part[] = {m->user, m->system, m->wait, m->steal, m->idle - m->wait};
    struct view_fact *f = view_fact(s, "cpu", "cpus", "CPUs", VIEW_COUNT, view_number(m->cpus));
    f->after = m->cpus == 1 ? " CPU" : " CPUs";
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        f = view_fact(s, "cpu", names[i].id, names[i].id, VIEW_PERCENT, share(part[i], m->cpus));
        f->after = names[i].after;
    }
}

static void add_pressure_facts(struct view_section *s, const struct watch_machine *m)
{
    static const char *const ids[] = {"pressure_cpu", "pressure_memory", "pressure_io"};
    static const char *const after[] = {" waited for a CPU", " for memory", " for I/O"};
    for (size_t i = 0; i < 3 && m->pressure_known; i++) {
        struct view_value v = {.known = true, .percent = m->pressure[i]};
        view_fact(s, "pressure", ids[i], ids[i], VIEW_PERCENT, v)->after = after[i];
    }
}

void tables_machine(struct view *v, const struct watch *w)
{
    const struct watch_machine *m = &w->machine;
    struct view_section *s = view_add(v, VIEW_FACTS, "machine", "");
    add_cpu_facts(s, m);
    char load[64];
    snprintf(load, sizeof load, "%.2f %.2f %.2f", m->load[0], m->load[1], m->load[2]);
    view_fact(s, "load", "load", "load", VIEW_TEXT, view_text(s, load));
    view_fact(s, "load", "up", "up", VIEW_DURATION, view_number(m->up))->before = "up ";
    view_fact(s, "memory", "memory_used", "used", VIEW_BYTES, view_number(m->memory - m->available))
        ->after = " used";
    view_fact(s, "memory", "memory", "memory", VIEW_BYTES, view_number(m->memory))->before = "of ";
    view_fact(s, "memory", "cached", "cached", VIEW_BYTES, view_number(m->cached))->after =
        " cached";
    view_fact(s, "memory", "swap_used", "swap", VIEW_BYTES, view_number(m->swap - m->swap_free))
        ->after = " swapped";
    add_pressure_facts(s, m);
    view_fact(s, "disk", "disk_read", "read", VIEW_BYTES, amount(m->disk_read))->after = "/s read";
    view_fact(s, "disk", "disk_written", "written", VIEW_BYTES, amount(m->disk_written))->after =
        "/s written";
    view_fact(s, "network", "net_in", "in", VIEW_BYTES, amount(m->net_in))->after = "/s in";
    view_fact(s, "network", "net_out", "out", VIEW_BYTES, amount(m->net_out))->after = "/s out";
    struct view_fact *f =
        view_fact(s, "tasks", "processes", "processes", VIEW_COUNT, view_number(m->processes));
    f->after = m->processes == 1 ? " process" : " processes";
    view_fact(s, "tasks", "threads", "threads", VIEW_COUNT, view_number(m->threads))->after =
        m->threads == 1 ? " thread" : " threads";
    view_fact(s, "tasks", "running", "running", VIEW_COUNT, view_number(m->running))->after =
        " running";
}

enum {
    CPU,
    RSS,
    PSS,
    SWAP,
    READ,
    WRITTEN,
    RECEIVED,
    SENT,
    FAULTS,
    SWITCHES,
    TIME,
    THREADS,
    STATE,
    USER,
    COMMAND,
    PID,
    TID,
    PARENT,
    NAME,
    NICE,
    PROCESSOR,
    VIRTUAL,
    COLUMNS
};

static const struct view_column process_columns[COLUMNS] = {
    [CPU] = {.id = "cpu_percent", .heading = "cpu", .kind = VIEW_PERCENT},
    [RSS] = {.id = "rss", .heading = "RSS", .kind = VIEW_BYTES},
    [PSS] = {.id = "pss", .heading = "PSS", .kind = VIEW_BYTES, .from_width = 110},
    [SWAP] = {.id = "swap", .heading = "swap", .kind = VIEW_BYTES, .from_width = 130},
    [READ] = {.id = "read_rate", .heading = "read/s", .kind = VIEW_BYTES, .from_width = 100},
    [WRITTEN] = {.id = "write_rate", .heading = "write/s", .kind = VIEW_BYTES, .from_width = 100},
    [RECEIVED] = {.id = "net_in_rate", .heading = "in/s", .kind = VIEW_BYTES, .from_width = 150},
    [SENT] = {.id = "net_out_rate", .heading = "out/s", .kind = VIEW_BYTES, .from_width = 150},
    [FAULTS] = {.id = "fault_rate", .heading = "faults/s", .kind = VIEW_COUNT, .from_width = 120},
    [SWITCHES] = {.id = "switch_rate",
                  .heading = "switches/s",
                  .kind = VIEW_COUNT,
                  .from_width = 140},
    [TIME] = {.id = "cpu_time", .heading = "time", .kind = VIEW_DURATION},
    [THREADS] = {.id = "threads", .heading = "thr", .kind = VIEW_COUNT, .from_width = 90},
    [STATE] = {.id = "state", .heading = "S", .kind = VIEW_TEXT},
    [USER] = {.id = "user", .heading = "user", .kind = VIEW_TEXT, .from_width = 90},
    [COMMAND] = {.id = "command", .heading = "Processes", .kind = VIEW_TEXT, .fill = true},
    [PID] = {.id = "pid", .heading = "pid", .kind = VIEW_NUMBER, .from_width = VIEW_MACHINES},
    [TID] = {.id = "tid", .heading = "tid", .kind = VIEW_NUMBER, .from_width = VIEW_MACHINES},
    [PARENT] = {.id = "parent_pid",
                .heading = "parent",
                .kind = VIEW_NUMBER,
                .from_width = VIEW_MACHINES},
    [NAME] = {.id = "name", .heading = "name", .kind = VIEW_TEXT, .from_width = VIEW_MACHINES},
    [NICE] = {.id = "nice", .heading = "nice", .kind = VIEW_TEXT, .from_width = VIEW_MACHINES},
    [PROCESSOR] = {.id = "processor",
                   .heading = "processor",
                   .kind = VIEW_NUMBER,
                   .from_width = VIEW_MACHINES},
    [VIRTUAL] = {.id = "virtual",
                 .heading = "virtual",
                 .kind = VIEW_BYTES,
                 .from_width = VIEW_MACHINES},
};

static void fill(struct view_section *s, struct view_value *cell, const struct watch_task *t)
{
    char text[4200], state[2] = {t->state, 0}, nice[16];
    cell[CPU] = (struct view_value){.known = true, .percent = 100 * t->cpu_rate};
    cell[RSS] = view_number(t->rss);
    if (t->memory_known)
        cell[PSS] = view_number(t->pss);
    cell[SWAP] = view_number(t->swap);
    if (t->io_known) {
        cell[READ] = amount(t->read_rate);
        cell[WRITTEN] = amount(t->write_rate);
    }
    if (t->net_known) {
        cell[RECEIVED] = amount(t->net_in);
        cell[SENT] = amount(t->net_out);
    }
    cell[FAULTS] = amount(t->fault_rate);
    cell[SWITCHES] = amount(t->switch_rate);
    cell[TIME] = view_number(t->cpu);
    cell[THREADS] = view_number(t->threads);
    cell[STATE] = view_text(s, state);
    cell[USER] = view_text(s, tables_user(t->user));
    snprintf(text, sizeof text, "%d %s", t->tid, t->command);
    cell[COMMAND] = view_text(s, text);
    cell[PID] = view_number((uint64_t)t->pid);
    cell[TID] = view_number((uint64_t)t->tid);
    cell[PARENT] = view_number((uint64_t)t->parent);
    cell[NAME] = view_text(s, t->name);
    snprintf(nice, sizeof nice, "%d", t->nice);
    cell[NICE] = view_text(s, nice);
    cell[PROCESSOR] = view_number((uint64_t)t->processor);
    cell[VIRTUAL] = view_number(t->virtual);
}

void tables_processes(struct view *v, struct watch *w, const struct listing *rows, size_t top)
{
    struct view_section *s = view_add_table(v, "processes", "", process_columns, COLUMNS);
    size_t n = top && rows->list.len > top ? top : rows->list.len;
    for (size_t i = 0; i < n; i++) {
        const struct listing_row *r = &rows->list.data[i];
        s->tree |= r->depth > 0;
        watch_detail(w, r->task);
        fill(s, view_row(s, r->depth, VIEW_PLAIN), r->task);
    }
    s->omitted = rows->list.len - n;
}

void tables_mounts(struct view *v)
{
    static const struct view_column columns[] = {
        {.id = "size", .heading = "size", .kind = VIEW_BYTES},
        {.id = "used", .heading = "used", .kind = VIEW_BYTES},
        {.id = "available", .heading = "available", .kind = VIEW_BYTES},
        {.id = "used_percent", .heading = "%", .kind = VIEW_PERCENT, .bar = true},
        {.id = "type", .heading = "type", .kind = VIEW_TEXT},
        {.id = "path", .heading = "File systems", .kind = VIEW_TEXT, .fill = true},
        {.id = "device", .heading = "device", .kind = VIEW_TEXT, .from_width = 110},
    };
    struct watch_mounts m = {0};
    machine_mounts(&m);
    struct view_section *s =
        view_add_table(v, "mounts", "", columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < m.list.len; i++) {
        const struct watch_mount *one = &m.list.data[i];
        struct view_value *cell = view_row(s, 0, VIEW_PLAIN);
        cell[0] = view_number(one->size);
        cell[1] = view_number(one->used);
        cell[2] = view_number(one->available);
        cell[3] = view_percent(one->used, one->used + one->available);
        cell[4] = view_text(s, one->type);
        cell[5] = view_text(s, one->path);
        cell[6] = view_text(s, one->device);
    }
    machine_mounts_release(&m);
}
