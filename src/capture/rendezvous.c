/* Where sessions can be found; see rendezvous.h. */
#include "capture/rendezvous.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

static void base_path(struct text *out)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (runtime && *runtime == '/')
        text_format(out, "%s/sonde", runtime);
    else
        text_format(out, "/tmp/sonde-%u", (unsigned)geteuid());
}

void rendezvous_path(pid_t session, const char *name, struct text *out)
{
    base_path(out);
    text_format(out, "/%d%s%s", session, name ? "/" : "", name ? name : "");
}

/* In /tmp anyone may have made it before us: then it is not ours. */
static int make_own(const char *path, struct error *err)
{
    struct stat st;
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return error_errno(err, FAULT_SYSTEM, "cannot make the folder %s", path);
    if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
        (st.st_mode & 077))
        return error_set(err, FAULT_SYSTEM, "%s is not a folder of this user alone", path);
    return 0;
}

static void remove_session(pid_t session)
{
    static const char *const names[] = {"control", "live", NULL};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct text path = TEXT_INIT;
        rendezvous_path(session, names[i], &path);
        if (names[i])
            unlink(path.data);
        else
            rmdir(path.data);
        text_release(&path);
    }
}

/* Calls for each session there is a folder for. */
static void each_session(void (*each)(pid_t session, bool runs, void *context), void *context)
{
    struct text path = TEXT_INIT;
    base_path(&path);
    DIR *dir = opendir(path.data);
    text_release(&path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char *end;
        long session = strtol(e->d_name, &end, 10);
        if (session > 0 && session <= INT32_MAX && !*end)
            each((pid_t)session, kill((pid_t)session, 0) == 0 || errno == EPERM, context);
    }
    if (dir)
        closedir(dir);
}

static void remove_if_dead(pid_t session, bool runs, void *context)
{
    (void)context;
    if (!runs)
        remove_session(session);
}

int rendezvous_open(struct error *err)
{
    struct text path = TEXT_INIT;
    base_path(&path);
    int rc = make_own(path.data, err);
    if (!rc) {
        each_session(remove_if_dead, NULL);
        remove_session(getpid()); /* of an earlier process with this number */
        text_clear(&path);
        rendezvous_path(getpid(), NULL, &path);
        rc = make_own(path.data, err);
    }
    text_release(&path);
    return rc;
}

int rendezvous_put(const char *name, const char *text, struct error *err)
{
    struct text path = TEXT_INIT;
    rendezvous_path(getpid(), name, &path);
    int fd = open(path.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    int rc = fd < 0 || io_write(fd, text, strlen(text)) < 0
                 ? error_errno(err, FAULT_SYSTEM, "cannot write %s", path.data)
                 : 0;
    if (fd >= 0)
        close(fd);
    text_release(&path);
    return rc;
}

void rendezvous_close(void)
{
    remove_session(getpid());
}

static void gather(pid_t session, bool runs, void *context)
{
    struct rendezvous_list *list = context;
    if (runs)
        *vector_push(list) = session;
}

void rendezvous_sessions(struct rendezvous_list *out)
{
    each_session(gather, out);
}
