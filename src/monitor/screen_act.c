/* What the monitor does for its user: signals, priorities, CPUs, and pages beside the processes. */
#include <curses.h>
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "render/terminal.h"
#include "monitor/screen_internal.h"
#include "monitor/tables.h"

static void tell(struct screen *s, const struct watch_task *t, const char *done, bool failed)
{
    if (failed)
        snprintf(s->message, sizeof s->message, "process %d: %s failed: %s", t->tid, done,
                 strerror(errno));
    else
        snprintf(s->message, sizeof s->message, "process %d: %s done", t->tid, done);
}

/* A whole number within bounds, and nothing else. */
static bool read_number(const char *text, long low, long high, long *v)
{
    char *end;
    errno = 0;
    *v = strtol(text, &end, 10);
    return *text && !*end && !errno && *v >= low && *v <= high;
}

/* "0,2-3" */
static bool read_cpus(const char *text, cpu_set_t *set)
{
    CPU_ZERO(set);
    while (*text) {
        char *end;
        long first = strtol(text, &end, 10), last = first;
        if (end == text || first < 0)
            return false;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        if (last < first || last >= CPU_SETSIZE || (*end && *end != ','))
            return false;
        for (long cpu = first; cpu <= last; cpu++)
            CPU_SET((size_t)cpu, set);
        text = *end ? end + 1 : end;
    }
    return CPU_COUNT(set) > 0;
}

static void send_signal(struct screen *s, const struct watch_task *t)
{
    long number;
    if (!read_number(*s->answer ? s->answer : "15", 1, 64, &number)) {
        snprintf(s->message, sizeof s->message, "a signal is a number from 1 to 64");
        return;
    }
    /* The number may be another's by now. */
    bool gone = watch_find(s->watch, t->pid, t->tid) != t;
    errno = ESRCH;
    bool failed = gone || kill(t->pid, (int)number) < 0;
    char what[32];
    snprintf(what, sizeof what, "signal %ld", number);
    tell(s, t, what, failed);
}

/* What is asked of a process is for all its threads. True if it failed; errno is the first one's.
 */
static bool for_threads(const struct watch_task *t, bool (*set)(pid_t tid, const void *to),
                        const void *to)
{
    char path[64];
    bool failed = set(t->tid, to);
    int why = errno;
    snprintf(path, sizeof path, "/proc/%d/task", t->pid);
    DIR *d = t->pid == t->tid ? opendir(path) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);
        if (tid > 0 && tid != t->tid)
            set(tid, to);
    }
    if (d)
        closedir(d);
    errno = why;
    return failed;
}

static bool set_nice(pid_t tid, const void *to)
{
    return setpriority(PRIO_PROCESS, (id_t)tid, *(const int *)to) < 0;
}

static bool set_cpus(pid_t tid, const void *to)
{
    return sched_setaffinity(tid, sizeof(cpu_set_t), to) < 0;
}

void screen_act(struct screen *s)
{
    enum screen_prompt what = s->prompt;
    struct watch_task *t = screen_selected(s);
    long number;
    cpu_set_t cpus;
    s->prompt = PROMPT_NONE;
    *s->message = 0;
    if (what == PROMPT_FILTER)
        snprintf(s->filter, sizeof s->filter, "%s", s->answer);
    if (what == PROMPT_FILTER || !t)
        return;
    t->ran = 0; /* the next look sees what has changed, also if it rests */
    if (what == PROMPT_SIGNAL) {
        send_signal(s, t);
    } else if (what == PROMPT_NICE) {
        if (read_number(s->answer, -20, 19, &number))
            tell(s, t, "nice", for_threads(t, set_nice, &(int){(int)number}));
        else
            snprintf(s->message, sizeof s->message, "nice is a number from -20 to 19");
    } else if (what == PROMPT_CPUS) {
        if (read_cpus(s->answer, &cpus))
            tell(s, t, "CPUs", for_threads(t, set_cpus, &cpus));
        else
            snprintf(s->message, sizeof s->message, "CPUs are numbers such as 0,2-3");
    }
}

static void show(struct screen *s, struct view *v)
{
    struct terminal_style style = {.width = (unsigned)COLS};
    text_clear(&s->page);
    terminal_write(v, style, &s->page);
    s->page_top = 0;
    view_release(v);
}

/* Only the selected process. */
static struct listing one_row(struct watch_task *t)
{
    struct listing r = {0};
    *vector_push(&r.list) = (struct listing_row){.task = t};
    return r;
}

void screen_show_files(struct screen *s)
{
    struct watch_task *t = screen_selected(s);
    struct view v;
    struct error err = {0};
    if (!t)
        return;
    struct listing r = one_row(t);
    view_init(&v, "files", t->command, "files");
    if (tables_files(&v, &r, &err)) {
        snprintf(s->message, sizeof s->message, "%.150s", err.text);
        view_release(&v);
    } else {
        show(s, &v);
    }
    listing_release(&r);
}

void screen_show_sockets(struct screen *s)
{
    struct watch_task *t = screen_selected(s);
    struct view v;
    if (!t)
        return;
    struct listing r = one_row(t);
    view_init(&v, "sockets", t->command, "sockets");
    if (tables_sockets(&v, s->watch, &r, 0, false)) {
        show(s, &v);
    } else {
        snprintf(s->message, sizeof s->message, "process %d holds no sockets that can be seen",
                 t->pid);
        view_release(&v);
    }
    listing_release(&r);
}

void screen_show_disks(struct screen *s)
{
    struct view v;
    view_init(&v, "disks", "file systems", "mounts");
    tables_mounts(&v);
    show(s, &v);
}

void screen_show_help(struct screen *s)
{
    text_clear(&s->page);
    text_add(&s->page,
             "Keys\n\n"
             "  up down pgup pgdn home end   move\n"
             "  P M T I F N W                sort by CPU, memory, time, I/O, faults, name, net\n"
             "  t                            tree or list\n"
             "  H                            threads too, or processes alone\n"
             "  K                            the kernel's threads too\n"
             "  /                            show only commands that hold a text\n"
             "  k n a                        send a signal, set nice, set CPUs\n"
             "  f s                          open files, sockets of the process\n"
             "  d                            file systems\n"
             "  + -                          look less often, more often\n"
             "  p                            pause\n"
             "  q                            quit\n\n"
             "States: R runs, S sleeps, D waits for a disk, T stopped, Z ended, I idle.\n");
    s->page_top = 0;
}
