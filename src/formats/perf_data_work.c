/*
 * Walking copied stacks beside reading the file. Samples go in loads through a ring: the reader
 * fills one, whoever is free walks its stacks, and the reader counts them in the order in which
 * they came, so that the profile is the same with any number of threads. Rather than wait for
 * others the reader walks stacks itself: with one CPU there are no other threads at all.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "base/memory.h"
#include "formats/perf_data_internal.h"

#define LOAD 64 /* samples: some 50 µs of work */
#define LOADS 16
#define WAKE 6 /* loads that must wait: to wake somebody costs as much as to walk one */
#define THREADS_MAX 7

struct load {
    struct perf_item items[LOAD];
    size_t len;
    VECTOR(uint64_t) addresses; /* of all its samples */
    bool done;
};

struct perf_work {
    struct load loads[LOADS]; /* number n is at n % LOADS */
    pthread_mutex_t lock;     /* of all below, and of `done` */
    pthread_cond_t filled_more, done_more;
    size_t filled, taken, used; /* loads so far; taken: by whoever walks them */
    bool stop;
    pthread_t threads[THREADS_MAX];
    size_t thread_count;
};

static void walk_load(struct load *l)
{
    l->addresses.len = 0;
    for (size_t i = 0; i < l->len; i++) {
        struct perf_item *item = &l->items[i];
        if (!item->copied)
            continue;
        vector_reserve(&l->addresses, l->addresses.len + PERF_CHAIN_MAX);
        item->first = l->addresses.len;
        perf_space_walk(item, l->addresses.data + item->first);
        l->addresses.len += item->count;
    }
}

/* Takes the next load and walks it; the lock is held before and after. */
static void walk_next(struct perf_work *w)
{
    struct load *l = &w->loads[w->taken++ % LOADS];
    pthread_mutex_unlock(&w->lock);
    walk_load(l);
    pthread_mutex_lock(&w->lock);
    l->done = true;
}

static void *work(void *context)
{
    struct perf_work *w = context;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (!w->stop && w->taken == w->filled)
            pthread_cond_wait(&w->filled_more, &w->lock);
        if (w->stop)
            break;
        walk_next(w);
        pthread_cond_signal(&w->done_more);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* One thread for each CPU beside the reader's. They take no signals but what their own reading
 * causes; with fewer of them than wished, or none, it only takes longer. */
static struct perf_work *work_new(void)
{
    struct perf_work *w = memory_alloc(sizeof *w);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->filled_more, NULL);
    pthread_cond_init(&w->done_more, NULL);
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    size_t wanted = sched_getaffinity(0, sizeof cpus, &cpus) ? 0 : (size_t)CPU_COUNT(&cpus) - 1;
    sigset_t none, before;
    sigfillset(&none);
    sigdelset(&none, SIGBUS);
    pthread_sigmask(SIG_BLOCK, &none, &before);
    while (w->thread_count < THREADS_MAX && w->thread_count < wanted &&
           !pthread_create(&w->threads[w->thread_count], NULL, work, w))
        w->thread_count++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return w;
}

/* The oldest load that was not used yet, walked; NULL if it is not, and nobody is to wait. */
static struct load *oldest(struct perf_work *w, bool wait)
{
    struct load *l = &w->loads[w->used % LOADS];
    pthread_mutex_lock(&w->lock);
    while (wait && !l->done)
        if (w->taken < w->filled)
            walk_next(w);
        else
            pthread_cond_wait(&w->done_more, &w->lock);
    bool done = l->done;
    l->done = false;
    pthread_mutex_unlock(&w->lock);
    return done ? l : NULL;
}

static int use_load(struct perf_data *d, struct load *l, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < l->len && !rc; i++) {
        const struct perf_item *item = &l->items[i];
        rc = perf_item_use(d, item, item->count ? l->addresses.data + item->first : NULL, err);
    }
    l->len = 0;
    d->work->used++;
    return rc;
}

static void hand_out(struct perf_work *w)
{
    pthread_mutex_lock(&w->lock);
    w->filled++;
    if (w->filled - w->taken >= WAKE)
        pthread_cond_signal(&w->filled_more);
    pthread_mutex_unlock(&w->lock);
}

/* Uses what is ready, and waits only for a place in the ring. */
static int make_room(struct perf_data *d, struct error *err)
{
    struct perf_work *w = d->work;
    int rc = 0;
    while (!rc && w->used < w->filled) {
        struct load *l = oldest(w, !w->thread_count || w->filled - w->used == LOADS);
        if (!l)
            break;
        rc = use_load(d, l, err);
    }
    return rc;
}

int perf_work_add(struct perf_data *d, const struct perf_item *item, struct error *err)
{
    if (!d->work)
        d->work = work_new();
    struct load *l = &d->work->loads[d->work->filled % LOADS];
    l->items[l->len++] = *item;
    if (l->len < LOAD)
        return 0;
    hand_out(d->work);
    return make_room(d, err);
}

int perf_work_flush(struct perf_data *d, struct error *err)
{
    struct perf_work *w = d->work;
    int rc = 0;
    if (!w)
        return 0;
    if (w->loads[w->filled % LOADS].len)
        hand_out(w);
    while (w->used < w->filled && !rc)
        rc = use_load(d, oldest(w, true), err);
    return rc;
}

void perf_work_free(struct perf_work *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_broadcast(&w->filled_more);
    pthread_mutex_unlock(&w->lock);
    for (size_t i = 0; i < w->thread_count; i++)
        pthread_join(w->threads[i], NULL);
    for (size_t i = 0; i < LOADS; i++)
        vector_release(&w->loads[i].addresses);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->filled_more);
    pthread_cond_destroy(&w->done_more);
    free(w);
}
