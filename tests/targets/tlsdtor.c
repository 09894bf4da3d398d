/* T20. tlsdtor [COUNT]: threads that end all the time, and allocate in their TLS destructors. */
#include <pthread.h>
#include <stdatomic.h>

#include "work.h"

#define AT_ONCE 8

static pthread_key_t key;
static atomic_ulong destroyed;

/* Sets the key again once, so that glibc makes a second round after other destructors have run. */
static void destroy(void *block)
{
    unsigned char round = *(unsigned char *)block;
    free(block);
    unsigned char *next = malloc(64);
    *next = (unsigned char)(round + 1);
    if (round == 0)
        pthread_setspecific(key, next);
    else
        free(next);
    atomic_fetch_add(&destroyed, 1);
}

static void *run(void *context)
{
    unsigned char *block = malloc(64);
    *block = 0;
    pthread_setspecific(key, block);
    *(uint64_t *)context = work(1, 20);
    return NULL;
}

int main(int argc, char **argv)
{
    uint64_t count = argument(argc, argv, 1, 2000), results[AT_ONCE];
    pthread_t threads[AT_ONCE];
    must(pthread_key_create(&key, destroy) == 0, "pthread_key_create");
    for (uint64_t done = 0; done < count; done += AT_ONCE) {
        for (int i = 0; i < AT_ONCE; i++)
            must(pthread_create(&threads[i], NULL, run, &results[i]) == 0, "pthread_create");
        for (int i = 0; i < AT_ONCE; i++)
            pthread_join(threads[i], NULL);
    }
    printf("%lu destroyed\n", atomic_load(&destroyed));
    return 0;
}
