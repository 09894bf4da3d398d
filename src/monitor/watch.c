/* Looking at /proc; see watch.h. machine.c reads what belongs to no process. */
#include "monitor/watch.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/memory.h"
#include "base/text.h"
#include "monitor/machine.h"
#include "monitor/traffic.h"

#define SECOND 1e9
#define OPEN_MAX_OURS 4096 /* stat files that stay open */
#define COMMAND_MAX 4096
#define MEMORY_EVERY 5000000000ull

void watch_init(struct watch *w, bool with_threads)
{
    *w = (struct watch){.with_threads = with_threads};
    machine_init(w);
}

struct watch_task *watch_find(const struct watch *w, pid_t pid, pid_t tid)
{
    const uint64_t *at = map_get(&w->by_id, (uint64_t)pid, (uint64_t)tid);
    return at ? (struct watch_task *)(uintptr_t)*at : NULL;
}

static void folder_of(const struct watch_task *t, const char *file, char *out, size_t size)
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
    folder_of(t, t->pid == t->tid ? "cmdline" : "comm", path, sizeof path);
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
    folder_of(t, "", path, sizeof path);
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

/* Through the open descriptor; a new one if there is none or its process is gone. */
static bool read_stat(struct watch_task *t, size_t open_now, struct reading *r)
{
    char text[1024], path[64];
    ssize_t n = t->fd >= 0 ? io_pread(t->fd, text, sizeof text - 1, 0) : -1;
    if (n <= 0) {
        if (t->fd >= 0)
            close(t->fd);
        folder_of(t, "stat", path, sizeof path);
        t->fd = open(path, O_RDONLY | O_CLOEXEC);
        if (t->fd < 0)
            return false;
        n = io_pread(t->fd, text, sizeof text - 1, 0);
        if (open_now >= OPEN_MAX_OURS) {
            close(t->fd);
            t->fd = -1;
        }
    }
    if (n <= 0)
        return false;
    text[n] = 0;
    return parse(text, r);
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
        t->detailed = t->memory_read = 0;
    }
    add_history(t->history, t->cpu_rate * 100);
}

static void free_task(struct watch_task *t)
{
    if (t->fd >= 0)
        close(t->fd);
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
        *t = (struct watch_task){.pid = pid, .tid = tid, .fd = -1};
    }
    if (!read_stat(t, w->tasks.len, &r)) {
        if (made)
            free_task(made);
        return false;
    }
    take(w, t, &r);
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
        free_task(t);
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

/* "key:   123 kB" of a file of /proc; 0 if there is no such line. */
static uint64_t line_of(const char *text, const char *key)
{
    size_t len = strlen(key);
    for (const char *at = text; at && *at; at = strchr(at, '\n'), at = at ? at + 1 : NULL)
        if (!strncmp(at, key, len) && at[len] == ':')
            return strtoull(at + len + 1, NULL, 10);
    return 0;
}

static char *slurp(const struct watch_task *t, const char *file)
{
    char path[64], *text;
    folder_of(t, file, path, sizeof path);
    return io_slurp(path, 1 << 16, &text, NULL, NULL) ? NULL : text;
}

void watch_detail(struct watch *w, struct watch_task *t)
{
    if (t->detailed == w->now)
        return;
    double seconds = t->detailed ? (double)(w->now - t->detailed) / SECOND : 0;
    char *text = slurp(t, "io");
    t->io_known = text != NULL;
    if (text) {
        uint64_t in = line_of(text, "read_bytes"), out = line_of(text, "write_bytes");
        t->read_rate = seconds > 0 && in >= t->read ? (double)(in - t->read) / seconds : 0;
        t->write_rate = seconds > 0 && out >= t->written ? (double)(out - t->written) / seconds : 0;
        t->read = in;
        t->written = out;
        free(text);
    }
    text = slurp(t, "status");
    if (text) {
        uint64_t n =
            line_of(text, "voluntary_ctxt_switches") + line_of(text, "nonvoluntary_ctxt_switches");
        t->switch_rate = seconds > 0 && n >= t->switches ? (double)(n - t->switches) / seconds : 0;
        t->switches = n;
        t->swap = line_of(text, "VmSwap") * 1024;
        free(text);
    }
    t->detailed = w->now;
    if (t->pid != t->tid || (t->memory_read && w->now - t->memory_read < MEMORY_EVERY))
        return;
    text = slurp(t, "smaps_rollup");
    t->memory_read = w->now;
    t->memory_known = text != NULL;
    if (text) {
        t->pss = line_of(text, "Pss") * 1024;
        free(text);
    }
}

void watch_release(struct watch *w)
{
    for (size_t i = 0; i < w->tasks.len; i++)
        free_task(w->tasks.data[i]);
    vector_release(&w->tasks);
    map_release(&w->by_id);
    traffic_free(w->traffic);
}
