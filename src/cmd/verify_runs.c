/* Running programs of known truth; see verify_runs.h. */
#include "cmd/verify_runs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/io.h"
#include "base/memory.h"
#include "base/text.h"
#include "capture/beside.h"
#include "capture/launch.h"
#include "formats/open.h"

#define TRUTH_MAX ((size_t)1 << 20)
#define WORDS 24

const struct verify_workload verify_workloads[] = {
    {.name = "cpu", .kinds = {"cpu"}, .options = {"--rate", "997"}, .cost_bound = 5},
    {.name = "wall", .kinds = {"wall"}, .options = {"--wall", "--rate", "997"}, .cost_bound = 10},
    {.name = "heap", .kinds = {"heap", "peak", "leaks"}, .options = {"--heap"}, .cost_bound = 25},
    {.name = "calls", .kinds = {"calls"}, .options = {"--trace"}, .cost_bound = 25},
    {.name = "lines",
     .python = true,
     .kinds = {"python lines"},
     .options = {"--rate", "997"},
     .cost_bound = 10},
    {.name = "calls",
     .python = true,
     .kinds = {"python calls"},
     .options = {"--trace"},
     .cost_bound = 300},
    {0}};

int verify_program(bool python, char *out, size_t size, struct error *err)
{
    return beside_find("truth", python ? "truth.py" : "sonde-truth", out, size, err);
}

struct trial {
    const struct verify_workload *workload;
    char folder[256], truth[288], recording[288], said[288];
    char program[PATH_MAX], python[PATH_MAX];
    unsigned done;
    uint64_t alone, alone_most, under, own; /* CPU ns: least, most; least; least */
};

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
#define ENDING (sizeof ending / sizeof *ending)
static volatile sig_atomic_t interrupted;

static void note_signal(int number)
{
    interrupted = number;
}

/* What ends us leaves time to remove the folder. One that our caller ignores stays ignored. */
static void catch_signals(struct sigaction before[ENDING])
{
    struct sigaction ours = {.sa_handler = note_signal};
    for (size_t i = 0; i < ENDING; i++)
        if (sigaction(ending[i], NULL, &before[i]) == 0 && before[i].sa_handler != SIG_IGN)
            sigaction(ending[i], &ours, NULL);
}

static void release_signals(const struct sigaction before[ENDING])
{
    for (size_t i = 0; i < ENDING; i++)
        sigaction(ending[i], &before[i], NULL);
    if (interrupted)
        raise(interrupted);
}

static int prepare(struct trial *t, struct error *err)
{
    struct text folder = TEXT_INIT;
    int rc = temporary_folder("verify", &folder, err);
    if (!rc && folder.len >= sizeof t->folder) {
        rc = error_set(err, FAULT_USAGE, "the name of the folder %s is too long", folder.data);
        rmdir(folder.data);
    }
    if (!rc)
        snprintf(t->folder, sizeof t->folder, "%s", folder.data);
    text_release(&folder);
    if (rc)
        return rc;
    snprintf(t->truth, sizeof t->truth, "%s/truth", t->folder);
    snprintf(t->recording, sizeof t->recording, "%s/run.sonde", t->folder);
    snprintf(t->said, sizeof t->said, "%s/said", t->folder);
    return 0;
}

static void clean(const struct trial *t)
{
    unlink(t->truth);
    unlink(t->recording);
    unlink(t->said);
    rmdir(t->folder);
}

/* The program with its arguments, after whatever stands in `words` already. */
static void add_program(const struct trial *t, const char **words, size_t n)
{
    if (t->workload->python)
        words[n++] = t->python;
    words[n++] = t->program;
    words[n++] = t->workload->name;
    words[n++] = t->truth;
    words[n] = NULL;
}

static void run_child(const struct trial *t, const char *const *words)
{
    int fd = open(t->said, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
        _exit(125);
    execv(words[0], (char *const *)(uintptr_t)words);
    dprintf(2, "%s: %s\n", words[0], strerror(errno));
    _exit(127);
}

/* Waits for it; what it printed is in the sentence if it failed. */
static int run_words(const struct trial *t, const char *const *words, struct error *err)
{
    int status;
    char *said = NULL;
    pid_t pid = fork();
    if (pid == 0)
        run_child(t, words);
    if (pid < 0)
        return error_errno(err, FAULT_SYSTEM, "cannot start %s", words[0]);
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return error_errno(err, FAULT_SYSTEM, "cannot wait for %s", words[0]);
        if (interrupted)
            kill(pid, interrupted);
    }
    if (!status)
        return 0;
    if (!io_slurp(t->said, 1 << 16, &said, NULL, NULL) && strchr(said, '\n'))
        *strchr(said, '\n') = 0;
    int rc = error_set(err, FAULT_SYSTEM, "%.300s", said && *said ? said : "it failed");
    free(said);
    return rc;
}

