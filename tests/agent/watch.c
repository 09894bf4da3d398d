/*
 * A collector for tests of the agent alone:
 *
 *     watch [-r RATE] [-b RING] [-c ROWS] [-d MS] [-k MS] [-z MS] -o REPORT LIBRARY COMMAND…
 *
 * runs the command with the agent preloaded, drains every MS milliseconds (-d), and writes what
 * came as JSON. Ends with the command's status (128 + signal). -k kills itself after MS, -z stops
 * itself so long at the start: the target must not care.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/json.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/vector.h"
#include "capture/agents.h"

struct space {
    VECTOR(struct agents_mapping) maps;
    VECTOR(char *) paths;
};

struct past_thread {
    struct agents_thread t;
    pid_t pid;
    uint32_t epoch;
};

struct watch {
    struct json json; /* "processes" is open */
    VECTOR(struct past_thread) threads;
    struct names stacks;
    VECTOR(uint64_t) values, counts; /* by stack */
    uint64_t reasons[8], late, foreign, refused;
    uint64_t generated, recorded, lost, value, cost, depth_max;
    bool time_went_back;
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
    char *path = memory_strdup(m->path);
    *vector_push(&space->paths) = path;
    *vector_push(&space->maps) = *m;
    space->maps.data[space->maps.len - 1].path = path;
}

static void add_frame(struct text *t, const struct space *space, uint64_t address)
{
    for (size_t i = space->maps.len; i-- > 0;) {
        const struct agents_mapping *m = &space->maps.data[i];
        if (address >= m->start && address < m->end) {
            text_format(t, "%s+%llx", m->path, (unsigned long long)(address - m->bias));
            return;
        }
    }
    text_format(t, "?+%llx", (unsigned long long)address);
}

static void on_thread(void *context, struct agents_process *p, struct agents_thread *t)
{
    (void)context;
    (void)p;
    t->user = memory_alloc(sizeof(uint64_t));
}

static void on_sample(void *context, struct agents_process *p, struct agents_thread *t,
                      const struct agents_sample *s)
{
    struct watch *w = context;
    struct text stack = TEXT_INIT;
    uint64_t *before = t->user;
    w->time_went_back |= s->time < *before;
    *before = s->time;
    for (size_t i = s->count; i-- > 0;) {
        bool exact = i == 0 || i == s->interrupted;
        add_frame(&stack, p->user, s->address[i] - !exact);
        text_add_char(&stack, i ? ';' : 0);
    }
    uint32_t id = names_add(&w->stacks, stack.data);
    text_release(&stack);
    if (id == w->values.len) {
        *vector_push(&w->values) = 0;
        *vector_push(&w->counts) = 0;
    }
    w->values.data[id] += s->value;
    w->counts.data[id]++;
    w->reasons[s->reason & 7]++;
    w->late += (s->flags & SAMPLE_LATE) != 0;
    w->foreign += (s->flags & SAMPLE_FOREIGN) != 0;
    if (s->count > w->depth_max)
        w->depth_max = s->count;
}

static void on_thread_end(void *context, struct agents_process *p, struct agents_thread *t)
{
    struct watch *w = context;
    free(t->user);
    *vector_push(&w->threads) = (struct past_thread){.t = *t, .pid = p->pid, .epoch = p->epoch};
    w->generated += t->generated;
    w->recorded += t->recorded;
    w->lost += t->lost;
    w->value += t->value;
    w->cost += t->cost;
}

static void put_thread(struct json *j, const struct past_thread *p)
{
    const struct agents_thread *t = &p->t;
    json_open_object(j);
    json_put_int(j, "pid", p->pid);
    json_put_int(j, "tid", t->tid);
    json_put_string(j, "name", t->name);
    json_put_uint(j, "epoch", p->epoch);
    json_put_bool(j, "sampled", t->sampled);
    json_put_bool(j, "ended", t->end != 0);
    json_put_uint(j, "generated", t->generated);
    json_put_uint(j, "recorded", t->recorded);
    json_put_uint(j, "lost", t->lost);
    json_put_uint(j, "value", t->value);
    json_put_uint(j, "value_lost", t->value_lost);
    json_end(j);
}

static void on_process_end(void *context, struct agents_process *p)
{
    struct watch *w = context;
    struct json *j = &w->json;
    json_open_object(j);
    json_put_int(j, "pid", p->pid);
    json_put_int(j, "parent", p->parent);
    json_put_uint(j, "epoch", p->epoch);
    json_put_string(j, "comm", p->comm);
    json_put_string(j, "exe", p->exe);
    json_put_uint(j, "flags", p->flags);
    json_put_uint(j, "threads_refused", p->threads_refused);
    json_put_bool(j, "execed", p->execed);
    json_put_bool(j, "damaged", p->damaged);
    json_end(j);
    struct space *space = p->user;
    for (size_t i = 0; i < space->paths.len; i++)
        free(space->paths.data[i]);
    vector_release(&space->paths);
    vector_release(&space->maps);
    free(space);
}

static void on_refused(void *context, pid_t pid, const char *why)
{
    struct watch *w = context;
    w->refused++;
    fprintf(stderr, "watch: process %d is not observed: %s\n", (int)pid, why);
}

