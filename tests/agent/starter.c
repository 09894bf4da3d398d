/* Preloaded beside the agent: starts a working thread in its constructor, before or after the
 * agent's own. */
#include <pthread.h>

#include "../targets/work.h"

KEPT uint64_t early_work(uint64_t units)
{
    return work(1, units);
}

static void *early(void *unused)
{
    (void)unused;
    early_work(400000);
    return NULL;
}

__attribute__((constructor)) static void start(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, early, NULL) == 0)
        pthread_detach(thread);
}
