/*
 * T6. forkfirst [CHILDREN]: in each child a second thread allocates before the first one does, then
 * both do at once, by many stacks. Counts the children that did not end well.
 */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

#define DEPTH 12
#define ROUNDS 6000

static pthread_barrier_t both;

static KEPT void *left(int depth, uint64_t way);
static KEPT void *right(int depth, uint64_t way);

static void *on(int depth, uint64_t way)
{
    return !depth ? malloc(24) : way & 1 ? left(depth - 1, way >> 1) : right(depth - 1, way >> 1);
}

static KEPT void *left(int depth, uint64_t way)
{
    void *volatile block = on(depth, way);
    return block;
}

static KEPT void *right(int depth, uint64_t way)
{
    void *volatile block = on(depth, way);
    return block;
}

static void allocate(uint64_t seed)
{
    for (uint64_t i = 0; i < ROUNDS; i++)
        free(left(DEPTH, seed = seed * 6364136223846793005u + 1442695040888963407u));
}

static void *nothing(void *argument)
{
    return argument;
}

static void *second(void *argument)
{
    void *volatile first = malloc(8);
    pthread_barrier_wait(&both);
    allocate(2);
    free(first);
    return argument;
}

static void child(void)
{
    pthread_t thread;
    /* On the stack that the parent's thread left: not even that takes memory. */
    must(pthread_create(&thread, NULL, second, NULL) == 0, "pthread_create");
    pthread_barrier_wait(&both);
    allocate(1);
    pthread_join(thread, NULL);
    _exit(0);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    uint64_t bad = 0, count = argument(argc, argv, 1, 5);
    void *volatile first = malloc(8);
    must(pthread_create(&thread, NULL, nothing, NULL) == 0, "pthread_create");
    pthread_join(thread, NULL);
    pthread_barrier_init(&both, NULL, 2);
    for (uint64_t i = 0; i < count; i++) {
        int status = -1;
        pid_t pid = fork();
        if (pid == 0)
            child();
        must(waitpid(pid, &status, 0) == pid, "waitpid");
        bad += status != 0;
    }
    free(first);
    printf("%d of %d ended badly\n", (int)bad, (int)count);
    return 0;
}
