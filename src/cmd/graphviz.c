/* See graphviz.h. */
#include "cmd/graphviz.h"

#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"

#define SVG_MAX ((off_t)1 << 30)

extern char **environ;

static int run_dot(int in, int out, struct error *err)
{
    char *const argv[] = {(char[]){"dot"}, (char[]){"-Tsvg"}, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status = 0;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    int code = posix_spawnp(&pid, "dot", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (code == ENOENT)
        return error_set(err, FAULT_MISSING,
                         "a graph of calls is drawn by Graphviz's dot, which is not installed "
                         "here; install graphviz, or use -o FILE.dot");
    errno = code;
    if (code)
        return error_errno(err, FAULT_SYSTEM, "cannot run dot");
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        return error_set(err, FAULT_SYSTEM, "dot failed to draw the graph; -o FILE.dot keeps it");
    return 0;
}

static int read_all(int fd, struct text *to, struct error *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || st.st_size > SVG_MAX)
        return error_set(err, FAULT_LIMIT, "the picture that dot drew is too large");
    text_reserve(to, (size_t)st.st_size + 1);
    ssize_t n = io_pread(fd, to->data, (size_t)st.st_size, 0);
    if (n != st.st_size)
        return error_errno(err, FAULT_SYSTEM, "cannot read what dot drew");
    to->len = (size_t)n;
    to->data[n] = 0;
    return 0;
}

int graphviz_svg(const struct text *dot, struct text *svg, struct error *err)
{
    int in = memfd_create("graph", MFD_CLOEXEC), out = memfd_create("picture", MFD_CLOEXEC);
    int rc = 0;
    if (in < 0 || out < 0 || io_write(in, dot->data, dot->len) < 0 || lseek(in, 0, SEEK_SET) < 0)
        rc = error_errno(err, FAULT_SYSTEM, "cannot hand the graph to dot");
    if (!rc)
        rc = run_dot(in, out, err);
    if (!rc)
        rc = read_all(out, svg, err);
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    return rc;
}
