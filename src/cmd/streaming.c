/* Recording for a job of a server; see streaming.h. */
#include "cmd/streaming.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "cmd/remote.h"
#include "base/folders.h"

extern char **environ;

static int check_job(const struct streaming_options *o, bool quiet, struct error *err)
{
    struct remote *r;
    int rc = remote_open(o->to, &r, err);
    if (rc)
        return rc;
    rc = remote_check_job(r, (uint32_t)o->job, "what is recorded", quiet, err);
    remote_free(r);
    return rc;
}

/* A folder of its own, so that the recording can be named after the command. */
static char *temporary(const char *command, struct error *err)
{
    const char *slash = strrchr(command, '/');
    struct text path = TEXT_INIT;
    if (temporary_folder("run", &path, err)) {
        text_release(&path);
        return NULL;
    }
    text_format(&path, "/%.100s.sonde", slash && slash[1] ? slash + 1 : command);
    return text_take(&path);
}

static void remove_temporary(char *path)
{
    unlink(path);
    *strrchr(path, '/') = 0;
    rmdir(path);
    free(path);
}

static int start_pusher(struct streaming *s, const struct streaming_options *o, const char *output,
                        struct error *err)
{
    char job[16];
    snprintf(job, sizeof job, "%u", (unsigned)o->job);
    const char *words[] = {"sonde",    "push", "--follow", "--quiet", "--job", job,
                           "--server", o->to,  "--",       NULL,      NULL,    NULL};
    words[8] = o->keep ? "--keep" : "--";
    words[9] = o->keep ? "--" : output;
    words[10] = o->keep ? output : NULL;
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    int code = posix_spawn(&s->pid, "/proc/self/exe", &files, NULL, (char **)words, environ);
    posix_spawn_file_actions_destroy(&files);
    errno = code;
    if (code)
        s->pid = 0;
    return code ? error_errno(err, FAULT_SYSTEM, "cannot start the process that pushes") : 0;
}

int streaming_start(struct streaming *s, const struct streaming_options *o, const char *command,
                    const char *output, bool quiet, struct error *err)
{
    *s = (struct streaming){0};
    if (!o->to && !o->job)
        return 0;
    if (!o->to || !o->job)
        return error_set(err, FAULT_USAGE, "--to URL and --job N go together");
    int rc = check_job(o, quiet, err);
    if (!rc && !output && !(s->output = temporary(command, err)))
        rc = err->fault;
    s->path = output ? output : s->output;
    return rc ? rc : start_pusher(s, o, s->path, err);
}

bool streaming_finish(struct streaming *s)
{
    int status = 0;
    if (s->pid) {
        /* What there is now is all there will be; of a program that never started, nothing. */
        kill(s->pid, access(s->path, F_OK) ? SIGKILL : SIGTERM);
        while (waitpid(s->pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    if (s->output)
        remove_temporary(s->output);
    *s = (struct streaming){0};
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

unsigned streaming_waiting(const struct streaming_options *o, struct error *why)
{
    struct remote_pushed left = {0};
    struct remote *r;
    if (remote_open(o->to, &r, why))
        return 0;
    remote_flush(r, &left, why);
    remote_free(r);
    return left.waiting;
}