static const struct agents_sink sink = {.process = on_process,
                                        .mapping = on_mapping,
                                        .thread = on_thread,
                                        .sample = on_sample,
                                        .thread_end = on_thread_end,
                                        .process_end = on_process_end,
                                        .refused = on_refused};

static void report(struct watch *w, const char *path)
{
    static const char *const reason[8] = {"complete",    "depth", "memory", "no_rows",
                                          "no_progress", "lost",  "other",  "other7"};
    struct json *j = &w->json;
    json_end(j);
    json_key(j, "threads");
    json_open_array(j);
    for (size_t i = 0; i < w->threads.len; i++)
        put_thread(j, &w->threads.data[i]);
    json_end(j);
    json_key(j, "stacks");
    json_open_object(j);
    for (uint32_t i = 0; i < w->values.len; i++) {
        json_key(j, w->stacks.text[i]);
        json_open_array(j);
        json_uint(j, w->counts.data[i]);
        json_uint(j, w->values.data[i]);
        json_end(j);
    }
    json_end(j);
    json_key(j, "reasons");
    json_open_object(j);
    for (int i = 0; i < 6; i++)
        json_put_uint(j, reason[i], w->reasons[i]);
    json_end(j);
    json_put_uint(j, "generated", w->generated);
    json_put_uint(j, "recorded", w->recorded);
    json_put_uint(j, "lost", w->lost);
    json_put_uint(j, "value", w->value);
    json_put_uint(j, "cost", w->cost);
    json_put_uint(j, "late", w->late);
    json_put_uint(j, "foreign", w->foreign);
    json_put_uint(j, "refused", w->refused);
    json_put_uint(j, "depth_max", w->depth_max);
    json_put_bool(j, "time_went_back", w->time_went_back);
    json_end(j);
    json_finish(j);
    FILE *f = fopen(path, "w");
    if (!f || fwrite(j->out.data, 1, j->out.len, f) != j->out.len || fclose(f) != 0) {
        fprintf(stderr, "watch: cannot write %s: %s\n", path, strerror(errno));
        exit(120);
    }
}

static pid_t start(struct agents *a, char **command)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    for (const char *const *v = agents_environment(a); *v; v++)
        putenv((char *)(uintptr_t)*v);
    execvp(command[0], command);
    fprintf(stderr, "watch: cannot run %s: %s\n", command[0], strerror(errno));
    _exit(127);
}

static void stop_self(long ms)
{
    pid_t waker = fork();
    if (waker == 0) {
        usleep((useconds_t)ms * 1000);
        kill(getppid(), SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
    waitpid(waker, NULL, 0);
}

struct arguments {
    struct agents_options agents;
    const char *output;
    long drain, die, sleep;
};

static int parse(int argc, char **argv, struct arguments *a)
{
    int option;
    while ((option = getopt(argc, argv, "+r:b:c:d:k:z:o:")) != -1) {
        switch (option) {
        case 'r':
            a->agents.rate = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'b':
            a->agents.ring_bytes = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'c':
            a->agents.rows = optarg;
            break;
        case 'd':
            a->drain = strtol(optarg, NULL, 10);
            break;
        case 'k':
            a->die = strtol(optarg, NULL, 10);
            break;
        case 'z':
            a->sleep = strtol(optarg, NULL, 10);
            break;
        case 'o':
            a->output = optarg;
            break;
        default:
            return -1;
        }
    }
    return argc - optind < 2 || !a->output ? -1 : optind;
}

/* Until the command has ended and no process of its tree is left; its status. */
static int collect(struct agents *a, struct watch *w, pid_t child, const struct arguments *args)
{
    uint64_t begin = clock_now();
    int status = 0;
    bool ended = false;
    while (!ended || agents_processes(a)) {
        agents_drain(a, &sink, w);
        if (!ended)
            ended = waitpid(child, &status, WNOHANG) == child;
        if (args->die && clock_now() - begin > (uint64_t)args->die * 1000000u)
            raise(SIGKILL);
        usleep((useconds_t)args->drain * 1000);
    }
    agents_finish(a, &sink, w);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    struct arguments args = {.agents = {.rate = 250}, .drain = 20};
    int first = parse(argc, argv, &args);
    if (first < 0) {
        fprintf(stderr, "usage: watch [-r RATE] [-b RING] [-c ROWS] [-d MS] [-k MS] [-z MS] "
                        "-o REPORT LIBRARY COMMAND…\n");
        return 2;
    }
    args.agents.library = argv[first];
    args.agents.preload = getenv("LD_PRELOAD");
    struct agents *a;
    struct error err = {0};
    if (agents_new(&args.agents, &a, &err) != 0) {
        fprintf(stderr, "watch: %s\n", err.text);
        return 121;
    }
    struct watch w = {0};
    json_init(&w.json, NULL, NULL);
    json_open_object(&w.json);
    json_key(&w.json, "processes");
    json_open_array(&w.json);
    pid_t child = start(a, argv + first + 1);
    if (args.sleep)
        stop_self(args.sleep);
    int status = collect(a, &w, child, &args);
    report(&w, args.output);
    agents_free(a);
    json_release(&w.json);
    vector_release(&w.threads);
    names_release(&w.stacks);
    vector_release(&w.values);
    vector_release(&w.counts);
    return status;
}
