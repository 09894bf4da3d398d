/* Processes and threads of the tree; see tasks.h. */
#include "capture/tasks.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "capture/proc.h"

#define NAME_MAX_BYTES 64
#define ARGUMENTS_MAX 4096
/* What the kernel still has to say of a process that is no more arrives within this time. */
#define SWEEP_GRACE (100 * 1000000ull)
#define EARLY_MAX 4096

void tasks_init(struct tasks *t, struct writer *writer, struct modules *modules)
{
    *t = (struct tasks){.writer = writer, .modules = modules};
}

static void *pointer_at(const struct map *m, pid_t key)
{
    const uint64_t *p = map_get(m, (uint64_t)key, 0);
    return p ? (void *)(uintptr_t)*p : NULL;
}

static void set_pointer(struct map *m, pid_t key, void *value)
{
    *map_put(m, (uint64_t)key, 0, 0, NULL) = (uint64_t)(uintptr_t)value;
}

struct process *tasks_find(struct tasks *t, pid_t pid)
{
    return pointer_at(&t->by_pid, pid);
}

static struct thread *find_thread(struct tasks *t, pid_t tid)
{
    return pointer_at(&t->by_tid, tid);
}

struct thread *tasks_find_thread(struct tasks *t, pid_t pid, pid_t tid)
{
    struct thread *th = find_thread(t, tid);
    return th && th->process->pid == pid ? th : NULL;
}

/* Word of an end by another way than the records may come before that of the beginning. */
static void take_early_status(struct tasks *t, struct process *p)
{
    for (size_t i = 0; i < t->early.len; i++) {
        struct early *e = &t->early.data[i];
        if (e->pid != p->pid || e->time < p->start)
            continue;
        p->status = e->status;
        *e = t->early.data[--t->early.len];
        return;
    }
}

static struct process *add_process(struct tasks *t, pid_t pid, struct process *parent,
                                   uint64_t time)
{
    struct process *p = memory_alloc(sizeof *p);
    p->pid = pid;
    p->start = time;
    p->status = -1;
    p->id = writer_process(t->writer, pid, parent ? parent->id : WRITER_NONE, time);
    p->space = parent ? space_share(parent->space) : space_new();
    take_early_status(t, p);
    set_pointer(&t->by_pid, pid, p);
    t->live_processes++;
    t->all_processes++;
    return p;
}

static struct thread *add_thread(struct tasks *t, struct process *p, pid_t tid, uint64_t time)
{
    struct thread *th = memory_alloc(sizeof *th);
    th->tid = tid;
    th->start = time;
    th->process = p;
    th->id = writer_thread(t->writer, p->id, tid, time);
    set_pointer(&t->by_tid, tid, th);
    p->threads++;
    t->live_threads++;
    t->all_threads++;
    return th;
}

static void set_name(struct tasks *t, struct thread *th, const char *name)
{
    snprintf(th->name, sizeof th->name, "%.15s", name);
    if (!th->python_name)
        writer_thread_name(t->writer, th->id, name);
}

static void end_process(struct tasks *t, struct process *p, uint64_t time)
{
    if (p->ended)
        return;
    p->ended = true;
    p->end = time;
    t->live_processes--;
    if (tasks_find(t, p->pid) == p)
        map_remove(&t->by_pid, (uint64_t)p->pid, 0);
    *vector_push(&t->ended) = p;
}

static void end_thread(struct tasks *t, struct thread *th, uint64_t time)
{
    if (th->end)
        return;
    th->end = time ? time : 1;
    t->live_threads--;
    *vector_push(&t->retired) = th;
    if (th->process->threads && --th->process->threads == 0)
        end_process(t, th->process, time);
}

/* A number that is used again: the one who had it is gone. */
static void replace_thread(struct tasks *t, pid_t tid, uint64_t time)
{
    struct thread *old = find_thread(t, tid);
    if (!old)
        return;
    end_thread(t, old, time);
    map_remove(&t->by_tid, (uint64_t)tid, 0);
}

