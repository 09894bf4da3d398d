/* Batches into the store, together; see ledger.h. */
#include "serve/ledger.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "serve/ledger_internal.h"

#define TOGETHER_MAX 256u                     /* batches of one commit */
#define WAITING_MAX 4096u                     /* batches that may wait */
#define WAITING_BYTES_MAX ((size_t)256 << 20) /* of recordings among them */
#define AGAIN_NS 1000000000ull                /* between two attempts at an engine that is away */

void ledger_say(struct ledger *l, const char *level, const char *format, ...)
{
    if (!l->options.log)
        return;
    struct text t = TEXT_INIT;
    va_list args;
    va_start(args, format);
    text_vformat(&t, format, args);
    va_end(args);
    l->options.log(l->options.context, level, t.data);
    text_release(&t);
}

void ledger_lose(struct ledger *l, const struct error *err)
{
    store_close(l->writer);
    l->writer = NULL;
    l->tried = clock_now();
    pthread_mutex_lock(&l->lock);
    bool news = !l->state.away;
    if (news)
        l->state.since = l->tried;
    l->state.away = true;
    l->state.why = *err;
    pthread_mutex_unlock(&l->lock);
    if (news)
        ledger_say(l, "error", "the store is away, batches go to the journal: %s", err->text);
}

static void found(struct ledger *l)
{
    pthread_mutex_lock(&l->lock);
    bool news = l->state.away;
    l->state.away = false;
    pthread_mutex_unlock(&l->lock);
    if (news)
        ledger_say(l, "info", "the store is back");
}

struct store *ledger_writer(struct ledger *l, struct error *err)
{
    if (l->writer)
        return l->writer;
    if (l->tried && clock_now() - l->tried < AGAIN_NS) {
        *err = l->state.why;
        return NULL;
    }
    if (store_open(l->options.store, &l->writer, err) == 0)
        return l->writer;
    l->writer = NULL;
    ledger_lose(l, err);
    return NULL;
}

/* What the store said of one batch; one that the engine could not take goes to the journal. */
static void settle(struct ledger *l, struct ledger_entry *e, const struct store_outcome *o)
{
    struct ledger_answer *a = e->answer;
    a->rc = o->rc;
    a->duplicate = o->duplicate;
    a->error = o->error;
    if (a->rc == FAULT_SYSTEM && ledger_journal(l, e->batch, &a->error) == 0) {
        a->rc = 0;
        a->queued = true;
        a->error = (struct error){0};
    }
    pthread_mutex_lock(&l->lock);
    l->state.batches += !a->rc && !a->duplicate;
    l->state.duplicates += !a->rc && a->duplicate;
    l->state.counts += !a->rc && !a->duplicate ? e->batch->counts.len : 0;
    l->state.refused += a->rc != 0;
    l->state.queued += a->queued;
    pthread_mutex_unlock(&l->lock);
}

void ledger_listen(struct ledger *l, ledger_added_fn *fn, void *context)
{
    pthread_mutex_lock(&l->lock);
    l->added = fn;
    l->added_context = context;
    pthread_mutex_unlock(&l->lock);
}

/* Tells of those that are in the store now. */
static void tell(struct ledger *l, struct ledger_entry **entries, size_t count)
{
    struct batch *stored[TOGETHER_MAX];
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const struct ledger_answer *a = entries[i]->answer;
        if (!a->rc && !a->duplicate && !a->queued)
            stored[n++] = entries[i]->batch;
    }
    pthread_mutex_lock(&l->lock);
    l->state.commits++;
    if (l->added && n)
        l->added(l->added_context, stored, n);
    pthread_mutex_unlock(&l->lock);
}

static void commit(struct ledger *l, struct ledger_entry **entries, size_t count)
{
    struct batch *batches[TOGETHER_MAX];
    static struct store_outcome outcomes[TOGETHER_MAX];
    struct error err = {0};
    for (size_t i = 0; i < count; i++) {
        batches[i] = entries[i]->batch;
        outcomes[i] = (struct store_outcome){0};
    }
    struct store *s = ledger_writer(l, &err);
    int rc = s ? store_add(s, batches, count, outcomes, &err) : FAULT_SYSTEM;
    if (s && rc == FAULT_SYSTEM)
        ledger_lose(l, &err);
    else if (s)
        found(l);
    for (size_t i = 0; i < count; i++) {
        if (rc)
            outcomes[i] = (struct store_outcome){.rc = rc, .error = err};
        settle(l, entries[i], &outcomes[i]);
    }
    tell(l, entries, count);
}

static size_t take(struct ledger *l, struct ledger_entry **entries)
{
    size_t count = 0;
    while (l->first && count < TOGETHER_MAX) {
        struct ledger_entry *e = l->first;
        l->first = e->next;
        l->waiting--;
        l->waiting_bytes -= e->batch->recording_size;
        entries[count++] = e;
    }
    if (!l->first)
        l->end = &l->first;
    return count;
}

