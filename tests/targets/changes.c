/*
 * changes unload LIBRARY | sandbox: allocates all the time. At SIGUSR1 it unloads the library that
 * it has used so far, or puts itself under a filter that ends it for what no allocation needs and
 * starts a thread. At SIGTERM it ends with status 7.
 */
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "work.h"

#define DENY(name)                                                                                 \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1),                                        \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static struct sock_filter rules[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    DENY(gettid),
    DENY(membarrier),
    DENY(process_vm_readv),
    DENY(sched_yield),
    DENY(socket),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
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
    struct sock_fprog program = {.len = sizeof rules / sizeof *rules, .filter = rules};
    asked = 0;
    if (library) {
        other = malloc;
        must(dlclose(library) == 0, "dlclose");
        return;
    }
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
    must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0, "seccomp");
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
