/*
 * changes unload LIBRARY | sandbox: allocates all the time. At SIGUSR1 it unloads the library that
 * it has used so far, or puts itself under a filter that ends it for what no allocation needs and
 * starts a thread. At SIGTERM it ends with status 7.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "filter.h"

static struct sock_filter rules[] = {
    FILTER_BEGIN,      DENY(gettid), DENY(membarrier), DENY(process_vm_readv),
    DENY(sched_yield), DENY(socket), ALLOW_OTHERS,
};

static volatile sig_atomic_t asked, over;
static void *library;
static void *(*other)(size_t) = malloc;

static void ask(int number)
{
    asked = number == SIGUSR1;
    over = number == SIGTERM;
}

static void *allocate(void *argument)
{
    while (!over) {
        void *volatile block = other(100);
        free(block);
        usleep(2000);
        if (asked)
            break;
    }
    return argument;
}

static void change(void)
{
    static pthread_t thread;
    asked = 0;
    if (library) {
        other = malloc;
        must(dlclose(library) == 0, "dlclose");
        return;
    }
    filter_enter(FILTER(rules));
    must(pthread_create(&thread, NULL, allocate, NULL) == 0, "pthread_create");
}

int main(int argc, char **argv)
{
    struct sigaction act = {.sa_handler = ask, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    if (argc > 2) {
        library = dlopen(argv[2], RTLD_NOW);
        must(library != NULL, "dlopen");
        *(void **)&other = dlsym(library, "brought");
    }
    printf("ready\n");
    fflush(stdout);
    while (!over) {
        allocate(NULL);
        if (asked) {
            change();
            printf("changed\n");
            fflush(stdout);
        }
    }
    printf("done\n");
    return 7;
}
