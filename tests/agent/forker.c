/* forker: a thread other than the first forks; the child works in a thread's stack, starts a
 * thread of its own, and the parent's first thread ends before the others. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../targets/work.h"

KEPT uint64_t in_child(uint64_t units)
{
    return work(1, units);
}

KEPT uint64_t in_grandthread(uint64_t units)
{
    return work(2, units);
}

static void *grandthread(void *unused)
{
    (void)unused;
    in_grandthread(200000);
    return NULL;
}

static void *forking(void *unused)
{
    pthread_t thread;
    (void)unused;
    pid_t pid = fork();
    if (pid == 0) {
        in_child(200000);
        pthread_create(&thread, NULL, grandthread, NULL);
        pthread_join(thread, NULL);
        _exit(3);
    }
    int status;
    waitpid(pid, &status, 0);
    printf("%d\n", status);
    work(3, 100000);
    exit(0);
}

int main(void)
{
    pthread_t thread;
    must(pthread_create(&thread, NULL, forking, NULL) == 0, "pthread_create");
    pthread_exit(NULL);
}