void tasks_warn_of_setuid(struct tasks *t, const char *path)
{
    struct stat st;
    char note[512];
    if (geteuid() == 0 || stat(path, &st) < 0 || !(st.st_mode & S_ISUID) || st.st_uid == geteuid())
        return;
    snprintf(note, sizeof note,
             "%.300s is setuid and runs as another user: it and what it starts are not in this "
             "recording; run sonde as root to have them",
             path);
    writer_note(t->writer, NOTE_WARNING, note);
}

static void forget_program(struct process *p)
{
    free(p->nameless);
    free(p->arguments);
    p->nameless = p->arguments = NULL;
}

static void write_program(struct tasks *t, struct process *p, const char *comm, uint64_t time)
{
    char name[NAME_MAX_BYTES] = "", exe[ARGUMENTS_MAX] = "", arguments[ARGUMENTS_MAX] = "";
    if (comm)
        snprintf(name, sizeof name, "%s", comm);
    else
        proc_comm(p->pid, p->pid, name, sizeof name);
    proc_exe(p->pid, exe, sizeof exe);
    bool told = comm && t->commands &&
                commands_take(t->commands, p->pid, time, arguments, sizeof arguments);
    /* What is cut short there is whole here, if it still lives. */
    if (!told || strlen(arguments) >= COMMANDS_ARGUMENTS - 1)
        proc_arguments(p->pid, arguments, sizeof arguments);
    writer_exec(t->writer, p->id, time, name, exe, arguments);
    tasks_warn_of_setuid(t, exe);
    forget_program(p);
    if (!*exe) {
        p->nameless = memory_strdup(name);
        p->arguments = memory_strdup(arguments);
    }
    p->exec_time = time;
}

/* A program that ended before it could be asked for its path: what it maps first is itself. */
static void learn_program(struct tasks *t, struct process *p, const char *path)
{
    if (!p->nameless || path[0] != '/')
        return;
    writer_exec(t->writer, p->id, p->exec_time, p->nameless, path, p->arguments);
    tasks_warn_of_setuid(t, path);
    forget_program(p);
}

static void read_mapping(void *context, const struct proc_mapping *m)
{
    void **pair = context;
    struct process *p = pair[1];
    tasks_on_map(pair[0], p->pid, m->path, m->start, m->end - m->start, m->offset, NULL, 0, 0);
}

/* A process that nobody announced: it was there before us, or its announcement was lost. */
static struct process *discover_process(struct tasks *t, pid_t pid, uint64_t time)
{
    struct process *parent = tasks_find(t, proc_parent(pid));
    struct process *p = add_process(t, pid, parent, time);
    space_drop(p->space);
    p->space = space_new();
    write_program(t, p, NULL, time);
    void *pair[2] = {t, p};
    proc_each_mapping(pid, read_mapping, pair, NULL);
    return p;
}

struct thread *tasks_thread(struct tasks *t, pid_t pid, pid_t tid, uint64_t time)
{
    struct thread *th = find_thread(t, tid);
    /* Also one that has ended: it is sampled on its last steps, after the word of its end. */
    if (th && th->process->pid == pid)
        return th;
    replace_thread(t, tid, time);
    struct process *p = tasks_find(t, pid);
    if (!p)
        p = discover_process(t, pid, time);
    th = add_thread(t, p, tid, time);
    char name[NAME_MAX_BYTES];
    if (proc_comm(pid, tid, name, sizeof name))
        set_name(t, th, name);
    return th;
}

void tasks_on_fork(struct tasks *t, pid_t pid, pid_t tid, pid_t parent, pid_t parent_tid,
                   uint64_t time)
{
    struct process *p = tasks_find(t, pid);
    /* Somebody was faster to tell of it than the kernel's record. */
    struct thread *known = find_thread(t, tid);
    if (known && known->process == p && known->start >= time)
        return;
    replace_thread(t, tid, time);
    if (pid != parent && p && pid == tid) {
        end_process(t, p, time);
        p = NULL;
    }
    if (!p) {
        struct process *from = tasks_find(t, parent);
        p = from ? add_process(t, pid, from, time) : discover_process(t, pid, time);
    }
    struct thread *made = add_thread(t, p, tid, time), *maker = find_thread(t, parent_tid);
    if (maker && maker->name[0])
        set_name(t, made, maker->name);
}

