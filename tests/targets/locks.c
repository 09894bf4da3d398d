/*
 * T29. locks WHAT: locks its memory (MCL_CURRENT, MCL_FUTURE or both), then maps and allocates more
 * and starts threads. Prints what it asked for and got, and on stderr how much is locked, in kB.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "work.h"

#define THREADS 70

static char much[3 << 20];

/* A line of /proc/self/status, in kB. */
static long status_of(const char *name)
{
    char line[256];
    long value = -1;
    FILE *f = fopen("/proc/self/status", "r");
    must(f != NULL, "status");
    while (fgets(line, sizeof line, f))
        if (strncmp(line, name, strlen(name)) == 0)
            value = strtol(line + strlen(name), NULL, 10);
    fclose(f);
    return value;
}

static void *allocate(void *argument)
{
    volatile uint64_t sink = work(1, 100);
    for (int i = 0; i < 100; i++)
        free(malloc(1000 + (size_t)i * (sink & 7)));
    return argument;
}

static void more(void)
{
    pthread_t thread[THREADS];
    pthread_attr_t small;
    must(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 65536) == 0, "attr");
    for (int i = 0; i < THREADS; i++)
        must(pthread_create(&thread[i], &small, allocate, NULL) == 0, "pthread_create");
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "both";
    int flags = strcmp(what, "current") == 0  ? MCL_CURRENT
                : strcmp(what, "future") == 0 ? MCL_FUTURE
                                              : MCL_CURRENT | MCL_FUTURE;
    unsigned char resident = 0;
    mallopt(M_ARENA_MAX, 1); /* the others' addresses would be locked, too */
    allocate(NULL);
    printf("mlockall %d\n", mlockall(flags));
    long before = status_of("VmLck:");
    char *mapped = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(mapped != MAP_FAILED && mincore(mapped + 500000 / 4096 * 4096, 1, &resident) == 0, "mmap");
    printf("mapped later: %s\n", resident & 1 ? "there" : "not yet");
    printf("mapped before: %s\n",
           mincore(much + (1 << 20) / 4096 * 4096 - (uintptr_t)much % 4096, 1, &resident) == 0 &&
                   resident & 1
               ? "there"
               : "not yet");
    more();
    fprintf(stderr, "locked %ld kB, then %ld kB, resident %ld kB\n", before, status_of("VmLck:"),
            status_of("VmHWM:"));
    return 0;
}
