/* sonde push: add profiles to a job, whole ones or one that is still being recorded. */
#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "cmd/command.h"
#include "cmd/following.h"
#include "cmd/reading.h"
#include "cmd/remote.h"
#include "store/store.h"

#define FILE_MAX ((size_t)1 << 30)
#define PART_COUNTS 50000u

struct push_options {
    const char *server, *host, *event;
    uint64_t job, every;
    bool keep, stacks, again, follow, flush, quiet;
};

static const struct option options[] = {
    {"job", 'j', OPTION_UNSIGNED_AT(struct push_options, job), .placeholder = "N", .min = JOB_FIRST,
     .max = JOB_LAST, .help = "The job to add to."},
    {"server", 0, OPTION_TEXT_AT(struct push_options, server), .placeholder = "URL",
     .default_text = "$SONDE_SERVER, or http://127.0.0.1:10000", .help = "The server of jobs."},
    {"keep", 0, OPTION_FLAG_AT(struct push_options, keep),
     .help = "Keep the files themselves on the server too."},
    {"stacks", 0, OPTION_FLAG_AT(struct push_options, stacks), .negatable = true,
     .help = "Whole stacks as well as functions, for flame graphs and pprof."},
    {"host", 0, OPTION_TEXT_AT(struct push_options, host), .placeholder = "NAME",
     .default_text = "this machine's", .help = "Where the profile was made."},
    {"again", 0, OPTION_FLAG_AT(struct push_options, again),
     .help = "Count a file that was pushed before once more."},
    {"follow", 0, OPTION_FLAG_AT(struct push_options, follow),
     .help = "Push what a recording gains, until it is complete."},
    {"every", 0, OPTION_DURATION_AT(struct push_options, every), .placeholder = "TIME",
     .min = 100000000, .help = "With --follow: how often."},
    {"flush", 0, OPTION_FLAG_AT(struct push_options, flush),
     .help = "Only send what waits on disk for the server."},
    {"quiet", 'q', OPTION_FLAG_AT(struct push_options, quiet), .help = "Say nothing."},
    {0}};

static const struct push_options defaults = {.stacks = true, .every = 5000000000};

/* The same file gives the same key, so that pushing it again counts nothing twice. */
static void key_of(const char *data, size_t len, bool again, char key[BATCH_KEY_MAX + 1])
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    if (again) {
        batch_key_make(key);
        return;
    }
    EVP_Digest(data, len, hash, &size, EVP_sha256(), NULL);
    for (unsigned i = 0; i < 24; i++)
        snprintf(key + 2 * i, 3, "%02x", hash[i]);
}

static int push_part(struct remote *r, const struct push_options *o, struct batch *b,
                     struct remote_pushed *done, struct error *err)
{
    struct remote_pushed now;
    int rc = remote_push(r, (uint32_t)o->job, b, &now, err);
    done->sent += now.sent;
    done->known += now.known;
    done->waiting = now.waiting;
    done->refused += now.refused;
    return rc;
}

