/* What a session is told while it runs; control.h lists the commands. Each answers what it did and
 * whether that worked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "capture/agents.h"
#include "capture/heap.h"
#include "capture/session_internal.h"
#include "wire/session.h"

#define SECOND 1000000000ull
#define MARK_MAX 500

enum what { WHAT_CPU, WHAT_HEAP };

/* "cpu 123" -> what, and the process or 0; false with the answer if it is neither. */
static bool parse_object(struct session *s, char *rest, enum what *what, pid_t *pid,
                         struct text *answer)
{
    char *word = strsep(&rest, " "), *end = NULL;
    *pid = 0;
    if (!word || (strcmp(word, "cpu") != 0 && strcmp(word, "heap") != 0)) {
        text_add(answer, "error say what: cpu or heap");
        return false;
    }
    *what = *word == 'h' ? WHAT_HEAP : WHAT_CPU;
    if (!rest || !*rest)
        return true;
    long number = strtol(rest, &end, 10);
    if (*end || number <= 0 || number > INT32_MAX) {
        text_add(answer, "error the process must be a number");
        return false;
    }
    *pid = (pid_t)number;
    if (tasks_find(&s->tasks, *pid))
        return true;
    text_format(answer, "error no such process: %d is not in this session", *pid);
    return false;
}

static const char *whom(pid_t pid, char out[40])
{
    if (pid)
        snprintf(out, 40, "process %d", pid);
    else
        snprintf(out, 40, "all processes");
    return out;
}

static void set_cpu(struct session *s, pid_t pid, bool on, struct text *answer)
{
    char who[40];
    if (pid) {
        struct process *p = tasks_find(&s->tasks, pid);
        bool same = p->muted == !on && !s->cpu_off;
        p->muted = !on;
        text_format(answer, "ok CPU sampling of process %d %s %s%s", pid, same ? "was" : "is",
                    on ? "on" : "off",
                    on && s->cpu_off ? ", but it is off for all: start it without a process" : "");
        return;
    }
    bool same = s->cpu_off == !on;
    if (s->perf && !same)
        perf_sample(s->perf, on);
    s->cpu_off = !on;
    text_format(answer, "ok CPU sampling of %s %s %s", whom(pid, who), same ? "was" : "is",
                on ? "on" : "off");
}

static void set_heap(struct session *s, pid_t pid, bool on, struct text *answer)
{
    char who[40];
    size_t n = heaps_pause(s->heaps, pid, !on);
    if (pid && !n)
        text_format(answer,
                    "error the heap of process %d is not recorded: it has not allocated yet, or "
                    "nothing can be put into it",
                    pid);
    else
        text_format(answer, "ok recording of the heap of %s is %s", whom(pid, who),
                    on ? "on" : "off");
    if (!pid)
        text_format(answer, ", in %zu of them now", n);
}

static void set(struct session *s, char *rest, bool on, struct text *answer)
{
    enum what what;
    pid_t pid;
    if (!parse_object(s, rest, &what, &pid, answer))
        return;
    if (what == WHAT_CPU)
        set_cpu(s, pid, on, answer);
    else if (s->heaps)
        set_heap(s, pid, on, answer);
    else
        text_add(answer, "error the heap is not recorded in this session: start it with --heap");
}

static void mark(struct session *s, const char *text)
{
    char named[MARK_MAX + 1];
    snprintf(named, sizeof named, "%s", text);
    writer_mark(s->writer, clock_now(), named);
}

static void snapshot_heap(struct session *s, pid_t pid, struct text *answer)
{
    char name[32], text[100], who[40];
    uint64_t bytes;
    size_t n = heaps_snapshot(s->heaps, pid, name, &bytes);
    if (!n) {
        text_format(answer, "error the heap of %s is not recorded", whom(pid, who));
        return;
    }
    snprintf(text, sizeof text, "%s of %s", name, whom(pid, who));
    mark(s, text);
    text_add(answer, "ok ");
    text_add_bytes(answer, bytes);
    text_format(answer, " held by %zu process%s are in the recording as event %s", n,
                n == 1 ? "" : "es", name);
}

