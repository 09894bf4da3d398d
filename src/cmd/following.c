/* A recording that is still being written; see following.h. */
#include "cmd/following.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/map.h"
#include "formats/open.h"
#include "symbol/profile.h"

#define RECORDING_MAX ((size_t)1 << 30)
#define STEP_NS 100000000ull

/* What was handed over: a sum for each (event, executable, name) of each kind. */
struct sent {
    struct names texts;
    VECTOR(int64_t) values;
};

static volatile sig_atomic_t asked_to_end;

static void note_end(int number)
{
    (void)number;
    asked_to_end = 1;
}

static int64_t *sent_of(struct sent *s, const struct batch_count *c)
{
    struct text whole = TEXT_INIT;
    text_format(&whole, "%d%s\n%s\n%s", c->kind, c->event, c->executable, c->name);
    uint32_t at = names_add(&s->texts, whole.data);
    text_release(&whole);
    while (s->values.len <= at)
        *vector_push(&s->values) = 0;
    return &s->values.data[at];
}

/* A name in brackets stands for code that may get a better one at the end. */
static bool is_settled(const char *name)
{
    return name[0] != '[' && !strstr(name, ";[");
}

/* Leaves in the batch what is new, and remembers it as sent. */
static void keep_gain(struct batch *b, struct sent *s, bool last)
{
    size_t kept = 0;
    for (size_t i = 0; i < b->counts.len; i++) {
        struct batch_count c = b->counts.data[i];
        if (!last && !is_settled(c.name))
            continue;
        int64_t *sent = sent_of(s, &c);
        int64_t gain = c.value - *sent;
        if (gain <= 0)
            continue;
        *sent = c.value;
        c.value = gain;
        b->counts.data[kept++] = c;
    }
    b->counts.len = kept;
}

static int load(const struct following_options *o, struct profile *p, struct error *err)
{
    struct load_options how = {.hide_interpreter = true};
    struct symbol_options symbols = {0};
    struct symbol_summary summary;
    int rc = profile_open(o->path, &how, p, err);
    if (!rc && !p->complete)
        rc = symbol_profile(p, NULL, false, &symbols, &summary, err);
    return rc;
}

/* A recording that cannot be read yet is looked at again later; `failed` is for what cannot be put
 * right. */
static int hand_over(const struct following_options *o, struct sent *s, const char *key,
                     unsigned part, bool end, bool *complete, bool *failed, struct error *err)
{
    struct profile p;
    struct batch b = {0};
    char name[BATCH_KEY_MAX + 1], *data = NULL;
    profile_init(&p);
    int rc = load(o, &p, err);
    *complete = !rc && p.complete;
    *failed = rc && end;
    bool last = *complete || end;
    if (!rc) {
        batch_add_profile(&b, &p, o->stacks);
        keep_gain(&b, s, last);
    }
    if (!rc && last && o->keep) {
        const char *slash = strrchr(o->path, '/');
        rc = io_slurp(o->path, RECORDING_MAX, &data, &b.recording_size, err);
        b.recording_name = slash ? slash + 1 : o->path;
        b.recording = data;
    }
    snprintf(name, sizeof name, "%.40s.%u", key, part);
    if (!rc && (b.counts.len || b.recording_name)) {
        rc = o->send(o->context, &b, name, err);
        *failed = rc != 0;
    }
    batch_release(&b);
    profile_release(&p);
    free(data);
    return rc;
}

/* Until it is time for the next look, or the end. */
static void rest(uint64_t ns)
{
    const struct timespec step = {.tv_nsec = STEP_NS};
    uint64_t until = clock_now() + ns;
    while (!asked_to_end && clock_now() < until)
        nanosleep(&step, NULL);
}

int following_run(const struct following_options *o, struct error *err)
{
    struct sigaction old, new = {.sa_handler = note_end};
    struct sent s = {0};
    char key[BATCH_KEY_MAX + 1];
    bool complete = false, failed = false;
    int rc = 0;
    batch_key_make(key);
    sigaction(SIGTERM, &new, &old);
    signal(SIGINT, SIG_IGN); /* of a terminal, meant for the program that is recorded */
    for (unsigned part = 0; !complete && !failed; part++) {
        rest(o->every);
        bool end = asked_to_end;
        struct error why = {0};
        rc = hand_over(o, &s, key, part, end, &complete, &failed, &why);
        if (rc)
            *err = why;
        if (end)
            break;
    }
    if (complete && !failed)
        err->fault = FAULT_NONE;
    sigaction(SIGTERM, &old, NULL);
    names_release(&s.texts);
    vector_release(&s.values);
    return rc;
}
