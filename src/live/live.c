/* Starting and ending the live process, from the collector's side; see live.h. */
#include "live/live.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "live/live_internal.h"

#define PRIORITY 5
#define PATIENCE 8000000000ull /* ns beyond what it lingers */

/* What the terminal and the shell say is for the collector; its pipe tells us the rest. Output of
 * the command is not ours to hold open. */
static void settle_in(void)
{
    static const int not_ours[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP};
    for (size_t i = 0; i < sizeof not_ours / sizeof *not_ours; i++)
        signal(not_ours[i], SIG_IGN);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        close(null);
    }
    setpriority(PRIO_PROCESS, 0, PRIORITY);
}

/* "ok ADDRESS" or "error SENTENCE", until the other side closes. */
static int hear(int fd, struct text *address, struct error *err)
{
    char said[1024];
    ssize_t n = io_read(fd, said, sizeof said - 1);
    said[n > 0 ? n : 0] = 0;
    if (text_starts(said, "ok ")) {
        text_add(address, said + 3);
        return 0;
    }
    return error_set(err, FAULT_SYSTEM, "%s",
                     text_starts(said, "error ") ? said + 6 : "the live page could not be started");
}

int live_start(struct live_options *o, struct live_process *p, struct error *err)
{
    int down[2] = {-1, -1}, up[2] = {-1, -1};
    struct live_report nothing;
    *p = (struct live_process){.tell = -1};
    text_init(&p->address);
    o->report =
        mmap(NULL, sizeof *o->report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (o->report == MAP_FAILED)
        return error_errno(err, FAULT_SYSTEM, "no memory for the live page");
    if (pipe2(down, O_CLOEXEC) < 0 || pipe2(up, O_CLOEXEC) < 0)
        return error_errno(err, FAULT_SYSTEM, "cannot make a pipe");
    fflush(NULL);
    p->pid = fork();
    if (p->pid == 0) {
        close(down[1]);
        close(up[0]);
        settle_in();
        live_main(o, down[0], up[1]);
        _exit(0);
    }
    close(down[0]);
    close(up[1]);
    int rc = p->pid < 0 ? error_errno(err, FAULT_SYSTEM, "cannot start the live page's process")
                        : hear(up[0], &p->address, err);
    close(up[0]);
    p->tell = down[1];
    if (rc)
        live_end(p, o, &nothing);
    return rc;
}

void live_begun(struct live_process *p)
{
    if (p->tell >= 0 && write(p->tell, "b", 1) < 0)
        return; /* it has died: the recording goes on */
}

void live_end(struct live_process *p, const struct live_options *o, struct live_report *report)
{
    uint64_t until = clock_now() + o->linger + PATIENCE;
    if (p->tell >= 0)
        close(p->tell);
    p->tell = -1;
    while (p->pid > 0 && waitpid(p->pid, NULL, WNOHANG) == 0) {
        if (clock_now() > until)
            kill(p->pid, SIGKILL);
        poll(NULL, 0, 10);
    }
    p->pid = 0;
    *report = *o->report;
    report->error[sizeof report->error - 1] = 0;
    munmap(o->report, sizeof *o->report);
    text_release(&p->address);
}