static void snapshot(struct session *s, char *rest, struct text *answer)
{
    enum what what;
    pid_t pid;
    if (!parse_object(s, rest, &what, &pid, answer))
        return;
    if (what == WHAT_HEAP && !s->heaps) {
        text_add(answer, "error the heap is not recorded in this session: start it with --heap");
        return;
    }
    if (what == WHAT_HEAP) {
        snapshot_heap(s, pid, answer);
    } else {
        mark(s, "snapshot of the CPU samples");
        text_add(answer, "ok ");
        text_add_count(answer, writer_samples(s->writer));
        text_add(answer, " samples are in the recording");
    }
    writer_flush(s->writer, NULL);
}

static void set_rate(struct session *s, const char *rest, struct text *answer)
{
    char *end = NULL;
    unsigned long rate = rest ? strtoul(rest, &end, 10) : 0;
    if (!end || *end || rate < 1 || rate > SESSION_RATE_MAX) {
        text_format(answer, "error the rate must be a number of samples a second, 1 to %d",
                    SESSION_RATE_MAX);
        return;
    }
    if (!s->perf) {
        text_add(answer, "error the rate is fixed: the processes sample themselves here");
        return;
    }
    bool all = perf_set_rate(s->perf, rate);
    s->rate = rate;
    text_format(answer, "ok %lu samples a second of CPU time%s", rate,
                all ? "" : " are more than this session can take: it goes on with what it began");
    if (s->agents)
        agents_set_interval(s->agents, SECOND / rate);
    if (s->budget)
        text_add(answer, "; the budget may change that");
}

static void put_process(void *context, struct process *p)
{
    struct json *j = context;
    json_open_object(j);
    json_put_int(j, "pid", p->pid);
    json_put_uint(j, "threads", p->threads);
    json_put_bool(j, "cpu", !p->muted);
    json_end(j);
}

static void status(struct session *s, struct text *answer)
{
    struct json j;
    json_init(&j, NULL, NULL);
    json_open_object(&j);
    json_put_int(&j, "session", getpid());
    json_put_string(&j, "recording", s->options->output);
    json_put_double(&j, "seconds", (double)(clock_now() - s->start) / SECOND);
    json_put_uint(&j, "samples", writer_samples(s->writer));
    json_put_uint(&j, "lost", s->lost);
    json_put_uint(&j, "bytes", writer_bytes(s->writer));
    json_put_bool(&j, "cpu", !s->cpu_off);
    json_put_uint(&j, "rate", s->rate);
    json_put_uint(&j, "heap", heaps_running(s->heaps, 0));
    json_key(&j, "processes");
    json_open_array(&j);
    tasks_each_process(&s->tasks, put_process, &j);
    json_end(&j);
    json_end(&j);
    json_finish(&j);
    text_format(answer, "ok %s", j.out.data);
    json_release(&j);
}

void session_command(void *context, char *line, struct text *answer)
{
    struct session *s = context;
    char *rest = line, *word = strsep(&rest, " ");
    if (strcmp(word, "start") == 0 || strcmp(word, "stop") == 0) {
        set(s, rest, word[2] == 'a', answer);
    } else if (strcmp(word, "snapshot") == 0) {
        snapshot(s, rest, answer);
    } else if (strcmp(word, "rate") == 0) {
        set_rate(s, rest, answer);
    } else if (strcmp(word, "status") == 0) {
        status(s, answer);
    } else if (strcmp(word, "mark") == 0 && rest && *rest) {
        mark(s, rest);
        text_format(answer, "ok marked at %.3f s", (double)(clock_now() - s->start) / SECOND);
    } else {
        text_add(answer, "error commands are start, stop and snapshot (of cpu or heap, and a "
                         "process), rate HZ, mark TEXT and status");
    }
}