/* Batches have a bound; a profile beyond it becomes several, each with a key of its own. */
static int push_batch(struct remote *r, const struct push_options *o, struct batch *whole,
                      const char *key, struct remote_pushed *done, struct error *err)
{
    size_t at = 0;
    int rc = 0;
    for (unsigned part = 0; !rc && (part == 0 || at < whole->counts.len); part++) {
        char name[BATCH_KEY_MAX + 1];
        size_t left = whole->counts.len - at;
        struct batch b = {.key = name, .host = whole->host};
        snprintf(name, sizeof name, part ? "%.52s.%u" : "%.52s", key, part);
        b.counts.data = whole->counts.data + at;
        b.counts.len = left < PART_COUNTS ? left : PART_COUNTS;
        if (part == 0) {
            b.recording_name = whole->recording_name;
            b.recording = whole->recording;
            b.recording_size = whole->recording_size;
        }
        at += b.counts.len;
        rc = push_part(r, o, &b, done, err);
    }
    return rc;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static int push_file(struct remote *r, const struct push_options *o, const char *path,
                     const char *host, struct remote_pushed *done, struct error *err)
{
    struct profile p;
    struct batch b = {.host = host};
    struct load_options load = {.hide_interpreter = true};
    char *data = NULL, key[BATCH_KEY_MAX + 1];
    size_t len = 0;
    profile_init(&p);
    int rc = reading_open(path, NULL, &load, &p, err);
    if (!rc)
        rc = io_slurp(path, FILE_MAX, &data, &len, err);
    if (!rc) {
        key_of(data, len, o->again, key);
        batch_add_profile(&b, &p, o->stacks);
        if (o->keep) {
            b.recording_name = last_part(path);
            b.recording = data;
            b.recording_size = len;
        }
        rc = push_batch(r, o, &b, key, done, err);
        if (rc && err->fault)
            error_prefix(err, "%s", path);
    }
    batch_release(&b);
    profile_release(&p);
    free(data);
    return rc;
}

static int send_gain(void *context, struct batch *b, const char *key, struct error *err);

struct following_to {
    struct remote *remote;
    const struct push_options *options;
    const char *host;
    struct remote_pushed *done;
};

static int send_gain(void *context, struct batch *b, const char *key, struct error *err)
{
    struct following_to *f = context;
    b->host = f->host;
    return push_batch(f->remote, f->options, b, key, f->done, err);
}

static int follow_file(struct remote *r, const struct push_options *o, const char *path,
                       const char *host, struct remote_pushed *done, struct error *err)
{
    struct following_to to = {r, o, host, done};
    struct following_options how = {.path = path,
                                    .every = o->every,
                                    .stacks = o->stacks,
                                    .keep = o->keep,
                                    .send = send_gain,
                                    .context = &to};
    return following_run(&how, err);
}

static void say(const struct push_options *o, const struct remote *r, const struct remote_pushed *d,
                const struct error *why)
{
    if (o->quiet)
        return;
    if (d->waiting)
        remote_say_waiting("push", d->waiting, why);
    else if (d->known && d->known == d->sent && !o->flush)
        fprintf(stderr, "sonde push: %s has that already: nothing was added (--again adds it)\n",
                remote_url(r));
    else if (d->known)
        fprintf(stderr, "sonde push: %u part%s sent to %s, of which %u had been there already\n",
                d->sent, d->sent == 1 ? "" : "s", remote_url(r), d->known);
    else
        fprintf(stderr, "sonde push: %u part%s sent to %s\n", d->sent, d->sent == 1 ? "" : "s",
                remote_url(r));
}

static int check(struct invocation *inv)
{
    const struct push_options *o = inv->options;
    if (o->flush)
        return inv->argc ? error_set(&inv->error, FAULT_USAGE, "--flush takes no files") : 0;
    if (!o->job)
        return error_set(&inv->error, FAULT_USAGE, "which job? Name it with --job");
    if (!inv->argc)
        return error_set(&inv->error, FAULT_USAGE, "what is to be pushed? Name files");
    if (o->follow && inv->argc != 1)
        return error_set(&inv->error, FAULT_USAGE, "--follow takes one recording");
    return 0;
}

static int push_all(struct invocation *inv, struct remote *r, struct remote_pushed *done)
{
    const struct push_options *o = inv->options;
    char own[256];
    remote_host(own, sizeof own);
    const char *host = o->host ? o->host : own;
    if (o->flush)
        return remote_flush(r, done, &inv->error);
    if (o->follow)
        return follow_file(r, o, inv->argv[0], host, done, &inv->error);
    int rc = 0;
    for (int i = 0; !rc && i < inv->argc; i++)
        rc = push_file(r, o, inv->argv[i], host, done, &inv->error);
    return rc;
}

static int run(struct invocation *inv)
{
    const struct push_options *o = inv->options;
    struct remote_pushed done = {0};
    struct remote *r;
    int rc = check(inv);
    if (!rc)
        rc = remote_open(o->server, &r, &inv->error);
    if (rc)
        return rc;
    rc = push_all(inv, r, &done);
    if (!rc) {
        say(o, r, &done, &inv->error);
        inv->error.fault = FAULT_NONE; /* a server that is away was told of, and is no failure */
    }
    remote_free(r);
    return rc;
}

static const struct command_example examples[] = {
    {"sonde push --job 2001 app.sonde", "add a recording's counts to a job"},
    {"sonde push --job 2001 --keep perf.data cpu.pb.gz", "other tools' files, and keep them"},
    {"sonde push --flush", "send what waited for a server that was away"},
    {0}};

static const char *const see_also[] = {"job", "run", "serve", NULL};

const struct command command_push = {
    .name = "push",
    .summary = "Add profiles to a job of a server",
    .usage = "--job N [OPTION]... FILE...",
    .description =
        "Adds each FILE, a recording or a profile of any kind that sonde reads, to a job: for each "
        "function of each executable the counts of each event, added to what is there. A file "
        "counts "
        "once, however often it is pushed.\n\n"
        "What is pushed is first written to a spool on disk ($SONDE_SPOOL, or in the user's state "
        "folder) and leaves it when the server has it; if the server is away it is sent with the "
        "next push, each part once.",
    .options = options,
    .options_size = sizeof(struct push_options),
    .defaults = &defaults,
    .operands_max = COMMAND_ANY,
    .operand = "FILE",
    .examples = examples,
    .see_also = see_also,
    .run = run,
};
