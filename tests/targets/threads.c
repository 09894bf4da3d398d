/*
 * threads [UNITS]: threads named heavy, medium and light do 60 %, 30 % and 10 % of the work, one
 * after another in turns short enough for all to live through the whole run.
 */
#include <pthread.h>

#include "work.h"

struct worker {
    pthread_t thread;
    const char *name;
    uint64_t units;
    uint64_t result;
};

static uint64_t turns;

KEPT uint64_t turn(uint64_t seed, uint64_t units)
{
    return work(seed, units);
}

static void *run(void *context)
{
    struct worker *w = context;
    pthread_setname_np(pthread_self(), w->name);
    w->result = 1;
    for (uint64_t i = 0; i < turns; i++)
        w->result = turn(w->result, w->units);
    return NULL;
}

int main(int argc, char **argv)
{
    struct worker workers[] = {{.name = "heavy", .units = 600},
                               {.name = "medium", .units = 300},
                               {.name = "light", .units = 100}};
    turns = argument(argc, argv, 1, 1000000) / 1000;
    for (int i = 0; i < 3; i++)
        must(pthread_create(&workers[i].thread, NULL, run, &workers[i]) == 0, "pthread_create");
    for (int i = 0; i < 3; i++) {
        pthread_join(workers[i].thread, NULL);
        printf("%s %016llx\n", workers[i].name, (unsigned long long)workers[i].result);
    }
    return 0;
}
