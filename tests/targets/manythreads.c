/* T19. manythreads [COUNT]: COUNT threads alive at the same time, each of which works a little. */
#include <pthread.h>

#include "work.h"

#define MOST 20000

static pthread_barrier_t all;

static void *run(void *context)
{
    pthread_barrier_wait(&all);
    uint64_t *result = context;
    *result = work(*result + 1, 50);
    pthread_barrier_wait(&all);
    return NULL;
}

int main(int argc, char **argv)
{
    static pthread_t threads[MOST];
    static uint64_t results[MOST];
    uint64_t count = argument(argc, argv, 1, 5000), sum = 0;
    must(count <= MOST, "too many threads");
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    pthread_barrier_init(&all, NULL, (unsigned)count);
    for (uint64_t i = 0; i < count; i++)
        must(pthread_create(&threads[i], &small, run, &results[i]) == 0, "pthread_create");
    for (uint64_t i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        sum += results[i];
    }
    printf("%llu threads %016llx\n", (unsigned long long)count, (unsigned long long)sum);
    return 0;
}
