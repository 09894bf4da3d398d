/* The machine's state; see doctor.h. */
#include "capture/doctor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "base/text.h"
#include "capture/event.h"
#include "capture/launch.h"

void doctor_add(struct doctor *d, const char *subject, enum doctor_state state, const char *instead,
                const char *cure, const char *why, ...)
{
    struct text t = TEXT_INIT;
    va_list args;
    va_start(args, why);
    text_vformat(&t, why, args);
    va_end(args);
    *vector_push(&d->findings) =
        (struct doctor_finding){.subject = arena_strdup(&d->arena, subject),
                                .state = state,
                                .why = arena_strdup(&d->arena, t.data),
                                .instead = arena_strdup(&d->arena, instead),
                                .cure = arena_strdup(&d->arena, cure)};
    text_release(&t);
}

void doctor_release(struct doctor *d)
{
    vector_release(&d->findings);
    arena_release(&d->arena);
}

static long read_long(const char *path, long otherwise)
{
    char *text, *end;
    if (io_slurp(path, 4096, &text, NULL, NULL))
        return otherwise;
    long v = strtol(text, &end, 10);
    if (end == text)
        v = otherwise;
    free(text);
    return v;
}

/* 0, or why it cannot be opened. */
static int try_event(const char *name, bool user_only, int cpu)
{
    struct event e;
    struct perf_event_attr a;
    if (event_parse(name, &e, NULL))
        return ENOENT;
    event_count_attr(&e, &a);
    a.exclude_kernel = user_only;
    int fd = event_open(&a, cpu >= 0 ? -1 : 0, cpu, -1);
    int code = fd < 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    return code;
}

static void look_at_perf(struct doctor *d)
{
    long paranoid = read_long("/proc/sys/kernel/perf_event_paranoid", -100);
    int whole = try_event("task-clock", false, -1), user = try_event("task-clock", true, -1);
    if (!whole)
        doctor_add(d, "perf events", DOCTOR_WELL, "", "",
                   "open, with the kernel's side (perf_event_paranoid is %ld)", paranoid);
    else if (!user)
        doctor_add(d, "perf events", DOCTOR_LIMITED, "records and counts the programs' side only",
                   "sysctl kernel.perf_event_paranoid=1, or run as root",
                   "without the kernel's side: perf_event_paranoid is %ld", paranoid);
    else
        doctor_add(d, "perf events", DOCTOR_MISSING,
                   "samples by timers inside the programs, counts from the kernel's accounts",
                   user == ENOSYS ? "a kernel and a seccomp filter that allow perf_event_open"
                                  : "sysctl kernel.perf_event_paranoid=1, or CAP_PERFMON",
                   "refused: %s (perf_event_paranoid is %ld)", strerror(user), paranoid);
    int all = try_event("task-clock", false, 0);
    if (all)
        doctor_add(d, "whole CPUs", DOCTOR_MISSING, "counts commands and processes, not -a",
                   "sysctl kernel.perf_event_paranoid=0, or run as root", "refused: %s",
                   strerror(all));
    else
        doctor_add(d, "whole CPUs", DOCTOR_WELL, "", "", "sonde stat -a counts them");
    int pmu = try_event("cycles", user == 0 && whole, -1);
    if (pmu)
        doctor_add(d, "PMU", DOCTOR_MISSING,
                   "samples by the clock; sonde stat --simulate counts in a model of the CPU",
                   "a machine, or a virtual one with its PMU passed through", "%s",
                   event_refusal(&(struct event){.type = PERF_TYPE_HARDWARE}, pmu));
    else
        doctor_add(d, "PMU", DOCTOR_WELL, "", "", "cycles can be counted");
}

