/*
 * T19. both: a profiler's clock and a signal of the program's own end a wait at the same moment.
 * The wait must fail with EINTR, or be made again, as it would for the program's signal alone.
 *
 * A child waits; it is stopped, both signals are sent, and it goes on, so that both are there when
 * the kernel looks. Where something handles SIGRTMAX, that is the profiler, and it is sent a signal
 * such as its timers send. A wait that goes on is ended by SIGUSR1.
 */
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

#define COOKIE 0x50deffff00001f00ull /* of a thread that is past */
#define WRITTEN 200000

enum moment { TOGETHER, TO_THREAD, WITHIN, CLOCK_ONLY, MOMENTS };

static const char *const moments[] = {"together", "to the thread", "within the handler", "alone"};

static struct {
    volatile int handled, ended;
} * shared;

static const struct timespec long_enough = {.tv_sec = 30};
static sigset_t before; /* the mask that the program was started with */
static bool clocked;
static enum moment moment;

static void clock_signal(pid_t to)
{
    siginfo_t info = {.si_signo = SIGRTMAX, .si_code = SI_TIMER};
    info.si_value.sival_ptr = (void *)COOKIE;
    if (clocked)
        must(syscall(SYS_rt_tgsigqueueinfo, to, to, SIGRTMAX, &info) == 0, "rt_tgsigqueueinfo");
}

/* With the clock's signal blocked until the handler returns, as a handler may well do. */
static void on_alarm(int number)
{
    uint64_t clock = 1ull << (SIGRTMAX - 1);
    (void)number;
    if (moment == WITHIN) {
        syscall(SYS_rt_sigprocmask, SIG_BLOCK, &clock, NULL, 8);
        clock_signal(getpid());
    }
    shared->handled++;
}

static void on_end(int number)
{
    (void)number;
    shared->ended = 1;
}

static int by_poll(void)
{
    return poll(NULL, 0, 30000);
}

static int by_ppoll(void)
{
    return ppoll(NULL, 0, &long_enough, &before);
}

static int by_select(void)
{
    struct timeval time = {.tv_sec = 30};
    return select(0, NULL, NULL, NULL, &time);
}

static int by_pselect(void)
{
    return pselect(0, NULL, NULL, NULL, &long_enough, &before);
}

static int by_epoll_wait(void)
{
    struct epoll_event event;
    return epoll_wait(epoll_create1(0), &event, 1, 30000);
}

static int by_epoll_pwait(void)
{
    struct epoll_event event;
    return epoll_pwait(epoll_create1(0), &event, 1, 30000, &before);
}

static int by_nanosleep(void)
{
    return nanosleep(&long_enough, NULL);
}

static int by_clock_nanosleep(void)
{
    errno = clock_nanosleep(CLOCK_MONOTONIC, 0, &long_enough, NULL);
    return errno ? -1 : 0;
}

static int by_sigsuspend(void)
{
    return sigsuspend(&before);
}

static int by_sigtimedwait(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return sigtimedwait(&set, NULL, &long_enough);
}

static int by_semop(void)
{
    int id = semget(IPC_PRIVATE, 1, 0600);
    struct sembuf down = {.sem_op = -1};
    int result = semop(id, &down, 1), error = errno;
    semctl(id, 0, IPC_RMID);
    errno = error;
    return result;
}

static int by_msgrcv(void)
{
    struct {
        long type;
        char text[8];
    } message;
    int id = msgget(IPC_PRIVATE, 0600);
    int result = (int)msgrcv(id, &message, sizeof message.text, 0, 0), error = errno;
    msgctl(id, IPC_RMID, NULL);
    errno = error;
    return result;
}

static sem_t semaphore;

static int by_sem_wait(void)
{
    return sem_wait(&semaphore);
}

static int by_sem_timedwait(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 30;
    return sem_timedwait(&semaphore, &until);
}

static int by_read(void)
{
    int ends[2];
    char byte;
    must(pipe(ends) == 0, "pipe");
    return (int)read(ends[0], &byte, 1);
}

/* More than the pipe holds: what was written so far is the result. */
static int by_write(void)
{
    static char much[WRITTEN];
    int ends[2];
    must(pipe(ends) == 0, "pipe");
    ssize_t written = write(ends[1], much, sizeof much);
    errno = EINTR;
    return written > 0 && written < WRITTEN ? -1 : 0;
}

static int receive(const struct timeval *patience)
{
    int ends[2];
    char byte;
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, patience, sizeof *patience);
    return (int)recv(ends[0], &byte, 1, 0);
}

static int by_recv(void)
{
    return receive(&(struct timeval){0});
}

static int by_recv_timeout(void)
{
    return receive(&(struct timeval){.tv_sec = 30});
}

static int by_waitpid(void)
{
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    int result = waitpid(child, NULL, 0), error = errno;
    kill(child, SIGKILL);
    errno = error;
    return result;
}

