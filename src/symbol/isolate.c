/*
 * Requests shared out among children; see symbol_resolve_isolated. A child that ends before all its
 * results are in failed at the first one missing: that module is tried again one level down, the
 * rest as they were.
 */
#include "symbol/symbol.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/vector.h"
#include "symbol/answer_wire.h"
#include "symbol/child.h"
#include "symbol/symbol_internal.h"

#define WORKERS_MAX 4
#define WALL_SECONDS 120
#define DOWNLOAD_SECONDS 90
#define READ_CHUNK ((size_t)256 << 10)

struct worker {
    pid_t pid; /* 0: free */
    int fd;
    VECTOR(struct child_task) tasks;
    size_t at; /* the task whose messages come now */
    uint64_t deadline;
    struct text in;
    const char *trouble; /* why it must be stopped */
};

struct pool {
    const struct symbol_request *request;
    const struct symbol_options *options;
    const struct symbol_sink *sink;
    struct symbol_result *result;
    struct worker worker[WORKERS_MAX];
    size_t workers;
    VECTOR(struct child_task) again; /* waiting for a free worker */
    uint8_t **seen;                  /* by module, by address: emitted */
    struct wire_message *message;
    char *chunk;
};

static uint64_t task_time(const struct symbol_options *o)
{
    uint64_t seconds = o->wall_seconds ? o->wall_seconds : WALL_SECONDS;
    if (o->debuginfod)
        seconds += 4 * (uint64_t)(o->debuginfod_seconds ? o->debuginfod_seconds : DOWNLOAD_SECONDS);
    return seconds * 1000000000u;
}

static int worker_start(struct pool *p, struct worker *w)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
    pid_t pid = fork();
    if (pid == 0)
        child_run(p->request, w->tasks.data, w->tasks.len, p->options, ends[1]);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return -1;
    }
    w->pid = pid;
    w->fd = ends[0];
    w->at = 0;
    w->trouble = NULL;
    text_clear(&w->in);
    w->deadline = clock_now() + task_time(p->options);
    return 0;
}

static void emit_once(struct pool *p, size_t module, size_t index,
                      const struct symbol_location *location, size_t n)
{
    if (p->seen[module][index])
        return;
    p->seen[module][index] = 1;
    result_count(&p->result[module], location);
    p->sink->emit(p->sink->context, module, index, location, n);
}

static void accept_answer(struct pool *p, struct worker *w)
{
    size_t module = w->tasks.data[w->at].module;
    const struct wire_message *m = p->message;
    if (m->index >= p->request[module].count) {
        w->trouble = "its reader gave an answer that was not asked for";
        return;
    }
    emit_once(p, module, m->index, m->location, m->n);
}

static void accept_result(struct pool *p, struct worker *w)
{
    struct child_task task = w->tasks.data[w->at++];
    struct symbol_result *r = &p->result[task.module];
    r->status = p->message->result.status;
    memcpy(r->source, p->message->result.source, sizeof r->source);
    if (task.level == CHILD_ALL)
        memcpy(r->note, p->message->result.note, sizeof r->note);
    else
        r->status = SYMBOL_FELL_BACK; /* the note says why since it failed */
    w->deadline = clock_now() + task_time(p->options);
}

static void worker_consume(struct pool *p, struct worker *w)
{
    size_t used = 0;
    while (!w->trouble) {
        ssize_t got = wire_get(w->in.data + used, w->in.len - used, p->message);
        if (got == 0)
            break;
        if (got < 0 || w->at >= w->tasks.len)
            w->trouble = "its reader gave an answer that makes no sense";
        else if (p->message->type == WIRE_ANSWER)
            accept_answer(p, w);
        else
            accept_result(p, w);
        used += got > 0 ? (size_t)got : 0;
    }
    memmove(w->in.data, w->in.data + used, w->in.len - used);
    w->in.len -= used;
}

