/*
 * sandbox MODE: a filter that kills for all but a few system calls, put in place by a forked child
 * (`fork`), before fork and thread (`before`), or before running another program (`exec`).
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../targets/work.h"

#define ALLOW(name)                                                                                \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1),                                        \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define DENY(name)                                                                                 \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1),                                        \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static struct sock_filter few[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    ALLOW(write),
    ALLOW(exit_group),
    ALLOW(rt_sigreturn),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

/* Everything that a program needs to start, and nothing that the agent needs to. */
static struct sock_filter most[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    DENY(socket),
    DENY(memfd_create),
    DENY(timer_create),
    DENY(timer_delete),
    DENY(process_vm_readv),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static void filter(struct sock_filter *rules, size_t count, int by_syscall)
{
    struct sock_fprog program = {.len = (unsigned short)count, .filter = rules};
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
    if (by_syscall)
        must(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0, "seccomp");
    else
        must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "prctl");
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
            filter(few, sizeof few / sizeof *few, 1);
            busy(200000);
            _exit(7);
        }
        printf("%d\n", reap(pid));
    } else if (!strcmp(mode, "before")) {
        pthread_t thread;
        void *volatile early = malloc(10);
        filter(most, sizeof most / sizeof *most, 0);
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
        filter(most, sizeof most / sizeof *most, 1);
        execl("/proc/self/exe", "sandbox", "inside", NULL);
        must(0, "exec");
    }
    printf("%016llx\n", (unsigned long long)busy(50000));
    return 0;
}
