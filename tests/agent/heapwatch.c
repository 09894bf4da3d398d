/*
 * A collector for tests of the heap agent alone:
 *
 *     heapwatch [-s INTERVAL] [-m MEMORY] [-c ROWS] [-k MS] -o REPORT LIBRARY COMMAND…
 *
 * runs the command with every allocation recorded (-s: sampled) and writes what each process's
 * segment held at its end as JSON; "cells" names each stack's innermost frames as file+address. -k
 * kills the command by SIGKILL after so long. Ends with the command's status (128 + signal).
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/vector.h"
#include "capture/agents.h"
#include "capture/heap_view.h"

#define FRAMES_SHOWN 3

struct space {
    VECTOR(struct agents_mapping) maps;
    VECTOR(char *) paths;
    struct heap_view *view;
};

struct watch {
    struct agents *agents;
    struct json json;
    struct space *space; /* of the process that is written */
    uint64_t sum[6];
    unsigned refused;
};

static void on_process(void *context, struct agents_process *p)
{
    (void)context;
    p->user = memory_alloc(sizeof(struct space));
}

static void on_mapping(void *context, struct agents_process *p, const struct agents_mapping *m)
{
    struct space *space = p->user;
    (void)context;
    *vector_push(&space->paths) = memory_strdup(m->path);
    *vector_push(&space->maps) = *m;
    space->maps.data[space->maps.len - 1].path = space->paths.data[space->paths.len - 1];
}

static void on_heap(void *context, struct agents_process *p)
{
    struct space *space = p->user;
    struct watch *w = context;
    struct error err = {0};
    if (heap_view_new(p->heap, p->heap_size, &space->view, &err) != 0) {
        fprintf(stderr, "heapwatch: %s\n", err.text);
        w->refused++;
    }
}

static void put_frame(struct watch *w, uint64_t address)
{
    struct text t = TEXT_INIT;
    text_format(&t, "?+%llx", (unsigned long long)address);
    for (size_t i = w->space->maps.len; i-- > 0;) {
        const struct agents_mapping *m = &w->space->maps.data[i];
        if (address < m->start || address >= m->end)
            continue;
        text_release(&t);
        t = (struct text)TEXT_INIT;
        text_format(&t, "%s+%llx", m->path, (unsigned long long)(address - m->bias));
        break;
    }
    json_text(&w->json, t.data);
    text_release(&t);
}

static void put_cell(void *context, const struct heap_sums *s)
{
    struct watch *w = context;
    struct json *j = &w->json;
    uint64_t address[HEAP_DEPTH];
    size_t interrupted;
    bool complete;
    size_t count = heap_view_stack(w->space->view, s->stack, address, &interrupted, &complete);
    const uint64_t values[] = {s->allocations, s->bytes,     s->live,
                               s->peak,        s->tree_peak, s->temporary};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        w->sum[i] += values[i];
    json_open_object(j);
    json_put_uint(j, "thread", s->thread);
    json_put_uint(j, "stack", s->stack);
    json_put_uint(j, "allocations", s->allocations);
    json_put_uint(j, "bytes", s->bytes);
    json_put_uint(j, "live", s->live);
    json_put_uint(j, "live_blocks", s->live_blocks);
    json_put_uint(j, "peak", s->peak);
    json_put_uint(j, "tree_peak", s->tree_peak);
    json_put_uint(j, "temporary", s->temporary);
    json_put_uint(j, "foreign_frees", s->foreign_frees);
    json_put_uint(j, "depth", count);
    json_put_uint(j, "complete", complete);
    json_key(j, "frames");
    json_open_array(j);
    for (size_t i = 0; i < count && i < FRAMES_SHOWN; i++)
        put_frame(w, address[i] - 1);
    json_end(j);
    json_end(j);
}

static void put_summary(struct json *j, const struct heap_summary *s)
{
    json_put_uint(j, "generated", s->generated);
    json_put_uint(j, "recorded", s->recorded);
    json_put_uint(j, "lost", s->lost);
    json_put_uint(j, "lost_nested", s->lost_by[HEAP_LOST_NESTED]);
    json_put_uint(j, "lost_blocks", s->lost_by[HEAP_LOST_BLOCKS]);
    json_put_uint(j, "lost_busy", s->lost_by[HEAP_LOST_BUSY]);
    json_put_uint(j, "frees", s->frees);
    json_put_uint(j, "unknown_frees", s->unknown_frees);
    json_put_uint(j, "live", s->live);
    json_put_uint(j, "peak", s->peak);
    json_put_uint(j, "peak_time", s->peak_time);
    json_put_uint(j, "threads", s->threads);
    json_put_uint(j, "stacks", s->stacks);
    json_put_uint(j, "stackless", s->stackless);
    json_put_uint(j, "table_bytes", s->table_bytes);
    json_put_uint(j, "damaged", s->damaged);
    json_put_uint(j, "sampled", s->mode == HEAP_SAMPLED);
}