/* What a child died of, in words for the note. */
static const char *cause_of(const struct worker *w, int status, char *buffer, size_t size)
{
    if (w->trouble)
        return w->trouble;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
        return "reading it took too long";
    if (WIFSIGNALED(status))
        snprintf(buffer, size, "its reader crashed (%s)", strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) == 3)
        return "reading it took too much memory";
    else
        snprintf(buffer, size, "its reader ended early (status %d)", WEXITSTATUS(status));
    return buffer;
}

static void requeue(struct pool *p, const struct worker *w, int status)
{
    char buffer[128];
    for (size_t i = w->at; i < w->tasks.len; i++) {
        struct child_task task = w->tasks.data[i];
        if (i == w->at) {
            struct symbol_result *r = &p->result[task.module];
            const char *path = p->request[task.module].path;
            r->status = SYMBOL_FELL_BACK;
            snprintf(r->note, sizeof r->note, "%s: %s; names come from its symbol table only",
                     path ? path : "a module", cause_of(w, status, buffer, sizeof buffer));
            if (++task.level == CHILD_LEVELS)
                continue;
        }
        *vector_push(&p->again) = task;
    }
}

static void worker_finish(struct pool *p, struct worker *w)
{
    int status = 0;
    if (w->trouble)
        kill(w->pid, SIGKILL);
    while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
        ;
    close(w->fd);
    w->pid = 0;
    requeue(p, w, status);
    w->tasks.len = 0;
}

static void worker_read(struct pool *p, struct worker *w)
{
    ssize_t got = read(w->fd, p->chunk, READ_CHUNK);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got > 0) {
        text_add_len(&w->in, p->chunk, (size_t)got);
        worker_consume(p, w);
    }
    if (got <= 0 || w->trouble)
        worker_finish(p, w);
}

struct here {
    struct pool *pool;
    size_t module;
};

static void emit_here(void *context, size_t module, size_t index,
                      const struct symbol_location *location, size_t n)
{
    (void)module;
    const struct here *h = context;
    emit_once(h->pool, h->module, index, location, n);
}

/* The last resort, where no child can be had: our own reader, in this process. */
static void resolve_here(struct pool *p, struct worker *w)
{
    for (size_t i = 0; i < w->tasks.len; i++) {
        size_t module = w->tasks.data[i].module;
        struct here here = {p, module};
        struct symbol_sink sink = {emit_here, &here};
        struct symbol_options mine = *p->options;
        struct symbol_result result;
        mine.no_debug_info = mine.no_demangle = true;
        symbol_resolve(&p->request[module], &mine, &sink, &result, NULL);
        memcpy(p->result[module].source, result.source, sizeof result.source);
        p->result[module].status = SYMBOL_FELL_BACK;
        snprintf(p->result[module].note, sizeof result.note,
                 "no child process could be started to read debug information: names only");
    }
    w->tasks.len = 0;
}

/* What waits goes to one free worker. */
static void restart(struct pool *p)
{
    for (size_t i = 0; p->again.len > 0 && i < p->workers; i++) {
        struct worker *w = &p->worker[i];
        if (w->pid)
            continue;
        for (size_t k = 0; k < p->again.len; k++)
            *vector_push(&w->tasks) = p->again.data[k];
        p->again.len = 0;
        if (worker_start(p, w) < 0)
            resolve_here(p, w);
    }
}

static int wait_milliseconds(uint64_t now, uint64_t deadline)
{
    if (deadline <= now)
        return 0;
    uint64_t ms = (deadline - now) / 1000000 + 1;
    return ms > 60000 ? 60000 : (int)ms;
}

