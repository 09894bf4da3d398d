/*
 * sandbox MODE: a filter that kills for all but a few system calls, put in place by a forked child
 * (`fork`), before fork and thread (`before`), or before running another program (`exec`).
 */
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../targets/filter.h"

static struct sock_filter few[] = {
    FILTER_BEGIN, ALLOW(write), ALLOW(exit_group), ALLOW(rt_sigreturn), DENY_OTHERS,
};

/* Everything that a program needs to start, and nothing that the agent needs to. */
static struct sock_filter most[] = {
    FILTER_BEGIN,       DENY(socket),           DENY(memfd_create), DENY(timer_create),
    DENY(timer_delete), DENY(process_vm_readv), ALLOW_OTHERS,
};

static void enter_by_syscall(struct sock_fprog program)
{
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
    must(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0, "seccomp");
}

KEPT uint64_t busy(uint64_t units)
{
    return work(1, units);
}

static void *worker(void *unused)
{
    (void)unused;
    busy(50000);
    return NULL;
}

static int reap(pid_t pid)
{
    int status = -1;
    waitpid(pid, &status, 0);
    return status;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "fork";
    if (!strcmp(mode, "fork")) {
        pid_t pid = fork();
        if (pid == 0) {
            enter_by_syscall(FILTER(few));
            busy(200000);
            _exit(7);
        }
        printf("%d\n", reap(pid));
    } else if (!strcmp(mode, "before")) {
        pthread_t thread;
        void *volatile early = malloc(10);
        filter_enter(FILTER(most));
        pid_t pid = fork();
        if (pid == 0) {
            void *volatile block = malloc(1000);
            busy(50000);
            free(block);
            _exit(7);
        }
        printf("%d\n", reap(pid));
        pthread_create(&thread, NULL, worker, NULL);
        pthread_join(thread, NULL);
        free(early);
    } else if (!strcmp(mode, "exec")) {
        enter_by_syscall(FILTER(most));
        execl("/proc/self/exe", "sandbox", "inside", NULL);
        must(0, "exec");
    }
    printf("%016llx\n", (unsigned long long)busy(50000));
    return 0;
}
