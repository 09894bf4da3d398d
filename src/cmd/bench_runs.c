/* Interleaved runs; see bench_runs.h. */
#include "cmd/bench_runs.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "capture/count.h"
#include "capture/proc.h"
#include "capture/session.h"
#include "cmd/status.h"
#include "formats/open.h"
#include "base/folders.h"

#define WORDS_MAX 4096
#define BUSY 0.02 /* part of a run that others took, above which it counts as disturbed */

static char **shell_words(const char *line)
{
    char **words = memory_array(4, sizeof *words);
    words[0] = memory_strdup("/bin/sh");
    words[1] = memory_strdup("-c");
    words[2] = memory_strdup(line);
    return words;
}

char **bench_words(const char *line)
{
    VECTOR(char *) words = {0};
    if (strpbrk(line, "|&;<>()$`\\*?~#\n") || strlen(line) > WORDS_MAX)
        return shell_words(line);
    for (const char *s = line; *(s += strspn(s, " \t"));) {
        struct text word = TEXT_INIT;
        for (; *s && *s != ' ' && *s != '\t';) {
            size_t len = *s == '"' || *s == '\'' ? 0 : strcspn(s, " \t\"'");
            if (!len) {
                const char *end = strchr(s + 1, *s);
                len = end ? (size_t)(end - s - 1) : strlen(s + 1);
                text_add_len(&word, s + 1, len);
                s += len + 1 + (end != NULL);
            } else {
                text_add_len(&word, s, len);
                s += len;
            }
        }
        *vector_push(&words) = text_take(&word);
    }
    *vector_push(&words) = NULL;
    return words.data;
}

static int prepare(const struct bench_runs *r, struct error *err)
{
    if (!r->prepare)
        return 0;
    struct launch_options how = {
        .argv = (char *const[]){(char *)"/bin/sh", (char *)"-c", (char *)r->prepare, NULL},
        .silent = !r->show_output};
    struct launch l;
    int code, status;
    int rc = launch_start(&how, &l, err);
    if (!rc)
        rc = launch_go(&l, &how, &code, err);
    if (rc)
        return rc;
    if (waitpid(l.pid, &status, 0) != l.pid || status)
        return error_set(err, FAULT_SYSTEM, "the command of --prepare failed: %s", r->prepare);
    return 0;
}