/* One wait for whatever comes first; false when nobody is left to wait for. */
static bool pool_turn(struct pool *p)
{
    struct pollfd ready[WORKERS_MAX];
    struct worker *who[WORKERS_MAX];
    nfds_t n = 0;
    int wait = 60000;
    uint64_t now = clock_now();
    for (size_t i = 0; i < p->workers; i++) {
        struct worker *w = &p->worker[i];
        if (!w->pid)
            continue;
        int left = wait_milliseconds(now, w->deadline);
        wait = left < wait ? left : wait;
        who[n] = w;
        ready[n++] = (struct pollfd){.fd = w->fd, .events = POLLIN};
    }
    if (n == 0)
        return false;
    poll(ready, n, wait);
    now = clock_now();
    for (nfds_t i = 0; i < n; i++) {
        if (ready[i].revents) {
            worker_read(p, who[i]);
        } else if (now >= who[i]->deadline) {
            who[i]->trouble = "reading it took too long";
            worker_finish(p, who[i]);
        }
    }
    return true;
}

/* The largest first, each to the worker with the least so far. */
static void share_out(struct pool *p, size_t n)
{
    size_t *order = memory_array(n ? n : 1, sizeof *order), tasks = 0;
    uint64_t load[WORKERS_MAX] = {0};
    for (size_t i = 0; i < n; i++) {
        if (p->request[i].count == 0 || p->request[i].kind == SYMBOL_OTHER)
            continue;
        size_t k = tasks++;
        for (; k > 0 && p->request[order[k - 1]].count < p->request[i].count; k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
    for (size_t i = 0; i < tasks; i++) {
        size_t least = 0;
        for (size_t k = 1; k < p->workers; k++)
            if (load[k] < load[least])
                least = k;
        load[least] += p->request[order[i]].count + 64;
        *vector_push(&p->worker[least].tasks) = (struct child_task){order[i], CHILD_ALL};
    }
    free(order);
}

static int pool_init(struct pool *p, size_t n, struct error *err)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    p->workers = p->options->workers ? p->options->workers : cpus > 0 ? (size_t)cpus : 1;
    if (p->workers > WORKERS_MAX)
        p->workers = WORKERS_MAX;
    for (size_t i = 0; i < n; i++) {
        const struct symbol_request *r = &p->request[i];
        p->result[i] = (struct symbol_result){.status = SYMBOL_NONE};
        for (size_t k = 1; k < r->count; k++)
            if (r->address[k] < r->address[k - 1])
                return error_set(err, FAULT_USAGE, "addresses to resolve in %s do not ascend",
                                 r->path ? r->path : "a module without a path");
    }
    p->seen = memory_array(n ? n : 1, sizeof *p->seen);
    for (size_t i = 0; i < n; i++)
        p->seen[i] = memory_alloc(p->request[i].count + 1);
    p->message = memory_alloc(sizeof *p->message);
    text_init(&p->message->strings);
    p->chunk = memory_alloc(READ_CHUNK);
    for (size_t i = 0; i < WORKERS_MAX; i++)
        text_init(&p->worker[i].in);
    return 0;
}

static void pool_release(struct pool *p, size_t n)
{
    for (size_t i = 0; p->seen && i < n; i++)
        free(p->seen[i]);
    free(p->seen);
    if (p->message)
        wire_release(p->message);
    free(p->message);
    free(p->chunk);
    for (size_t i = 0; i < WORKERS_MAX; i++) {
        text_release(&p->worker[i].in);
        vector_release(&p->worker[i].tasks);
    }
    vector_release(&p->again);
}

int symbol_resolve_isolated(const struct symbol_request *request, size_t n,
                            const struct symbol_options *options, const struct symbol_sink *sink,
                            struct symbol_result *result, struct error *err)
{
    static const struct symbol_options defaults;
    struct pool *p = memory_alloc(sizeof *p);
    p->request = request;
    p->options = options ? options : &defaults;
    p->sink = sink;
    p->result = result;
    int status = pool_init(p, n, err);
    if (status == 0) {
        share_out(p, n);
        for (size_t i = 0; i < p->workers; i++) {
            struct worker *w = &p->worker[i];
            if (w->tasks.len > 0 && worker_start(p, w) < 0)
                resolve_here(p, w);
        }
        do
            restart(p);
        while (pool_turn(p) || p->again.len > 0);
    }
    pool_release(p, n);
    free(p);
    return status;
}
