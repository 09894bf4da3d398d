/* Starting the command; see launch.h. */
#include "capture/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"

enum step { STEP_FOLDER, STEP_CPUS, STEP_EXEC };

struct failure {
    enum step step;
    int code; /* errno */
};

static void fail(int fd, enum step step)
{
    struct failure f = {.step = step, .code = errno};
    if (io_write(fd, &f, sizeof f) < 0)
        _exit(127);
    _exit(127);
}

/* "K=V" into the environment; the strings live as long as the process. */
static void set_environment(const struct launch_options *o)
{
    for (size_t i = 0; i < o->env_count; i++)
        putenv((char *)o->env[i]);
    for (size_t i = 0; o->agent && o->agent[i]; i++)
        putenv((char *)o->agent[i]);
}

static void run_child(const struct launch_options *o, int go, int failed, const sigset_t *mask)
{
    char byte;
    if (io_read(go, &byte, 1) != 1)
        _exit(127); /* cancelled */
    if (o->cwd && chdir(o->cwd) < 0)
        fail(failed, STEP_FOLDER);
    if (o->cpus && sched_setaffinity(0, sizeof *o->cpus, o->cpus) < 0)
        fail(failed, STEP_CPUS);
    set_environment(o);
    int nowhere = o->silent ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;
    if (nowhere >= 0 && (dup2(nowhere, STDOUT_FILENO) < 0 || dup2(nowhere, STDERR_FILENO) < 0))
        fail(failed, STEP_EXEC);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(o->argv[0], o->argv);
    fail(failed, STEP_EXEC);
}

int launch_start(const struct launch_options *o, struct launch *l, struct error *err)
{
    int go[2], failed[2];
    if (pipe2(go, O_CLOEXEC) < 0)
        return error_errno(err, FAULT_SYSTEM, "cannot start the command");
    if (pipe2(failed, O_CLOEXEC) < 0) {
        close(go[0]);
        close(go[1]);
        return error_errno(err, FAULT_SYSTEM, "cannot start the command");
    }
    /* Signals wait while the child is between fork and exec: none may reach our handlers there. */
    sigset_t all, mask;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &mask);
    pid_t pid = fork();
    if (pid == 0) {
        close(go[1]);
        close(failed[0]);
        run_child(o, go[0], failed[1], &mask);
    }
    int code = errno;
    sigprocmask(SIG_SETMASK, &mask, NULL);
    close(go[0]);
    close(failed[1]);
    *l = (struct launch){.pid = pid, .go = go[1], .failed = failed[0]};
    if (pid < 0) {
        close(l->go);
        close(l->failed);
        if (code == EAGAIN)
            return error_set(err, FAULT_SYSTEM,
                             "cannot start the command: this user may have no more processes "
                             "('ulimit -u', or the limit of a control group)");
        errno = code;
        return error_errno(err, FAULT_SYSTEM, "cannot start the command");
    }
    return 0;
}

static int explain(const struct launch_options *o, const struct failure *f, struct error *err)
{
    errno = f->code;
    switch (f->step) {
    case STEP_FOLDER:
        return error_errno(err, FAULT_SYSTEM, "cannot run the command in %s", o->cwd);
    case STEP_CPUS:
        return error_errno(err, FAULT_SYSTEM, "cannot keep the command to the CPUs asked for");
    case STEP_EXEC:
        break;
    }
    return error_errno(err, FAULT_SYSTEM, "cannot run %s", o->argv[0]);
}

int launch_go(struct launch *l, const struct launch_options *o, int *exec_errno, struct error *err)
{
    struct failure f = {.step = STEP_EXEC};
    *exec_errno = 0;
    if (o->limits && limits_apply(o->limits, l->pid, err)) {
        launch_cancel(l);
        return err->fault;
    }
    if (io_write(l->go, "g", 1) < 0)
        f.code = errno;
    close(l->go);
    struct failure told;
    if (io_read(l->failed, &told, sizeof told) == sizeof told)
        f = told;
    close(l->failed);
    if (!f.code)
        return 0;
    waitpid(l->pid, NULL, 0);
    if (f.step == STEP_EXEC)
        *exec_errno = f.code;
    return explain(o, &f, err);
}

void launch_cancel(struct launch *l)
{
    close(l->go);
    close(l->failed);
    waitpid(l->pid, NULL, 0);
}

bool launch_find(const char *name, char *out, size_t size)
{
    const char *path = getenv("PATH");
    if (strchr(name, '/')) {
        snprintf(out, size, "%s", name);
        return access(out, X_OK) == 0;
    }
    for (path = path ? path : "/bin:/usr/bin"; *path;) {
        size_t len = strcspn(path, ":");
        snprintf(out, size, "%.*s/%s", (int)len, len ? path : ".", name);
        if (access(out, X_OK) == 0)
            return true;
        path += len + (path[len] == ':');
    }
    return false;
}

/* "python", "python3", "python3.11". */
static bool is_python_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return !strncmp(name, "python", 6) && !name[6 + strspn(name + 6, "0123456789.")];
}

bool launch_is_python(const char *name)
{
    char path[4096], line[256] = "";
    if (is_python_name(name))
        return true;
    if (!launch_find(name, path, sizeof path))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = io_read(fd, line, sizeof line - 1);
    close(fd);
    line[n > 0 ? n : 0] = 0;
    line[strcspn(line, "\n")] = 0;
    return line[0] == '#' && line[1] == '!' && strstr(line, "python");
}

int launch_parse_cpus(const char *text, cpu_set_t *set, struct error *err)
{
    cpu_set_t allowed;
    CPU_ZERO(set);
    if (sched_getaffinity(0, sizeof allowed, &allowed) < 0)
        return error_errno(err, FAULT_SYSTEM, "cannot tell which CPUs there are");
    for (const char *s = text; *s;) {
        char *end;
        unsigned long first = strtoul(s, &end, 10), last = first;
        if (end == s)
            return error_set(err, FAULT_USAGE, "'%s' is not a list of CPUs such as 0,2-3", text);
        if (*end == '-')
            last = strtoul(s = end + 1, &end, 10);
        if (end == s || (*end && *end != ',') || last < first || last >= CPU_SETSIZE)
            return error_set(err, FAULT_USAGE, "'%s' is not a list of CPUs such as 0,2-3", text);
        for (unsigned long cpu = first; cpu <= last; cpu++) {
            if (!CPU_ISSET(cpu, &allowed))
                return error_set(err, FAULT_USAGE,
                                 "there is no CPU %lu here, or this process may not use it", cpu);
            CPU_SET(cpu, set);
        }
        s = *end ? end + 1 : end;
    }
    if (!CPU_COUNT(set))
        return error_set(err, FAULT_USAGE, "the list of CPUs is empty");
    return 0;
}