static int fail_status(int status)
{
    return WIFSIGNALED(status) ? STATUS_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

static int check_status(struct bench_runs *r, const char *name, int status, struct error *err)
{
    if (!status || r->ignore_failure)
        return 0;
    r->status = fail_status(status);
    return error_set(err, FAULT_SYSTEM,
                     "%s ended with status %d; --ignore-failure measures it all the same", name,
                     r->status);
}

static void add(struct benchmark *b, const char *name, enum view_kind kind, bool judged,
                size_t variant, double value)
{
    size_t at = benchmark_metric(b, name, kind, judged);
    *vector_push(&b->metrics.data[at].values[variant]) = value;
}

/* Between fork and exec the command has our own memory, and the kernel's maximum starts from
 * there: up to what we ever had, it says nothing of the command. */
static bool is_own_memory(const struct counts_usage *u)
{
    return u->rss_bound || u->max_rss <= proc_peak_rss(getpid());
}

static void take_usage(struct benchmark *b, size_t variant, const struct counts_usage *u)
{
    struct benchmark_variant *v = &b->variants.data[variant];
    add(b, "real", VIEW_DURATION, true, variant, (double)u->real);
    add(b, "user", VIEW_DURATION, true, variant, (double)u->user);
    add(b, "sys", VIEW_DURATION, false, variant, (double)u->sys);
    if (!is_own_memory(u))
        add(b, "maximum memory", VIEW_BYTES, true, variant, (double)u->max_rss);
    add(b, "page faults", VIEW_COUNT, false, variant, (double)(u->minor_faults + u->major_faults));
    add(b, "switches", VIEW_COUNT, false, variant, (double)u->voluntary);
    add(b, "forced switches", VIEW_COUNT, false, variant, (double)u->involuntary);
    v->runs++;
    v->stolen += (double)u->stolen;
    v->delayed += (double)u->delayed;
    v->disturbed += (double)(u->stolen + u->delayed) > BUSY * (double)u->real;
}

/* Undisturbed but for counters. */
static int timed_run(struct bench_runs *r, struct benchmark *b, size_t variant, bool counts,
                     struct error *err)
{
    struct launch_options launch = {.argv = r->variants.data[variant].argv,
                                    .silent = !r->show_output};
    struct count_options how = {.launch = &launch};
    struct counter_plan plan = {0};
    struct count_result result;
    struct counts c;
    counts_init(&c, "");
    int rc = 0;
    for (size_t i = 0; i < r->events->len && !rc; i++)
        rc = counter_plan_add(&plan, &c, r->events->data[i], err);
    if (!rc)
        rc = count_run(&how, &plan, &c, &result, err);
    if (!rc && result.interrupted)
        rc = error_set(err, FAULT_SYSTEM, "interrupted");
    if (!rc)
        rc = check_status(r, b->variants.data[variant].name, result.status, err);
    if (!rc && counts) {
        take_usage(b, variant, &c.runs.data[0].usage);
        for (size_t i = 0; i < c.events.len; i++)
            if (c.runs.data[0].values[i].known)
                add(b, c.events.data[i].name, c.events.data[i].timed ? VIEW_DURATION : VIEW_COUNT,
                    true, variant, c.runs.data[0].values[i].value);
    }
    counter_plan_release(&plan);
    counts_release(&c);
    return rc;
}

/* Self time of each function in the recording, as one more run of the variant. */
static void take_functions(const struct profile *p, struct benchmark *b, size_t variant, size_t run)
{
    uint32_t event = profile_event_find(p, "cpu");
    for (size_t i = 0; i < p->cells.len; i++) {
        const struct profile_cell *cell = &p->cells.data[i];
        if (cell->event != event || !cell->stack)
            continue;
        const struct profile_frame *f = &p->frames.data[p->stacks.data[cell->stack].frame];
        const char *name = "[no symbols]", *module = profile_module_name(p, f->module);
        /* The function that the code is in, not one that was inlined there: another compilation may
         * inline differently. */
        uint32_t outer = f->first_location + f->location_count - 1;
        if (f->location_count)
            name = profile_text(p, p->functions.data[p->locations.data[outer].function].name);
        size_t at = benchmark_function(b, name, module);
        struct benchmark_series *s = &b->functions.data[at];
        while (s->values[variant].len <= run)
            *vector_push(&s->values[variant]) = 0;
        s->values[variant].data[run] += (double)cell->value;
    }
}

static int profiled_run(struct bench_runs *r, struct benchmark *b, size_t variant, size_t run,
                        struct error *err)
{
    struct text path = TEXT_INIT;
    int rc = temporary_folder("bench", &path, err);
    if (rc)
        return rc;
    char *folder = memory_strdup(path.data);
    text_add(&path, "/run.sonde");
    struct launch_options launch = {.argv = r->variants.data[variant].argv,
                                    .silent = !r->show_output};
    struct session_options how = {.launch = &launch, .output = path.data, .replace = true};
    struct session_result result;
    struct profile p;
    sigset_t mask;
    how.perf.rate = r->rate;
    how.python_outside = !launch_is_python(launch.argv[0]);
    profile_init(&p);
    rc = event_parse("cpu", &how.perf.event[how.perf.events++], err);
    sigprocmask(SIG_BLOCK, NULL, &mask);
    if (!rc)
        rc = session_run(&how, &result, err);
    sigprocmask(SIG_SETMASK, &mask, NULL); /* the next command starts with ours */
    if (!rc)
        rc = profile_open(path.data, NULL, &p, err);
    if (!rc)
        take_functions(&p, b, variant, run);
    unlink(path.data);
    rmdir(folder);
    free(folder);
    text_release(&path);
    profile_release(&p);
    return rc;
}

static void show_progress(const struct bench_runs *r, uint64_t done, uint64_t all, uint64_t start)
{
    enum { WIDTH = 30 };
    struct text t = TEXT_INIT;
    if (!r->progress)
        return;
    uint64_t filled = all ? done * WIDTH / all : 0;
    text_add(&t, "\r\033[K");
    for (uint64_t i = 0; i < WIDTH; i++)
        text_add(&t, i < filled ? "━" : "╌");
    text_format(&t, " %llu of %llu runs", (unsigned long long)done, (unsigned long long)all);
    if (done && done < all) {
        text_add(&t, ", ");
        text_add_duration(&t, (clock_now() - start) / done * (all - done));
        text_add(&t, " to go");
    }
    text_add(&t, done == all ? "\r\033[K" : "\r");
    fputs(t.data, stderr);
    fflush(stderr);
    text_release(&t);
}

static void shuffle(size_t *order, size_t n, uint64_t *state)
{
    for (size_t i = n; i > 1; i--) {
        *state = *state * 6364136223846793005ull + 1442695040888963407ull;
        size_t k = (size_t)((*state >> 33) % i), t = order[i - 1];
        order[i - 1] = order[k];
        order[k] = t;
    }
}

/* One round: every variant once, in an order that changes, so that what the machine does
 * meanwhile falls on all alike. */
static int one_round(struct bench_runs *r, struct benchmark *b, bool profiled, bool counts,
                     size_t run, uint64_t *random, struct error *err)
{
    size_t order[BENCHMARK_VARIANTS_MAX], n = r->variants.len;
    int rc = 0;
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    shuffle(order, n, random);
    for (size_t i = 0; i < n && !rc; i++) {
        rc = prepare(r, err);
        if (!rc)
            rc = profiled ? profiled_run(r, b, order[i], run, err)
                          : timed_run(r, b, order[i], counts, err);
    }
    return rc;
}

int bench_run(struct bench_runs *r, struct benchmark *b, struct error *err)
{
    uint64_t random = 1, start = clock_now(), n = r->variants.len,
             all = (r->warmup + r->runs * (r->functions ? 2 : 1)) * n, done = 0;
    int rc = 0;
    for (uint64_t i = 0; i < r->warmup && !rc; i++, done += n) {
        show_progress(r, done, all, start);
        rc = one_round(r, b, false, false, 0, &random, err);
    }
    for (uint64_t i = 0; i < r->runs && !rc; i++) {
        show_progress(r, done, all, start);
        rc = one_round(r, b, false, true, i, &random, err);
        done += n;
        show_progress(r, done, all, start);
        if (!rc && r->functions)
            rc = one_round(r, b, true, false, i, &random, err);
        done += r->functions ? n : 0;
        if (!rc && r->round)
            rc = r->round(r->context, b, i, err);
    }
    show_progress(r, all, all, start);
    for (size_t i = 0; i < n && r->functions; i++)
        benchmark_pad_functions(b, i, r->runs);
    return rc;
}

void bench_runs_release(struct bench_runs *r)
{
    for (size_t i = 0; i < r->variants.len; i++) {
        for (char **word = r->variants.data[i].argv; *word; word++)
            free(*word);
        free(r->variants.data[i].argv);
    }
    vector_release(&r->variants);
}
