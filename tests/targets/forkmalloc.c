/* T6. forkmalloc [COUNT]: forks while four threads allocate; each child allocates at once. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

#define THREADS 4

static atomic_bool stop;

static void *churn(void *context)
{
    void *blocks[64] = {0};
    uint64_t seed = (uint64_t)(uintptr_t)context + 1;
    while (!atomic_load(&stop)) {
        seed = work(seed, 1);
        size_t slot = seed >> 58;
        free(blocks[slot]);
        blocks[slot] = malloc(16 + (seed >> 40) % 4096);
    }
    for (size_t i = 0; i < 64; i++)
        free(blocks[i]);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    uint64_t count = argument(argc, argv, 1, 300), good = 0;
    for (uintptr_t i = 0; i < THREADS; i++)
        must(pthread_create(&threads[i], NULL, churn, (void *)i) == 0, "pthread_create");
    for (uint64_t i = 0; i < count; i++) {
        int status;
        pid_t pid = fork();
        if (pid == 0) {
            for (size_t n = 1; n < 200; n++)
                free(memset(malloc(n * 10), 1, n * 10));
            _exit(0);
        }
        must(pid > 0 && waitpid(pid, &status, 0) == pid, "fork");
        good += status == 0;
    }
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%llu\n", (unsigned long long)good);
    return 0;
}