static void look_at_rights(struct doctor *d)
{
    long scope = read_long("/proc/sys/kernel/yama/ptrace_scope", 0);
    bool root = geteuid() == 0;
    if (root || scope == 0)
        doctor_add(d, "ptrace", DOCTOR_WELL, "", "", "%s",
                   root ? "root may look into every process" : "own processes may be looked into");
    else
        doctor_add(d, "ptrace", scope >= 3 ? DOCTOR_MISSING : DOCTOR_LIMITED,
                   "attach sees what perf events show; deep stacks are cut",
                   "sysctl kernel.yama.ptrace_scope=0, or run as root",
                   "kernel.yama.ptrace_scope is %ld: only what sonde starts itself", scope);
    long restrict_pointers = read_long("/proc/sys/kernel/kptr_restrict", 0);
    if (root ? restrict_pointers < 2 : restrict_pointers == 0)
        doctor_add(d, "kernel names", DOCTOR_WELL, "", "", "/proc/kallsyms shows addresses");
    else
        doctor_add(d, "kernel names", DOCTOR_LIMITED, "shows [kernel] in the place of functions",
                   "sysctl kernel.kptr_restrict=0", "kernel.kptr_restrict is %ld",
                   restrict_pointers);
}

static void look_at_bpf(struct doctor *d)
{
    long off = read_long("/proc/sys/kernel/unprivileged_bpf_disabled", 0);
    char zero[128] = {0};
    /* An empty request is refused as such where BPF may be used, and with EPERM where not. */
    long rc = syscall(SYS_bpf, 0, zero, sizeof zero);
    if (rc < 0 && (errno == EPERM || errno == ENOSYS))
        doctor_add(d, "BPF", DOCTOR_MISSING, "follows the tree event by event instead",
                   "run as root, or give sonde CAP_BPF",
                   "refused: %s (unprivileged_bpf_disabled is "
                   "%ld)",
                   strerror(errno), off);
    else
        doctor_add(d, "BPF", DOCTOR_WELL, "", "", "programs may be loaded");
    char *status;
    if (io_slurp("/proc/self/status", 65536, &status, NULL, NULL))
        return;
    const char *mode = strstr(status, "\nSeccomp:");
    long seccomp = mode ? strtol(mode + 9, NULL, 10) : 0;
    free(status);
    if (seccomp)
        doctor_add(d, "seccomp", DOCTOR_LIMITED, "tries each thing and takes the next best",
                   "a container with --security-opt seccomp=unconfined",
                   "this process is in a filter (mode %ld)", seccomp);
    else
        doctor_add(d, "seccomp", DOCTOR_WELL, "", "", "no filter");
}

static bool in_container(void)
{
    char *text;
    bool found = access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0;
    if (found || io_slurp("/proc/1/cgroup", 65536, &text, NULL, NULL))
        return found;
    found = strstr(text, "docker") || strstr(text, "kubepods") || strstr(text, "lxc");
    free(text);
    return found;
}

static void look_around(struct doctor *d)
{
    char path[4096];
    struct rlimit files;
    if (in_container())
        doctor_add(d, "container", DOCTOR_LIMITED, "sees what the container shows",
                   "--cap-add PERFMON, or --privileged", "this looks like a container");
    else
        doctor_add(d, "container", DOCTOR_WELL, "", "", "none");
    bool groups = access("/sys/fs/cgroup", W_OK) == 0 || access("/sys/fs/cgroup/memory", W_OK) == 0;
    if (groups)
        doctor_add(d, "control groups", DOCTOR_WELL, "", "", "limits hold for whole trees");
    else
        doctor_add(d, "control groups", DOCTOR_LIMITED,
                   "--memory-limit binds each process by itself; no --cpu-limit", "run as root",
                   "this user cannot make one");
    bool simulator = launch_find("valgrind", path, sizeof path);
    doctor_add(d, "valgrind", simulator ? DOCTOR_WELL : DOCTOR_MISSING,
               simulator ? "" : "no --simulate", simulator ? "" : "apt-get install valgrind", "%s",
               simulator ? path : "not installed: --simulate needs it");
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_max < 4096)
        doctor_add(d, "open files", DOCTOR_LIMITED, "fewer threads can be attached to",
                   "ulimit -Hn 65536", "at most %llu: attaching takes one a thread, event and CPU",
                   (unsigned long long)files.rlim_max);
    else
        doctor_add(d, "open files", DOCTOR_WELL, "", "", "enough for many threads");
}

void doctor_machine(struct doctor *d)
{
    look_at_perf(d);
    doctor_capabilities(d);
    look_at_rights(d);
    look_at_bpf(d);
    look_around(d);
}
