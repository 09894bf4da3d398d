/* Which job an application's profiles went to last; see applications.h. */
#include "serve/applications.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"

#define COUNT_MAX 8192 /* there are fewer jobs; past that, all are forgotten */

struct applications {
    pthread_mutex_t lock;
    struct names names;
    uint32_t job[COUNT_MAX]; /* by index of `names` */
};

struct applications *applications_new(void)
{
    struct applications *a = memory_alloc(sizeof *a);
    pthread_mutex_init(&a->lock, NULL);
    return a;
}

void applications_free(struct applications *a)
{
    if (!a)
        return;
    names_release(&a->names);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

uint32_t applications_find(struct applications *a, const char *name)
{
    pthread_mutex_lock(&a->lock);
    uint32_t at = names_find(&a->names, name);
    uint32_t job = at == NAMES_NONE ? 0 : a->job[at];
    pthread_mutex_unlock(&a->lock);
    return job;
}

void applications_note(struct applications *a, const char *name, uint32_t job)
{
    pthread_mutex_lock(&a->lock);
    if (a->names.len == COUNT_MAX)
        names_release(&a->names);
    a->job[names_add(&a->names, name)] = job;
    pthread_mutex_unlock(&a->lock);
}
