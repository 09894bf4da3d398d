#include "symbol/child.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "symbol/answer_wire.h"

#define MEMORY_MAX ((uint64_t)4 << 30)
#define CPU_SECONDS 60
#define FLUSH_AT ((size_t)64 << 10)

struct outbox {
    struct text data;
    int fd;
};

static _Noreturn void out_of_memory(size_t size)
{
    (void)size;
    _exit(3);
}

static void limit(int what, uint64_t value)
{
    struct rlimit now, want = {value, value};
    if (getrlimit(what, &now) == 0 && now.rlim_max != RLIM_INFINITY && now.rlim_max < value)
        want.rlim_cur = want.rlim_max = now.rlim_max;
    setrlimit(what, &want);
}

/* The parent's own mappings are inherited and count, so the limit goes on top of them. Sanitizers
 * reserve terabytes of address space; under them there is no such limit. */
static void limit_memory(uint64_t max)
{
#if !defined(__SANITIZE_ADDRESS__)
    uint64_t pages = 0;
    char *statm;
    if (io_slurp("/proc/self/statm", 4096, &statm, NULL, NULL) == 0) {
        pages = strtoull(statm, NULL, 10);
        free(statm);
    }
    limit(RLIMIT_AS, pages * (uint64_t)sysconf(_SC_PAGESIZE) + (max ? max : MEMORY_MAX));
#else
    (void)max;
#endif
}

static void default_signals(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGABRT, SIGPIPE, SIGXCPU,
                                  SIGTERM, SIGALRM, SIGPROF, SIGUSR1, SIGUSR2, SIGCHLD, SIGHUP};
    sigset_t none;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], SIG_DFL);
    signal(SIGINT, SIG_IGN); /* a Ctrl-C is the parent's to handle */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void confine(const struct symbol_options *options)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    default_signals();
    memory_set_handler(out_of_memory);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; null >= 0 && fd < 3; fd++)
        dup2(null, fd);
    limit(RLIMIT_CORE, 0);
    limit_memory(options->memory_max);
}

/* Seconds are counted from the process's start, and each task has its own. */
static void limit_time(unsigned seconds)
{
    struct rusage used;
    struct rlimit l;
    if (getrusage(RUSAGE_SELF, &used) != 0 || getrlimit(RLIMIT_CPU, &l) != 0)
        return;
    rlim_t end = (rlim_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                 (seconds ? seconds : CPU_SECONDS) + 1;
    if (l.rlim_max == RLIM_INFINITY || end < l.rlim_max)
        l.rlim_cur = end;
    setrlimit(RLIMIT_CPU, &l);
}

static void flush(struct outbox *out)
{
    if (io_write(out->fd, out->data.data, out->data.len) != 0)
        _exit(2);
    text_clear(&out->data);
}

static void send_answer(void *context, size_t module, size_t index,
                        const struct symbol_location *location, size_t n)
{
    (void)module;
    struct outbox *out = context;
    wire_put_answer(&out->data, index, location, n);
    if (out->data.len >= FLUSH_AT)
        flush(out);
}

_Noreturn void child_run(const struct symbol_request *request, const struct child_task *task,
                         size_t tasks, const struct symbol_options *options, int fd)
{
    if (fd < 3) /* in the way of the three that become /dev/null */
        fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    confine(options);
    struct outbox out = {.fd = fd};
    text_init(&out.data);
    struct symbol_sink sink = {send_answer, &out};
    for (size_t i = 0; i < tasks; i++) {
        struct symbol_options mine = *options;
        struct symbol_result result;
        mine.no_debug_info = mine.no_debug_info || task[i].level >= CHILD_NO_DEBUG;
        mine.no_demangle = mine.no_demangle || task[i].level >= CHILD_NO_DEMANGLE;
        limit_time(options->cpu_seconds);
        symbol_resolve(&request[task[i].module], &mine, &sink, &result, NULL);
        wire_put_result(&out.data, &result);
        flush(&out);
    }
    _exit(0);
}
