/* Looking at /proc; see watch.h. machine.c reads what belongs to no process. */
#include "monitor/watch.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/memory.h"
#include "base/text.h"
#include "monitor/machine.h"
#include "monitor/traffic.h"

#define SECOND 1e9
#define OPEN_MAX_OURS 8192 /* descriptors that stay open */
#define OPEN_SPARED 128    /* of those that this process may have */
#define COMMAND_MAX 4096
#define REFRESH_EVERY 16 /* looks: what others change of a task at rest (nice, memory) */

void watch_init(struct watch *w, bool with_threads)
{
    struct rlimit r = {0};
    *w = (struct watch){.with_threads = with_threads};
    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur > OPEN_SPARED)
        w->open_max = r.rlim_cur - OPEN_SPARED;
    if (w->open_max > OPEN_MAX_OURS)
        w->open_max = OPEN_MAX_OURS;
    machine_init(w);
}

struct watch_task *watch_find(const struct watch *w, pid_t pid, pid_t tid)
{
    const uint64_t *at = map_get(&w->by_id, (uint64_t)pid, (uint64_t)tid);
    return at ? (struct watch_task *)(uintptr_t)*at : NULL;
}

void watch_path(const struct watch_task *t, const char *file, char *out, size_t size)
{
    if (t->pid == t->tid)
        snprintf(out, size, "/proc/%d/%s", t->pid, file);
    else
        snprintf(out, size, "/proc/%d/task/%d/%s", t->pid, t->tid, file);
}

/* The words of a command, with spaces between them. */
static char *read_command(const struct watch_task *t)
{
    char path[64], *text;
    size_t len;
    watch_path(t, t->pid == t->tid ? "cmdline" : "comm", path, sizeof path);
    if (io_slurp(path, 1 << 20, &text, &len, NULL))
        return NULL;
    while (len && (!text[len - 1] || text[len - 1] == '\n'))
        len--;
    if (len > COMMAND_MAX)
        len = COMMAND_MAX;
    for (size_t i = 0; i < len; i++)
        if (!text[i] || text[i] == '\n')
            text[i] = ' ';
    text[len] = 0;
    return text;
}

static void learn(struct watch_task *t)
{
    char path[64];
    struct stat s;
    free(t->command);
    t->command = read_command(t);
    if (!t->command || !*t->command) {
        struct text bracketed = TEXT_INIT;
        text_format(&bracketed, "[%s]", t->name);
        free(t->command);
        t->command = text_take(&bracketed);
    }
    watch_path(t, "", path, sizeof path);
    t->user = stat(path, &s) == 0 ? s.st_uid : (uid_t)-1;
}

struct reading {
    char name[32], state;
    pid_t parent;
    uint64_t field[53]; /* by their number in proc(5), from 3 on */
};

/* "PID (name) S 1 2 3 ...": the name may hold anything, also ')'. */
static bool parse(char *text, struct reading *r)
{
    char *open = strchr(text, '('), *close = strrchr(text, ')');
    if (!open || !close || close < open || close[1] != ' ')
        return false;
    *close = 0;
    snprintf(r->name, sizeof r->name, "%s", open + 1);
    char *at = close + 2;
    r->state = *at++;
    unsigned n = 4;
    for (; n < 53 && *at; n++)
        r->field[n] = (uint64_t)strtoll(at, &at, 10);
    r->parent = (pid_t)r->field[4];
    return n > 39;
}

static void close_kept(struct watch *w, int *fd)
{
    if (*fd < 0)
        return;
    close(*fd);
    *fd = -1;
    w->open--;
}

/* Through the open descriptor; a new one if there is none or its task is gone. Ends the text. */
static bool read_kept(struct watch *w, const struct watch_task *t, const char *file, int *fd,
                      char *text, size_t size)
{
    char path[64];
    ssize_t n = *fd >= 0 ? io_pread(*fd, text, size - 1, 0) : -1;
    if (n <= 0) {
        close_kept(w, fd);
        watch_path(t, file, path, sizeof path);
        int opened = open(path, O_RDONLY | O_CLOEXEC);
        if (opened < 0)
            return false;
        n = io_pread(opened, text, size - 1, 0);
        if (w->open < w->open_max) {
            *fd = opened;
            w->open++;
        } else {
            close(opened);
        }
    }
    if (n <= 0)
        return false;
    text[n] = 0;
    return true;
}

static bool read_stat(struct watch *w, struct watch_task *t, struct reading *r)
{
    char text[1024];
    return read_kept(w, t, "stat", &t->stat_fd, text, sizeof text) && parse(text, r);
}

/*
 * Whether it has not run since the last look, so that all it does itself is as it was. The kernel
 * keeps this by thread: of a process with several it says nothing.
 */
static bool rests(struct watch *w, struct watch_task *t)
{
    char text[128];
    uint64_t before = t->ran;
    t->ran = 0;
    if (!t->seen || t->state == 'R' || (t->pid == t->tid && t->threads != 1) ||
        !read_kept(w, t, "schedstat", &t->ran_fd, text, sizeof text))
        return false;
    t->ran = strtoull(text, NULL, 10);
    return t->ran && t->ran == before;
}

/* What others may change of it is looked at now and then, and when its parent is gone. */
static bool needs_refresh(const struct watch *w, const struct watch_task *t)
{
    return (w->look + (uint64_t)t->tid) % REFRESH_EVERY == 0 ||
           (t->parent && !watch_find(w, t->parent, t->parent));
}

static void add_history(uint8_t *history, double percent)
{
    memmove(history, history + 1, WATCH_HISTORY - 1);
    history[WATCH_HISTORY - 1] = percent > 255 ? 255 : percent < 0 ? 0 : (uint8_t)(percent + 0.5);
}

