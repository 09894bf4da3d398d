/*
 * How many different events a job has: a client that makes up names without end would make columns
 * without end. Remembered for the jobs seen lately, read anew before anything is refused.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "serve/ledger_internal.h"

#define JOBS_KEPT 256

struct known {
    uint32_t job;
    struct names names;
};

struct ledger_events {
    pthread_mutex_t lock;
    struct known known[JOBS_KEPT];
    size_t len;
};

struct ledger_events *ledger_events_new(void)
{
    struct ledger_events *e = memory_alloc(sizeof *e);
    pthread_mutex_init(&e->lock, NULL);
    return e;
}

void ledger_events_free(struct ledger_events *e)
{
    if (!e)
        return;
    for (size_t i = 0; i < e->len; i++)
        names_release(&e->known[i].names);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

static struct known *known_of(struct ledger_events *e, uint32_t job, bool *fresh)
{
    size_t i = 0;
    while (i < e->len && e->known[i].job != job)
        i++;
    *fresh = i == e->len;
    if (!*fresh)
        return &e->known[i];
    if (e->len == JOBS_KEPT)
        names_release(&e->known[i = job % JOBS_KEPT].names);
    else
        e->len++;
    e->known[i] = (struct known){.job = job};
    return &e->known[i];
}

static int note_event(void *context, const struct store_event *event, struct error *err)
{
    (void)err;
    names_add(context, event->name);
    return 0;
}

/* Asked anew; an engine that is away leaves what was known. */
static void ask(struct ledger *l, struct known *k)
{
    struct error err = {0};
    struct names names = {0};
    struct store *s = ledger_borrow(l, &err);
    if (!s)
        return;
    int rc = s->ops->events(s, k->job, note_event, &names, &err);
    ledger_return(l, s, rc == FAULT_SYSTEM);
    if (rc) {
        names_release(&names);
        return;
    }
    names_release(&k->names);
    k->names = names;
}

static const char *one_too_many(struct known *k, const struct batch *b, unsigned max)
{
    const char *last = NULL;
    for (size_t i = 0; i < b->counts.len; i++) {
        const char *event = b->counts.data[i].event;
        if (last && (event == last || !strcmp(last, event)))
            continue;
        last = event;
        if (names_find(&k->names, event) != NAMES_NONE)
            continue;
        if (k->names.len >= max)
            return event;
        names_add(&k->names, event);
    }
    return NULL;
}

int ledger_check_events(struct ledger *l, const struct batch *b, struct error *err)
{
    bool fresh;
    pthread_mutex_lock(&l->events->lock);
    struct known *k = known_of(l->events, b->job, &fresh);
    if (fresh)
        ask(l, k);
    const char *event = one_too_many(k, b, l->options.events_max);
    if (event && !fresh) {
        ask(l, k);
        event = one_too_many(k, b, l->options.events_max);
    }
    pthread_mutex_unlock(&l->events->lock);
    return event ? error_set(err, FAULT_LIMIT,
                             "event '%s' would be one more than the %u different ones that a job "
                             "may have (--events-max)",
                             event, l->options.events_max)
                 : 0;
}