void tasks_on_exec(struct tasks *t, pid_t pid, const char *comm, uint64_t time)
{
    if (!tasks_find(t, pid)) /* the command itself: nothing before this counts */
        add_process(t, pid, tasks_find(t, proc_parent(pid)), time);
    struct thread *th = tasks_thread(t, pid, pid, time);
    struct process *p = th->process;
    space_drop(p->space);
    p->space = space_new();
    write_program(t, p, comm, time);
    th->python_name = 0;
    set_name(t, th, comm);
}

void tasks_on_name(struct tasks *t, pid_t pid, pid_t tid, const char *name, uint64_t time)
{
    set_name(t, tasks_thread(t, pid, tid, time), name);
}

void tasks_on_python_name(struct tasks *t, pid_t pid, pid_t tid, const char *name)
{
    struct thread *th = find_thread(t, tid);
    uint64_t hash = 1469598103934665603ull;
    for (const char *c = name; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 1099511628211ull;
    if (!th || th->process->pid != pid || th->end || th->python_name == hash)
        return;
    th->python_name = hash;
    writer_thread_name(t->writer, th->id, name);
}

void tasks_on_map(struct tasks *t, pid_t pid, const char *path, uint64_t start, uint64_t length,
                  uint64_t offset, const uint8_t *build_id, size_t build_id_len, uint64_t time)
{
    struct process *p = tasks_find(t, pid);
    if (!p || start + length < start)
        return;
    learn_program(t, p, path);
    struct module *m =
        modules_find(t->modules, pid, path, start, start + length, build_id, build_id_len);
    const struct rows *rows = module_rows(t->modules, m);
    p->space = space_with(p->space, m, start, start + length, offset, rows);
    writer_mapping(t->writer, p->id, m->id, start, start + length, offset, time);
}

void tasks_on_exit(struct tasks *t, pid_t pid, pid_t tid, uint64_t time)
{
    struct thread *th = find_thread(t, tid);
    if (th && th->process->pid == pid)
        end_thread(t, th, time);
}

void tasks_on_cpu(struct tasks *t, pid_t tid, uint64_t ns)
{
    struct thread *th = find_thread(t, tid);
    t->cpu_told += ns;
    if (!th)
        return;
    th->cpu += ns;
    th->cpu_counts++;
}

void tasks_on_cpu_seen(struct tasks *t, pid_t tid, uint64_t ns)
{
    struct thread *th = find_thread(t, tid);
    if (th)
        th->cpu_seen = ns;
}

/* The kernel lets a parent and its child trade counters when one follows the other on a CPU, and it
 * tells nothing at the end of the task that then holds those of the very first. */
void tasks_settle_cpu(struct tasks *t, uint64_t sum)
{
    if (t->untold.len == 1 && sum > t->cpu_told)
        writer_thread_end(t->writer, t->untold.data[0].thread, t->untold.data[0].end,
                          sum - t->cpu_told);
}

void tasks_on_status(struct tasks *t, pid_t pid, int status, uint64_t max_rss, uint64_t time)
{
    struct process *p = tasks_find(t, pid);
    for (size_t i = t->ended.len; !p && i > 0; i--)
        if (t->ended.data[i - 1]->pid == pid)
            p = t->ended.data[i - 1];
    if (!p && t->early.len < EARLY_MAX)
        *vector_push(&t->early) = (struct early){.pid = pid, .status = status, .time = time};
    if (!p)
        return;
    p->status = status;
    p->max_rss = max_rss;
}

static void forget_early_statuses(struct tasks *t, uint64_t before)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->early.len; i++)
        if (t->early.data[i].time >= before)
            t->early.data[kept++] = t->early.data[i];
    t->early.len = kept;
}

static void write_thread_end(struct tasks *t, struct thread *th)
{
    bool told = th->cpu_counts && th->cpu_counts == t->counters;
    if (!told && !th->cpu_seen)
        *vector_push(&t->untold) = (struct untold){.thread = th->id, .end = th->end};
    writer_thread_end(t->writer, th->id, th->end, told ? th->cpu : th->cpu_seen);
    if (find_thread(t, th->tid) == th)
        map_remove(&t->by_tid, (uint64_t)th->tid, 0);
    free(th);
}

