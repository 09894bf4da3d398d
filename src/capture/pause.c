/* See pause.h. */
#include "capture/pause.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"

#define PATIENCE 20000000ull /* ns that we wait for a thread which has no turn on a CPU */
#define LOOK 20000           /* ns between two looks */

/* Before all others, where that is permitted: a thread must not stay stopped because we have to
 * wait for a CPU ourselves. */
static void hurry(bool on)
{
    static int policy = -1; /* as we were started */
    static struct sched_param usual;
    const struct sched_param first = {.sched_priority = 1};
    if (policy < 0) {
        policy = sched_getscheduler(0);
        sched_getparam(0, &usual);
    }
    sched_setscheduler(0, on ? SCHED_FIFO : policy, on ? &first : &usual);
}

static void let_go(pid_t tid, int status)
{
    bool ours = WIFSTOPPED(status) && status >> 16;
    ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)(ours ? 0 : WSTOPSIG(status)));
}

void pause_settle(struct pauses *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->owed.len; i++) {
        int status;
        pid_t tid = p->owed.data[i], got = waitpid(tid, &status, __WALL | WNOHANG);
        if (got == tid && WIFSTOPPED(status))
            let_go(tid, status);
        else if (got == 0)
            p->owed.data[kept++] = tid;
    }
    p->owed.len = kept;
}

/* Until it stops. *since is when it was last seen not to. */
static bool wait_stop(pid_t tid, int *status, uint64_t *since)
{
    const struct timespec look = {.tv_nsec = LOOK};
    uint64_t begun = *since = clock_now();
    for (uint64_t now = begun; now - begun < PATIENCE; now = clock_now()) {
        pid_t got = waitpid(tid, status, __WALL | WNOHANG);
        if (got)
            return got == tid && WIFSTOPPED(*status);
        *since = now;
        nanosleep(&look, NULL);
    }
    *status = 0;
    return false;
}

bool pause_begin(struct pauses *p, struct borrowed *b, pid_t pid, pid_t tid, uint64_t *since)
{
    int status = 0;
    *b = (struct borrowed){.pid = pid, .tid = tid};
    p->missed++;
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
        return false;
    hurry(true);
    if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 || !wait_stop(tid, &status, since)) {
        if (!status) /* it runs on, and is let go once it comes to a stop */
            *vector_push(&p->owed) = tid;
    } else if (!(status >> 16) || ptrace(PTRACE_GETREGS, tid, NULL, &b->regs) < 0) {
        let_go(tid, status); /* a signal came first, and is handed on */
    } else {
        p->missed--;
        return true;
    }
    hurry(false);
    return false;
}

void pause_end(struct pauses *p, struct borrowed *b, uint64_t since)
{
    borrow_release(b);
    uint64_t took = clock_now() - since;
    hurry(false);
    p->count++;
    p->sum += took;
    p->over += took > PAUSE_LIMIT;
    p->longest = took > p->longest ? took : p->longest;
}

/* In the order of UNWIND_PERF_MASK. */
static void regs_fill(uint64_t *to, const struct user_regs_struct *r)
{
    const uint64_t in_order[PAUSE_REGS] = {r->rax, r->rbx, r->rcx, r->rdx, r->rsi, r->rdi,
                                           r->rbp, r->rsp, r->rip, r->r8,  r->r9,  r->r10,
                                           r->r11, r->r12, r->r13, r->r14, r->r15};
    for (size_t i = 0; i < PAUSE_REGS; i++)
        to[i] = in_order[i];
}

struct paused *pause_copy(const struct borrowed *b, const struct perf_record *like)
{
    if (!borrow_runs(b))
        return NULL;
    struct paused *made = memory_alloc(sizeof *made + PAUSE_STACK);
    regs_fill(made->regs, &b->regs);
    struct iovec to = {.iov_base = made->stack, .iov_len = PAUSE_STACK};
    struct iovec from = {.iov_base = (void *)(uintptr_t)b->regs.rsp, .iov_len = PAUSE_STACK};
    ssize_t got = process_vm_readv(b->pid, &to, 1, &from, 1, 0);
    for (size_t less = PAUSE_STACK / 2; got < 0 && less >= 1024; less /= 2) {
        to.iov_len = from.iov_len = less; /* the stack's end is near */
        got = process_vm_readv(b->pid, &to, 1, &from, 1, 0);
    }
    made->record = *like;
    made->record.ip = b->regs.rip;
    made->record.regs = made->regs;
    made->record.regs_len = PAUSE_REGS;
    made->record.stack = made->stack;
    made->record.stack_len = got > 0 ? (size_t)got : 0;
    made->record.in_kernel = false;
    made->record.chain = NULL; /* it is not in the kernel now */
    made->record.chain_len = 0;
    return made;
}

void pauses_release(struct pauses *p)
{
    pause_settle(p);
    vector_release(&p->owed);
}
