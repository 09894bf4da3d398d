/* The pool: work that would block the loop runs on its threads, and comes back to the loop through
 * an eventfd. What waits is bounded; more is refused. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/memory.h"
#include "serve/http_internal.h"

#define WAITING_MAX 1024

struct task {
    struct task *next;
    void (*work)(void *); /* on a thread of the pool */
    void (*done)(void *); /* on the loop */
    void *context;
};

struct queue {
    struct task *first, **end;
    size_t len;
};

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct queue waiting, finished;
    bool closing;
    int wake_loop; /* eventfd */
    struct event *event;
    pthread_t *threads;
    unsigned thread_count;
};

static void queue_put(struct queue *q, struct task *t)
{
    t->next = NULL;
    if (!q->first)
        q->end = &q->first;
    *q->end = t;
    q->end = &t->next;
    q->len++;
}

static struct task *queue_take(struct queue *q)
{
    struct task *t = q->first;
    if (t) {
        q->first = t->next;
        q->len--;
    }
    return t;
}

static void tell_loop(struct pool *p, struct task *t)
{
    uint64_t one = 1;
    pthread_mutex_lock(&p->lock);
    queue_put(&p->finished, t);
    pthread_mutex_unlock(&p->lock);
    if (write(p->wake_loop, &one, sizeof one) < 0)
        return; /* only when it is full: the loop is awake then */
}

static void *labour(void *context)
{
    struct pool *p = context;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        struct task *t = queue_take(&p->waiting);
        if (t) {
            pthread_mutex_unlock(&p->lock);
            t->work(t->context);
            tell_loop(p, t);
            pthread_mutex_lock(&p->lock);
        } else if (p->closing) {
            break;
        } else {
            pthread_cond_wait(&p->wake, &p->lock);
        }
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void finish_tasks(struct pool *p)
{
    for (;;) {
        pthread_mutex_lock(&p->lock);
        struct task *t = queue_take(&p->finished);
        pthread_mutex_unlock(&p->lock);
        if (!t)
            return;
        t->done(t->context);
        free(t);
    }
}

static void on_wake(evutil_socket_t fd, short what, void *context)
{
    uint64_t n;
    (void)what;
    if (read(fd, &n, sizeof n) == sizeof n)
        finish_tasks(context);
}

/* Signals are for the loop's thread. */
static void start_threads(struct pool *p, unsigned threads)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    p->threads = memory_array(threads, sizeof *p->threads);
    while (p->thread_count < threads &&
           pthread_create(&p->threads[p->thread_count], NULL, labour, p) == 0)
        p->thread_count++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct pool *pool_new(struct event_base *base, unsigned threads)
{
    struct pool *p = memory_alloc(sizeof *p);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    p->wake_loop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    p->event =
        p->wake_loop < 0 ? NULL : event_new(base, p->wake_loop, EV_READ | EV_PERSIST, on_wake, p);
    if (p->event)
        event_add(p->event, NULL);
    start_threads(p, threads);
    return p;
}

void pool_free(struct pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->closing = true;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->thread_count; i++)
        pthread_join(p->threads[i], NULL);
    finish_tasks(p);
    if (p->event)
        event_free(p->event);
    if (p->wake_loop >= 0)
        close(p->wake_loop);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->wake);
    free(p->threads);
    free(p);
}

void pool_post(struct pool *p, void (*fn)(void *), void *context)
{
    struct task *t = memory_alloc(sizeof *t);
    *t = (struct task){.done = fn, .context = context};
    tell_loop(p, t);
}

bool pool_add(struct pool *p, void (*work)(void *), void (*done)(void *), void *context)
{
    struct task *t = memory_alloc(sizeof *t);
    *t = (struct task){.work = work, .done = done, .context = context};
    pthread_mutex_lock(&p->lock);
    bool fits = p->waiting.len < WAITING_MAX && p->thread_count && !p->closing;
    if (fits) {
        queue_put(&p->waiting, t);
        pthread_cond_signal(&p->wake);
    }
    pthread_mutex_unlock(&p->lock);
    if (!fits)
        free(t);
    return fits;
}
