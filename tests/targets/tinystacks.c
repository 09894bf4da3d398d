/* T15. tinystacks [COUNT]: COUNT threads on the smallest stacks there are, all at the same time. */
#include <limits.h>
#include <pthread.h>
#include <unistd.h>

#include "work.h"

#define MOST 5000

static pthread_barrier_t all;

static void *run(void *context)
{
    pthread_barrier_wait(&all);
    uint64_t *result = context;
    for (int i = 0; i < 10; i++)
        *result = work(*result, 100);
    free(malloc(100));
    return NULL;
}

int main(int argc, char **argv)
{
    static pthread_t threads[MOST];
    static uint64_t results[MOST];
    uint64_t count = argument(argc, argv, 1, 500), sum = 0;
    must(count <= MOST, "too many threads");
    pthread_attr_t tiny;
    pthread_attr_init(&tiny);
    must(pthread_attr_setstacksize(&tiny, (size_t)PTHREAD_STACK_MIN) == 0, "stack size");
    pthread_barrier_init(&all, NULL, (unsigned)count);
    for (uint64_t i = 0; i < count; i++)
        must(pthread_create(&threads[i], &tiny, run, &results[i]) == 0, "pthread_create");
    for (uint64_t i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        sum += results[i];
    }
    printf("%016llx\n", (unsigned long long)sum);
    return 0;
}