/* Waits for batches, at most a second where there is something else to do, and not at all where
 * there is `more` in the journal. */
static size_t wait_for_batches(struct ledger *l, struct ledger_entry **entries, bool more)
{
    struct timespec until;
    pthread_mutex_lock(&l->lock);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    while (!more && !l->first && !l->closing &&
           pthread_cond_timedwait(&l->arrived, &l->lock, &until) != ETIMEDOUT)
        ;
    size_t count = take(l, entries);
    pthread_mutex_unlock(&l->lock);
    return count;
}

static void *keep_ledger(void *context)
{
    struct ledger *l = context;
    struct ledger_entry *entries[TOGETHER_MAX];
    for (bool more = false;;) {
        size_t count = wait_for_batches(l, entries, more);
        if (count) {
            commit(l, entries, count);
            pthread_mutex_lock(&l->lock);
            for (size_t i = 0; i < count; i++)
                entries[i]->done = true;
            pthread_cond_broadcast(&l->finished);
            pthread_mutex_unlock(&l->lock);
        } else if (l->closing) {
            return NULL;
        }
        more = ledger_replay(l);
        ledger_retain(l);
    }
}

static bool room_for(const struct ledger *l, const struct batch *b)
{
    return l->waiting < WAITING_MAX &&
           (!l->waiting || l->waiting_bytes + b->recording_size <= WAITING_BYTES_MAX);
}

void ledger_add(struct ledger *l, struct batch *b, struct ledger_answer *answer)
{
    struct ledger_entry e = {.batch = b, .answer = answer};
    *answer = (struct ledger_answer){0};
    b->time = clock_wall(); /* the clients' clocks may be a year off */
    pthread_mutex_lock(&l->lock);
    if (l->closing || !room_for(l, b)) {
        answer->busy = true;
        answer->rc = error_set(&answer->error, FAULT_LIMIT, "too many batches wait to be stored");
        pthread_mutex_unlock(&l->lock);
        return;
    }
    *l->end = &e;
    l->end = &e.next;
    l->waiting++;
    l->waiting_bytes += b->recording_size;
    pthread_cond_signal(&l->arrived);
    while (!e.done)
        pthread_cond_wait(&l->finished, &l->lock);
    pthread_mutex_unlock(&l->lock);
}

struct store *ledger_borrow(struct ledger *l, struct error *err)
{
    struct store *s = NULL;
    pthread_mutex_lock(&l->lock);
    if (l->idle_count)
        s = l->idle[--l->idle_count];
    pthread_mutex_unlock(&l->lock);
    if (!s && store_open(l->options.store, &s, err))
        return NULL;
    return s;
}

void ledger_return(struct ledger *l, struct store *s, bool broken)
{
    s->patience = (struct store_patience){0};
    pthread_mutex_lock(&l->lock);
    if (!broken && l->idle_count < LEDGER_STORES) {
        l->idle[l->idle_count++] = s;
        s = NULL;
    }
    pthread_mutex_unlock(&l->lock);
    store_close(s);
}

void ledger_state(struct ledger *l, struct ledger_state *out)
{
    pthread_mutex_lock(&l->lock);
    *out = l->state;
    pthread_mutex_unlock(&l->lock);
    spool_measure(l->journal, &out->parts, &out->bytes);
}

unsigned ledger_jobs_max(const struct ledger *l)
{
    return l->options.jobs_max;
}

/* Signals are for the loop's thread. */
static int start(struct ledger *l, struct error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int code = pthread_create(&l->thread, NULL, keep_ledger, l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    l->running = code == 0;
    errno = code;
    return code ? error_errno(err, FAULT_SYSTEM, "cannot start the thread that writes") : 0;
}

int ledger_new(const struct ledger_options *o, struct ledger **out, struct error *err)
{
    struct ledger *l = memory_alloc(sizeof *l);
    l->options = *o;
    l->options.store = memory_strdup(o->store);
    l->options.journal = NULL;
    l->end = &l->first;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->arrived, NULL);
    pthread_cond_init(&l->finished, NULL);
    l->events = ledger_events_new();
    int rc = spool_open(o->journal, o->journal_max, &l->journal, err);
    if (!rc)
        rc = store_open(o->store, &l->writer, err);
    if (rc == FAULT_SYSTEM && l->journal) {
        ledger_lose(l, err);
        *err = (struct error){0};
        rc = 0;
    }
    if (!rc)
        rc = start(l, err);
    if (rc)
        ledger_free(l);
    else
        *out = l;
    return rc;
}

void ledger_free(struct ledger *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->closing = true;
    pthread_cond_broadcast(&l->arrived);
    pthread_mutex_unlock(&l->lock);
    if (l->running)
        pthread_join(l->thread, NULL);
    for (size_t i = 0; i < l->idle_count; i++)
        store_close(l->idle[i]);
    store_close(l->writer);
    spool_free(l->journal);
    ledger_events_free(l->events);
    free((char *)l->options.store);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->arrived);
    pthread_cond_destroy(&l->finished);
    free(l);
}