static const struct wait {
    const char *name;
    int (*wait)(void);
    long number;
    bool masked; /* the signals are blocked but while it waits */
} waits[] = {{"poll", by_poll, SYS_poll, false},
             {"ppoll", by_ppoll, SYS_ppoll, true},
             {"select", by_select, SYS_pselect6, false},
             {"pselect", by_pselect, SYS_pselect6, true},
             {"epoll_wait", by_epoll_wait, SYS_epoll_wait, false},
             {"epoll_pwait", by_epoll_pwait, SYS_epoll_pwait, true},
             {"nanosleep", by_nanosleep, SYS_clock_nanosleep, false},
             {"clock_nanosleep", by_clock_nanosleep, SYS_clock_nanosleep, false},
             {"pause", pause, SYS_pause, false},
             {"sigsuspend", by_sigsuspend, SYS_rt_sigsuspend, true},
             {"sigtimedwait", by_sigtimedwait, SYS_rt_sigtimedwait, false},
             {"semop", by_semop, SYS_semtimedop, false},
             {"msgrcv", by_msgrcv, SYS_msgrcv, false},
             {"sem_wait", by_sem_wait, SYS_futex, false},
             {"sem_timedwait", by_sem_timedwait, SYS_futex, false},
             {"read", by_read, SYS_read, false},
             {"write", by_write, SYS_write, false},
             {"recv", by_recv, SYS_recvfrom, false},
             {"recv with a timeout", by_recv_timeout, SYS_recvfrom, false},
             {"waitpid", by_waitpid, SYS_wait4, false}};

static void child_wait(const struct wait *w, int flags)
{
    struct sigaction alarm = {.sa_handler = on_alarm, .sa_flags = flags};
    struct sigaction end = {.sa_handler = on_end};
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGALRM);
    sigaddset(&both, SIGUSR1);
    must(sigaction(SIGALRM, &alarm, NULL) == 0 && sigaction(SIGUSR1, &end, NULL) == 0, "sigaction");
    if (w->masked)
        sigprocmask(SIG_BLOCK, &both, NULL);
    int result = w->wait();
    _exit(result < 0 && errno == EINTR ? 0 : 1);
}

/* A file of /proc; an ended process has none that says anything. */
static void look(pid_t pid, const char *file, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    FILE *f = fopen(path, "r");
    size_t got = f ? fread(text, 1, size - 1, f) : 0;
    text[got] = 0;
    if (f)
        fclose(f);
}

/* Whether the process sleeps in this call, with nothing pending that is not blocked. */
static bool waits_in(pid_t pid, long number)
{
    char call[256], status[4096];
    look(pid, "status", status, sizeof status);
    const char *pending = strstr(status, "SigPnd:\t");
    look(pid, "syscall", call, sizeof call);
    char *end;
    return strstr(status, "State:\tS") && pending && !strtoull(pending + 8, NULL, 16) &&
           strtol(call, &end, 10) == number && *end == ' ';
}

static bool has_ended(pid_t pid)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

static void until_waiting(pid_t pid, long number, int handled)
{
    while (!has_ended(pid) && !(shared->handled >= handled && waits_in(pid, number)))
        usleep(200);
}

static void send_both(pid_t pid)
{
    int status;
    if (moment == CLOCK_ONLY) {
        clock_signal(pid);
        return;
    }
    kill(pid, SIGSTOP);
    must(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status), "stop");
    if (moment != WITHIN)
        clock_signal(pid);
    if (moment == TO_THREAD)
        syscall(SYS_tgkill, pid, pid, SIGALRM);
    else
        kill(pid, SIGALRM);
    kill(pid, SIGCONT);
}

static void try(const struct wait *w, int flags)
{
    int status;
    shared->handled = shared->ended = 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        child_wait(w, flags);
    until_waiting(pid, w->number, 0);
    send_both(pid);
    until_waiting(pid, w->number, moment != CLOCK_ONLY);
    if (!has_ended(pid))
        kill(pid, SIGUSR1);
    must(waitpid(pid, &status, 0) == pid && WIFEXITED(status), "waitpid");
    printf("%s, %s%s: %s, %d handled, status %d\n", w->name, moments[moment],
           flags & SA_RESTART ? ", restarting" : "", shared->ended ? "went on" : "was ended",
           shared->handled, WEXITSTATUS(status));
}

/* What was set is what the program is told of, whoever calls it. */
static void told(void)
{
    struct sigaction once = {.sa_handler = on_end, .sa_flags = SA_RESETHAND}, now;
    must(sigaction(SIGUSR2, &once, NULL) == 0 && sigaction(SIGUSR2, NULL, &now) == 0, "sigaction");
    printf("%s\n", now.sa_handler == on_end ? "as set" : "another");
    raise(SIGUSR2);
    printf("%s once\n", signal(SIGUSR2, on_alarm) == SIG_DFL && shared->ended ? "called" : "not");
    printf("%s\n", signal(SIGUSR2, SIG_IGN) == on_alarm ? "as set" : "another");
    printf("%s\n", signal(SIGUSR2, SIG_DFL) == SIG_IGN ? "as set" : "another");
}

int main(void)
{
    struct sigaction highest;
    must(syscall(SYS_rt_sigaction, SIGRTMAX, NULL, &highest, 8) == 0, "rt_sigaction");
    clocked = highest.sa_handler != SIG_DFL;
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(shared != MAP_FAILED && sem_init(&semaphore, 0, 0) == 0, "mmap");
    sigprocmask(SIG_SETMASK, NULL, &before);
    told();
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
        for (moment = 0; moment < MOMENTS; moment++) {
            try(&waits[i], 0);
            try(&waits[i], SA_RESTART);
        }
    return 0;
}