static void free_process(struct process *p)
{
    space_drop(p->space);
    forget_program(p);
    free(p);
}

void tasks_retire(struct tasks *t, uint64_t before)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->retired.len; i++) {
        if (t->retired.data[i]->end < before)
            write_thread_end(t, t->retired.data[i]);
        else
            t->retired.data[kept++] = t->retired.data[i];
    }
    t->retired.len = kept;
    kept = 0;
    for (size_t i = 0; i < t->ended.len; i++) {
        struct process *p = t->ended.data[i];
        /* Threads of it that were not announced as gone keep it until they are. */
        if (p->end >= before || p->threads) {
            t->ended.data[kept++] = p;
            continue;
        }
        writer_process_end(t->writer, p->id, p->end, p->status, p->max_rss);
        free_process(p);
    }
    t->ended.len = kept;
    forget_early_statuses(t, before);
}

void tasks_each_thread(struct tasks *t, void (*each)(void *context, struct thread *thread),
                       void *context)
{
    for (size_t i = 0; t->by_tid.slots && i <= t->by_tid.mask; i++) {
        if (!t->by_tid.slots[i].used)
            continue;
        struct thread *th = (struct thread *)(uintptr_t)t->by_tid.slots[i].value;
        if (!th->end)
            each(context, th);
    }
}

void tasks_each_process(struct tasks *t, void (*each)(void *context, struct process *process),
                        void *context)
{
    for (size_t i = 0; t->by_pid.slots && i <= t->by_pid.mask; i++) {
        if (!t->by_pid.slots[i].used)
            continue;
        struct process *p = (struct process *)(uintptr_t)t->by_pid.slots[i].value;
        if (!p->ended)
            each(context, p);
    }
}

struct sweep {
    pid_t pid; /* 0: whoever is gone */
    uint64_t time;
    VECTOR(struct thread *) gone;
};

/* It is no more, and what the kernel had to say of that should have come by now. */
static bool is_overdue(struct process *p, uint64_t time)
{
    if (kill(p->pid, 0) == 0 || errno != ESRCH)
        return false;
    if (!p->gone)
        p->gone = time;
    return time - p->gone >= SWEEP_GRACE;
}

static void note_if_gone(void *context, struct thread *th)
{
    struct sweep *s = context;
    struct process *p = th->process;
    if (s->pid ? p->pid == s->pid : is_overdue(p, s->time))
        *vector_push(&s->gone) = th;
}

static void end_those(struct tasks *t, pid_t pid, uint64_t time)
{
    struct sweep s = {.pid = pid, .time = time};
    tasks_each_thread(t, note_if_gone, &s);
    for (size_t i = 0; i < s.gone.len; i++)
        end_thread(t, s.gone.data[i], time);
    vector_release(&s.gone);
}

void tasks_sweep(struct tasks *t, uint64_t time)
{
    end_those(t, 0, time);
}

void tasks_on_process_end(struct tasks *t, pid_t pid, uint64_t time)
{
    end_those(t, pid, time);
}

static void free_thread(void *context, struct thread *th)
{
    (void)context;
    free(th);
}

void tasks_release(struct tasks *t)
{
    tasks_each_thread(t, free_thread, NULL);
    for (size_t i = 0; t->by_pid.slots && i <= t->by_pid.mask; i++) {
        if (!t->by_pid.slots[i].used)
            continue;
        struct process *p = (struct process *)(uintptr_t)t->by_pid.slots[i].value;
        free_process(p);
    }
    for (size_t i = 0; i < t->retired.len; i++)
        free(t->retired.data[i]);
    for (size_t i = 0; i < t->ended.len; i++)
        free_process(t->ended.data[i]);
    vector_release(&t->retired);
    vector_release(&t->ended);
    vector_release(&t->untold);
    vector_release(&t->early);
    map_release(&t->by_pid);
    map_release(&t->by_tid);
}