static void take(struct watch *w, struct watch_task *t, const struct reading *r)
{
    static uint64_t tick, page;
    if (!tick) {
        tick = 1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK);
        page = (uint64_t)sysconf(_SC_PAGESIZE);
    }
    uint64_t cpu = (r->field[14] + r->field[15]) * tick;
    uint64_t faults = r->field[10] + r->field[12], before = t->minor + t->major;
    bool fresh = t->started != r->field[22] || !t->seen;
    double seconds = (double)(w->now - t->seen) / SECOND;
    t->cpu_rate =
        fresh || seconds <= 0 || cpu < t->cpu ? 0 : (double)(cpu - t->cpu) / 1e9 / seconds;
    t->fault_rate =
        fresh || seconds <= 0 || faults < before ? 0 : (double)(faults - before) / seconds;
    bool renamed = strcmp(t->name, r->name) != 0;
    snprintf(t->name, sizeof t->name, "%s", r->name);
    t->state = r->state;
    t->parent = t->pid == t->tid ? r->parent : t->pid;
    t->minor = r->field[10];
    t->major = r->field[12];
    t->cpu = cpu;
    t->nice = (int)(int64_t)r->field[19];
    t->threads = (unsigned)r->field[20];
    t->started = r->field[22];
    t->virtual = r->field[23];
    t->rss = r->field[24] * page;
    t->processor = (int)r->field[39];
    t->seen = w->now;
    t->look = w->look;
    if (fresh || renamed)
        learn(t);
    if (fresh) {
        memset(t->history, 0, sizeof t->history);
        t->detailed = t->memory_read = t->detailed_ran = t->memory_ran = 0;
    }
    add_history(t->history, t->cpu_rate * 100);
}

/* As it was, and nothing was used. */
static void take_at_rest(struct watch *w, struct watch_task *t)
{
    t->cpu_rate = t->fault_rate = 0;
    t->seen = w->now;
    t->look = w->look;
    add_history(t->history, 0);
    close_kept(w, &t->stat_fd); /* others need it more */
}

static void free_task(struct watch *w, struct watch_task *t)
{
    close_kept(w, &t->stat_fd);
    close_kept(w, &t->ran_fd);
    free(t->command);
    free(t);
}

/* Looks at one, which may be new. False if it is no more. */
static bool look_at(struct watch *w, pid_t pid, pid_t tid)
{
    struct reading r = {.name = ""};
    struct watch_task *t = watch_find(w, pid, tid), *made = NULL;
    if (!t) {
        t = made = memory_alloc(sizeof *t);
        *t = (struct watch_task){.pid = pid, .tid = tid, .stat_fd = -1, .ran_fd = -1};
    }
    if (rests(w, t) && !needs_refresh(w, t)) {
        take_at_rest(w, t);
    } else if (read_stat(w, t, &r)) {
        take(w, t, &r);
    } else {
        if (made)
            free_task(w, made);
        return false;
    }
    if (made) {
        map_put(&w->by_id, (uint64_t)pid, (uint64_t)tid, (uint64_t)(uintptr_t)made, NULL);
        *vector_push(&w->tasks) = made;
    }
    struct watch_machine *m = &w->machine;
    if (pid == tid) {
        m->processes++;
        m->threads += t->threads;
    }
    m->running += t->state == 'R' && pid == tid;
    return true;
}

static void look_at_threads(struct watch *w, pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        if (isdigit((unsigned char)e->d_name[0]) && (pid_t)strtol(e->d_name, NULL, 10) != pid)
            look_at(w, pid, (pid_t)strtol(e->d_name, NULL, 10));
    if (d)
        closedir(d);
}

static int by_number(const void *a, const void *b)
{
    const struct watch_task *x = *(struct watch_task *const *)a,
                            *y = *(struct watch_task *const *)b;
    return x->pid != y->pid ? (x->pid > y->pid) - (x->pid < y->pid)
                            : (x->tid != x->pid) - (y->tid != y->pid) ?: (x->tid > y->tid) - (x->tid < y->tid);
}

static void forget_gone(struct watch *w)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->tasks.len; i++) {
        struct watch_task *t = w->tasks.data[i];
        if (t->look == w->look) {
            w->tasks.data[kept++] = t;
            continue;
        }
        map_remove(&w->by_id, (uint64_t)t->pid, (uint64_t)t->tid);
        free_task(w, t);
    }
    w->tasks.len = kept;
}

void watch_look(struct watch *w)
{
    DIR *d = opendir("/proc");
    w->look++;
    w->now = clock_now();
    w->machine.processes = w->machine.running = w->machine.threads = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        if (!isdigit((unsigned char)e->d_name[0]))
            continue;
        pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
        if (look_at(w, pid, pid) && w->with_threads && watch_find(w, pid, pid)->threads > 1)
            look_at_threads(w, pid);
    }
    if (d)
        closedir(d);
    forget_gone(w);
    if (w->tasks.len)
        qsort(w->tasks.data, w->tasks.len, sizeof *w->tasks.data, by_number);
    machine_look(w);
    if (w->traffic)
        traffic_look(w->traffic, w);
    add_history(w->machine.cpu_history,
                100 - 100 * w->machine.idle / (w->machine.cpus ? w->machine.cpus : 1));
    add_history(w->machine.memory_history,
                w->machine.memory ? 100.0 * (double)(w->machine.memory - w->machine.available) /
                                        (double)w->machine.memory
                                  : 0);
}

void watch_release(struct watch *w)
{
    for (size_t i = 0; i < w->tasks.len; i++)
        free_task(w, w->tasks.data[i]);
    vector_release(&w->tasks);
    map_release(&w->by_id);
    traffic_free(w->traffic);
}