static void put_process(struct watch *w, const struct agents_process *p)
{
    static const char *const names[] = {"allocations", "bytes",     "live_sum",
                                        "peak_sum",    "tree_peak", "temporary"};
    struct json *j = &w->json;
    struct heap_tree *tree = agents_tree(w->agents);
    struct heap_summary summary;
    heap_view_summary(w->space->view, &summary);
    memset(w->sum, 0, sizeof w->sum);
    json_open_object(j);
    json_put_uint(j, "pid", (uint64_t)p->pid);
    json_put_uint(j, "epoch", p->epoch);
    json_put_uint(j, "tree_epoch", tree->epoch);
    json_key(j, "exe");
    json_text(j, p->exe);
    put_summary(j, &summary);
    json_key(j, "cells");
    json_open_array(j);
    heap_view_each(w->space->view, tree->epoch, put_cell, w);
    json_end(j);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        json_put_uint(j, names[i], w->sum[i]);
    json_end(j);
    heap_tree_leave(tree, heap_view_told(w->space->view));
    __atomic_fetch_sub(&tree->processes, 1, __ATOMIC_RELAXED);
}

static void on_process_end(void *context, struct agents_process *p)
{
    struct watch *w = context;
    w->space = p->user;
    if (w->space->view)
        put_process(w, p);
    heap_view_free(w->space->view);
    for (size_t i = 0; i < w->space->paths.len; i++)
        free(w->space->paths.data[i]);
    vector_release(&w->space->paths);
    vector_release(&w->space->maps);
    free(w->space);
}

static void on_refused(void *context, pid_t pid, const char *why)
{
    struct watch *w = context;
    fprintf(stderr, "heapwatch: process %d: %s\n", (int)pid, why);
    w->refused++;
}

static const struct agents_sink sink = {.process = on_process,
                                        .mapping = on_mapping,
                                        .heap = on_heap,
                                        .process_end = on_process_end,
                                        .refused = on_refused};

static pid_t start(struct agents *a, char **argv)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    for (const char *const *v = agents_environment(a); *v; v++)
        putenv((char *)(uintptr_t)*v);
    execvp(argv[0], argv);
    fprintf(stderr, "heapwatch: %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static int collect(struct watch *w, pid_t child, long die)
{
    uint64_t begin = clock_now();
    int status = 0;
    bool ended = false;
    while (!ended || agents_processes(w->agents)) {
        agents_drain(w->agents, &sink, w);
        if (!ended && waitpid(child, &status, WNOHANG) == child)
            ended = true;
        if (die > 0 && clock_now() - begin > (uint64_t)die * 1000) {
            kill(child, SIGKILL);
            die = 0;
        }
        usleep(die > 0 ? 100 : 5000);
    }
    agents_finish(w->agents, &sink, w);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int save(struct watch *w, const char *path)
{
    struct heap_tree *tree = agents_tree(w->agents);
    struct json *j = &w->json;
    json_end(j);
    json_put_uint(j, "tree_peak", tree->peak >> HEAP_TREE_SHIFT);
    json_put_uint(j, "tree_epoch", tree->epoch);
    json_put_int(j, "tree_total", heap_tree_bytes(tree->total));
    json_put_uint(j, "refused", w->refused);
    json_end(j);
    json_finish(j);
    FILE *f = fopen(path, "w");
    if (!f)
        return -1;
    fwrite(j->out.data, 1, j->out.len, f);
    return fclose(f);
}

int main(int argc, char **argv)
{
    struct agents_options o = {.heap = HEAP_EXACT};
    const char *output = NULL;
    long die = 0;
    int option;
    while ((option = getopt(argc, argv, "+s:m:c:k:o:")) != -1) {
        switch (option) {
        case 's':
            o.heap = HEAP_SAMPLED;
            o.heap_interval = strtoull(optarg, NULL, 10);
            break;
        case 'm':
            o.heap_memory = strtoull(optarg, NULL, 10);
            break;
        case 'c':
            o.rows = optarg;
            break;
        case 'k':
            die = strtol(optarg, NULL, 10);
            break;
        case 'o':
            output = optarg;
            break;
        }
    }
    if (argc - optind < 2 || !output) {
        fprintf(stderr, "usage: heapwatch [-s INTERVAL] [-m MEMORY] [-c ROWS] [-k US] -o REPORT "
                        "LIBRARY COMMAND…\n");
        return 2;
    }
    struct watch w = {0};
    struct error err = {0};
    o.library = argv[optind];
    o.preload = getenv("LD_PRELOAD");
    if (agents_new(&o, &w.agents, &err) != 0) {
        fprintf(stderr, "heapwatch: %s\n", err.text);
        return 121;
    }
    json_init(&w.json, NULL, NULL);
    json_open_object(&w.json);
    json_key(&w.json, "processes");
    json_open_array(&w.json);
    int status = collect(&w, start(w.agents, argv + optind + 1), die);
    if (save(&w, output) != 0)
        status = 121;
    agents_free(w.agents);
    json_release(&w.json);
    return status;
}
