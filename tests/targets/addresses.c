/*
 * T28. addresses: has worked for a while when it limits its address space to 500 MB, and uses it: a
 * mapping, a thread, its stack. Then it is executed anew: the limit is the same.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "work.h"

#define MB ((size_t)1 << 20)

static void *nothing(void *argument)
{
    return argument;
}

KEPT size_t sink_into(size_t depth)
{
    char block[4096];
    memset(block, (int)depth, sizeof block);
    return depth ? sink_into(depth - 1) + (size_t)block[depth % sizeof block] : 0;
}

static struct rlimit limit_now(void)
{
    struct rlimit now;
    must(getrlimit(RLIMIT_AS, &now) == 0, "getrlimit");
    return now;
}

static int can_map(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at != MAP_FAILED)
        munmap(at, size);
    return at != MAP_FAILED;
}

int main(int argc, char **argv)
{
    struct rlimit limit = {500 * MB, 600 * MB}, before;
    pthread_t thread;
    if (argc > 1) {
        printf("then: %zu MB\n", limit_now().rlim_cur / MB);
        return 0;
    }
    volatile uint64_t seed = work(1, 100000);
    must(prlimit(0, RLIMIT_AS, &limit, &before) == 0, "prlimit");
    printf("before: %s\n", before.rlim_cur == RLIM_INFINITY ? "none" : "some");
    printf("now: %zu and %zu MB\n", limit_now().rlim_cur / MB, limit_now().rlim_max / MB);
    printf("400 MB: %d, 2 GB: %d\n", can_map(400 * MB), can_map(2048 * MB));
    printf("thread: %d\n", pthread_create(&thread, NULL, nothing, NULL) == 0);
    pthread_join(thread, NULL);
    printf("stack: %d\n", sink_into(1000) != seed);
    execl("/nowhere", "nowhere", (char *)NULL);
    printf("still: %d\n", can_map(400 * MB));
    fflush(stdout);
    execl("/proc/self/exe", argv[0], "again", (char *)NULL);
    return 1;
}
