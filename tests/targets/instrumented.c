/* Built with -finstrument-functions: 3 calls of outer by main, 12 of inner, 5 of each of two
 * threads' worker; fact(5) calls itself. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

static volatile int sink;

__attribute__((noinline)) static void inner(void)
{
    for (int i = 0; i < 500000; i++)
        sink = sink + i;
}

__attribute__((noinline)) static void outer(void)
{
    for (int i = 0; i < 4; i++)
        inner();
}

__attribute__((noinline)) static int fact(int n)
{
    return n < 2 ? 1 : n * fact(n - 1);
}

__attribute__((noinline)) static void worker(void)
{
    sink = sink + 1;
}

static void *thread(void *unused)
{
    for (int i = 0; i < 5; i++)
        worker();
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, thread, NULL);
    for (int i = 0; i < 3; i++)
        outer();
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%d\n", fact(5));
    return 0;
}
