/* What was answered last; see recall.h. */
#include "serve/recall.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

#define COUNT_MAX 512
#define SHARE 8 /* one answer may take this part of all */

struct answer {
    char *question;
    const char *type; /* a constant of whoever answered */
    char *data;
    size_t len;
    uint64_t time, used; /* monotonic ns */
};

struct recall {
    pthread_mutex_t lock;
    struct answer list[COUNT_MAX];
    size_t count, bytes, bytes_max;
};

struct recall *recall_new(size_t bytes_max)
{
    struct recall *a = memory_alloc(sizeof *a);
    pthread_mutex_init(&a->lock, NULL);
    a->bytes_max = bytes_max;
    return a;
}

static void drop(struct recall *a, size_t at)
{
    a->bytes -= a->list[at].len;
    free(a->list[at].question);
    free(a->list[at].data);
    a->list[at] = a->list[--a->count];
}

void recall_free(struct recall *a)
{
    if (!a)
        return;
    recall_forget(a);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

static size_t find(const struct recall *a, const char *question)
{
    size_t i = 0;
    while (i < a->count && strcmp(a->list[i].question, question) != 0)
        i++;
    return i;
}

static size_t least_used(const struct recall *a)
{
    size_t least = 0;
    for (size_t i = 1; i < a->count; i++)
        if (a->list[i].used < a->list[least].used)
            least = i;
    return least;
}

void recall_keep(struct recall *a, const char *question, const char *type, const void *data,
                 size_t len)
{
    pthread_mutex_lock(&a->lock);
    size_t at = find(a, question);
    if (at < a->count)
        drop(a, at);
    if (len <= a->bytes_max / SHARE) {
        while (a->count && (a->count == COUNT_MAX || a->bytes + len > a->bytes_max))
            drop(a, least_used(a));
        uint64_t now = clock_now();
        a->list[a->count++] = (struct answer){.question = memory_strdup(question),
                                              .type = type,
                                              .data = memory_dup(data, len),
                                              .len = len,
                                              .time = now,
                                              .used = now};
        a->bytes += len;
    }
    pthread_mutex_unlock(&a->lock);
}

const char *recall_find(struct recall *a, const char *question, struct text *out, uint64_t *age)
{
    const char *type = NULL;
    pthread_mutex_lock(&a->lock);
    size_t at = find(a, question);
    if (at < a->count) {
        struct answer *found = &a->list[at];
        type = found->type;
        text_add_len(out, found->data, found->len);
        found->used = clock_now();
        *age = found->used - found->time;
    }
    pthread_mutex_unlock(&a->lock);
    return type;
}

void recall_forget(struct recall *a)
{
    pthread_mutex_lock(&a->lock);
    while (a->count)
        drop(a, a->count - 1);
    pthread_mutex_unlock(&a->lock);
}