static int read_truth(const struct trial *t, struct truth *out, struct error *err)
{
    char *text;
    *out = (struct truth){0};
    int rc = io_slurp(t->truth, TRUTH_MAX, &text, NULL, err);
    if (rc)
        return rc;
    rc = truth_parse(out, text, err);
    free(text);
    return rc;
}

static int run_alone(struct trial *t, struct error *err)
{
    const char *words[WORDS];
    struct truth truth;
    add_program(t, words, 0);
    int rc = run_words(t, words, err);
    if (rc)
        return rc;
    rc = read_truth(t, &truth, err);
    if (!rc && (!t->alone || truth.spent < t->alone))
        t->alone = truth.spent;
    if (!rc && truth.spent > t->alone_most)
        t->alone_most = truth.spent;
    truth_release(&truth);
    return rc;
}

static int compare(struct trial *t, struct truth *truth, struct error *err)
{
    struct profile p;
    struct load_options load = {.hide_interpreter = true};
    int rc = read_truth(t, truth, err);
    profile_init(&p);
    if (!rc)
        rc = profile_open(t->recording, &load, &p, err);
    if (!rc) {
        truth_check(truth, &p);
        if (!t->own || p.cost.collector_cpu < t->own)
            t->own = p.cost.collector_cpu;
        if (!t->under || truth->spent < t->under)
            t->under = truth->spent;
    }
    profile_release(&p);
    return rc;
}

static int run_under(struct trial *t, struct truth *truth, struct error *err)
{
    char self[PATH_MAX];
    const char *words[WORDS] = {self, "run", "-q", "-f", "-o", t->recording};
    size_t n = 6;
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    *truth = (struct truth){0};
    if (len < 0)
        return error_errno(err, FAULT_SYSTEM, "cannot tell where sonde itself is");
    self[len] = 0;
    for (size_t i = 0; t->workload->options[i]; i++)
        words[n++] = t->workload->options[i];
    words[n++] = "--";
    add_program(t, words, n);
    int rc = run_words(t, words, err);
    return rc ? rc : compare(t, truth, err);
}

static void tell_why(struct verify_run *r, const char *why)
{
    for (size_t i = 0; i < r->kind_count; i++)
        r->kinds[i].why = arena_strdup(&r->truth.arena, why);
}

static void sum_up(struct verify_run *r, const struct trial *t)
{
    for (size_t i = 0; i < r->kind_count; i++) {
        struct truth_kind *k = &r->kinds[i];
        *k = truth_sum_up(&r->truth, k->name);
        k->cost_bound = r->workload->cost_bound;
        k->own = t->own;
        k->cost_known = t->alone && t->under;
        if (!k->cost_known)
            continue;
        k->cost = 100.0 * ((double)t->under / (double)t->alone - 1);
        k->cost_noise = 100.0 * ((double)t->alone_most / (double)t->alone - 1);
    }
}

static int repeat_trial(struct verify_run *r, struct trial *t, unsigned repeat, struct error *err)
{
    int rc = 0;
    for (; t->done < repeat && !rc && !interrupted; t->done++) {
        struct truth one;
        rc = run_alone(t, err);
        if (rc)
            break;
        rc = run_under(t, &one, err);
        if (!rc && !t->done)
            r->truth = one;
        else if (!rc)
            rc = truth_add(&r->truth, &one, err);
        if (rc || t->done)
            truth_release(&one);
    }
    if (!rc)
        truth_divide(&r->truth, repeat);
    return rc;
}

int verify_measure(struct verify_run *r, const struct verify_workload *w, unsigned repeat,
                   struct error *err)
{
    struct trial t = {.workload = w};
    struct error why = {0};
    struct sigaction before[ENDING];
    *r = (struct verify_run){.workload = w};
    for (; w->kinds[r->kind_count]; r->kind_count++)
        r->kinds[r->kind_count].name = w->kinds[r->kind_count];
    int rc = verify_program(w->python, t.program, sizeof t.program, err);
    if (rc)
        return rc;
    if (w->python && !launch_find("python3", t.python, sizeof t.python)) {
        tell_why(r, "there is no python3");
        return 0;
    }
    catch_signals(before);
    rc = prepare(&t, err);
    if (!rc && repeat_trial(r, &t, repeat, &why))
        tell_why(r, why.text);
    else if (!rc)
        sum_up(r, &t);
    if (!rc)
        clean(&t);
    release_signals(before);
    return rc;
}

void verify_run_release(struct verify_run *r)
{
    truth_release(&r->truth);
}
