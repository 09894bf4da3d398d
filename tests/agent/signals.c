/*
 * signals MODE: what a program may do with the highest signal, which the agent uses unless it is
 * taken. Each prints what it saw, and works before and after.
 */
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../targets/work.h"

extern char **environ;
static volatile sig_atomic_t seen;

static void count(int number)
{
    (void)number;
    seen = seen + 1;
}

KEPT uint64_t busy(uint64_t units)
{
    return work(1, units);
}

static void take_it(void)
{
    struct sigaction act = {.sa_handler = count}, old;
    sigaction(SIGRTMAX, &act, &old);
    printf("was default: %d\n", old.sa_handler == SIG_DFL);
    for (int i = 0; i < 5; i++) {
        raise(SIGRTMAX);
        busy(20000);
    }
    sigaction(SIGRTMAX, NULL, &old);
    printf("seen %d, still mine: %d\n", (int)seen, old.sa_handler == count);
}

static void wait_for_it(void)
{
    sigset_t set;
    int got = 0;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMAX);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    busy(50000);
    raise(SIGRTMAX);
    int result = sigwait(&set, &got);
    printf("%d: got the highest: %d\n", result, got == SIGRTMAX);
}

static void read_it(void)
{
    sigset_t set;
    struct signalfd_siginfo info;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMAX);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_CLOEXEC);
    busy(50000);
    raise(SIGRTMAX);
    printf("%zd\n", read(fd, &info, sizeof info));
}

static void mask_all(void)
{
    sigset_t set, old;
    sigfillset(&set);
    pthread_sigmask(SIG_BLOCK, &set, &old);
    printf("before: %d\n", sigismember(&old, SIGRTMAX));
    busy(100000);
    pthread_sigmask(SIG_SETMASK, NULL, &old);
    printf("blocked: %d\n", sigismember(&old, SIGRTMAX));
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    raise(SIGUSR1);
    struct timespec none = {0};
    sigset_t all;
    sigfillset(&all);
    printf("waited: %d\n", sigtimedwait(&all, NULL, &none));
    for (int i = 0; i < 2000; i++)
        if (sigtimedwait(&all, NULL, &none) > 0)
            printf("a signal that nobody sent\n");
    sigfillset(&set);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    sigprocmask(SIG_BLOCK, NULL, &old);
    printf("after: %d\n", sigismember(&old, SIGRTMAX));
}

/* What shells and daemons do in a child: every signal to its default. */
static void vfork_child(void)
{
    for (int round = 0; round < 20; round++) {
        pid_t pid = vfork();
        if (pid == 0) {
            for (int s = 1; s <= SIGRTMAX; s++)
                signal(s, SIG_DFL);
            execl("/bin/true", "true", NULL);
            _exit(1);
        }
        int status;
        waitpid(pid, &status, 0);
        if (status)
            printf("child: %d\n", status);
        busy(10000);
    }
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    printf("%016llx\n", (unsigned long long)busy(20000));
    fflush(stdout);
    if (!strcmp(mode, "take"))
        take_it();
    else if (!strcmp(mode, "wait"))
        wait_for_it();
    else if (!strcmp(mode, "read"))
        read_it();
    else if (!strcmp(mode, "mask"))
        mask_all();
    else if (!strcmp(mode, "vfork"))
        vfork_child();
    else if (!strcmp(mode, "die"))
        raise(SIGRTMAX);
    else if (!strcmp(mode, "ignore") && signal(SIGRTMAX, SIG_IGN) == SIG_DFL)
        raise(SIGRTMAX);
    printf("%016llx\n", (unsigned long long)busy(100000));
    return 0;
}
