/* A thread of another process, borrowed for one call; see borrow.h. */
#include "capture/borrow.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"

#define WAIT (200 * 1000000ull) /* ns for a stop */
#define XSTATE_MAX 16384
#define RED_ZONE 128
#define FX_SOFTWARE 464 /* offset of the words that tell the kernel how large the state is */
#define MAGIC1 0x46505853u
#define MAGIC2 0x46505845u
#define UC_FLAGS 7 /* the state has an extended part; ss is in it and is meant */

#ifndef PTRACE_EVENT_STOP
#define PTRACE_EVENT_STOP 128
#endif

/* What a system call returns to the kernel's own way out while it waits for its restart. */
enum { RESTART_SYS = 512, RESTART_NOINTR = 513, RESTART_NOHAND = 514, RESTART_BLOCK = 516 };

static bool wait_stop(pid_t tid, int *status)
{
    uint64_t end = clock_now() + WAIT;
    do {
        pid_t got = waitpid(tid, status, __WALL | WNOHANG);
        if (got == tid)
            return WIFSTOPPED(*status);
        if (got < 0)
            return false;
        usleep(100);
    } while (clock_now() < end);
    return false;
}

bool borrow_stop(struct borrowed *b, pid_t pid, pid_t tid, struct error *err)
{
    int status;
    *b = (struct borrowed){.pid = pid, .tid = tid};
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0) {
        if (errno == EPERM)
            error_set(err, FAULT_SYSTEM,
                      "process %d may not be touched: it is another user's, is traced already, or "
                      "kernel.yama.ptrace_scope forbids it; try as root",
                      pid);
        return false;
    }
    if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 || !wait_stop(tid, &status))
        return false; /* it is let go when it stops, or when we end */
    if (status >> 16 != PTRACE_EVENT_STOP)
        b->signal = WSTOPSIG(status);
    if (ptrace(PTRACE_GETREGS, tid, NULL, &b->regs) == 0 && !b->signal &&
        WSTOPSIG(status) == SIGTRAP)
        return true;
    borrow_release(b);
    return false;
}

bool borrow_runs(const struct borrowed *b)
{
    return (int64_t)b->regs.orig_rax < 0;
}

/* A set of signals in /proc/PID/task/TID/status; all of them if it cannot be read. */
static uint64_t signals_of(const char *status, const char *name)
{
    const char *at = strstr(status, name);
    return at ? strtoull(at + strlen(name), NULL, 16) : UINT64_MAX;
}

static bool has_signal(const struct borrowed *b)
{
    char path[64], text[8192];
    snprintf(path, sizeof path, "/proc/%d/task/%d/status", b->pid, b->tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    uint64_t pending = signals_of(text, "\nSigPnd:") | signals_of(text, "\nShdPnd:");
    return n <= 0 || pending & ~signals_of(text, "\nSigBlk:");
}

/* Whether the kernel ended a wait because of our stop and nothing else: these fail with EINTR then,
 * where others are made again by the kernel itself. */
static bool is_cut_short(const struct borrowed *b)
{
    static const int waits[] = {SYS_epoll_wait, SYS_epoll_pwait, SYS_rt_sigtimedwait,
                                SYS_semop,      SYS_semtimedop,  SYS_recvfrom,
                                SYS_recvmsg,    SYS_accept,      SYS_accept4};
    if ((int64_t)b->regs.rax != -EINTR || b->signal)
        return false;
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
        if (b->regs.orig_rax == (uint64_t)waits[i])
            return !has_signal(b);
    return false;
}

bool borrow_waits(const struct borrowed *b)
{
    static const int waits[] = {
        SYS_poll,  SYS_ppoll,     SYS_select,          SYS_pselect6,       SYS_epoll_wait,
        SYS_pause, SYS_nanosleep, SYS_clock_nanosleep, SYS_epoll_pwait,    SYS_read,
        SYS_readv, SYS_recvfrom,  SYS_recvmsg,         SYS_accept,         SYS_accept4,
        SYS_wait4, SYS_waitid,    SYS_rt_sigsuspend,   SYS_rt_sigtimedwait};
    int64_t result = (int64_t)b->regs.rax;
    if (is_cut_short(b))
        return true;
    if (result != -RESTART_SYS && result != -RESTART_NOINTR && result != -RESTART_NOHAND &&
        result != -RESTART_BLOCK)
        return false;
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
        if (b->regs.orig_rax == (uint64_t)waits[i])
            return true;
    return false;
}

/* The registers as they are to be afterwards: a system call that was cut short is made again. */
static struct user_regs_struct afterwards(const struct borrowed *b)
{
    struct user_regs_struct r = b->regs;
    if (borrow_runs(b))
        return r;
    /* Not by restart_syscall: rt_sigreturn makes that fail with EINTR. A wait for a while (poll,
     * nanosleep) begins anew, so it may take longer by what was over. */
    r.rip -= 2;
    r.rax = b->regs.orig_rax;
    return r;
}

static void let_go(const struct borrowed *b)
{
    ptrace(PTRACE_DETACH, b->tid, NULL, (void *)(intptr_t)b->signal);
}

void borrow_release(struct borrowed *b)
{
    if (is_cut_short(b)) {
        struct user_regs_struct r = afterwards(b);
        r.orig_rax = (uint64_t)-1;
        ptrace(PTRACE_SETREGS, b->tid, NULL, &r);
    }
    let_go(b);
}

static void context_fill(ucontext_t *u, const struct user_regs_struct *r, uint64_t state,
                         uint64_t mask)
{
    greg_t *g = u->uc_mcontext.gregs;
    u->uc_flags = UC_FLAGS;
    g[REG_R8] = (greg_t)r->r8;
    g[REG_R9] = (greg_t)r->r9;
    g[REG_R10] = (greg_t)r->r10;
    g[REG_R11] = (greg_t)r->r11;
    g[REG_R12] = (greg_t)r->r12;
    g[REG_R13] = (greg_t)r->r13;
    g[REG_R14] = (greg_t)r->r14;
    g[REG_R15] = (greg_t)r->r15;
    g[REG_RDI] = (greg_t)r->rdi;
    g[REG_RSI] = (greg_t)r->rsi;
    g[REG_RBP] = (greg_t)r->rbp;
    g[REG_RBX] = (greg_t)r->rbx;
    g[REG_RDX] = (greg_t)r->rdx;
    g[REG_RAX] = (greg_t)r->rax;
    g[REG_RCX] = (greg_t)r->rcx;
    g[REG_RSP] = (greg_t)r->rsp;
    g[REG_RIP] = (greg_t)r->rip;
    g[REG_EFL] = (greg_t)r->eflags;
    g[REG_CSGSFS] = (greg_t)(r->cs | r->ss << 48);
    memcpy(&u->uc_mcontext.fpregs, &state, sizeof state);
    memcpy(&u->uc_sigmask, &mask, sizeof mask);
}

/* The processor's wide registers as the kernel lays them out in a signal frame. Bytes, or 0. */
static size_t state_take(pid_t tid, uint8_t *bytes)
{
    struct iovec part = {.iov_base = bytes, .iov_len = XSTATE_MAX - 8};
    if (ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &part) < 0 || part.iov_len < 576)
        return 0;
    uint32_t size = (uint32_t)part.iov_len, end = MAGIC2;
    uint64_t features;
    memcpy(&features, bytes + FX_SOFTWARE, sizeof features); /* ptrace puts XCR0 there */
    struct {
        uint32_t magic, extended;
        uint64_t features;
        uint32_t size, padding[7];
    } software = {MAGIC1, size + 4, features, size, {0}};
    memcpy(bytes + FX_SOFTWARE, &software, sizeof software);
    memcpy(bytes + size, &end, sizeof end);
    return size + sizeof end;
}

struct frame {
    uint64_t base, size; /* where it is to lie */
    uint64_t sp, text;
    uint8_t bytes[XSTATE_MAX + 8192];
};

/* From high to low: the text, the state (64-byte aligned), the kernel's frame, whose first word is
 * the return address of the call. */
static bool frame_make(const struct borrowed *b, const char *text, uint64_t restorer,
                       struct frame *f)
{
    static uint8_t state[XSTATE_MAX];
    size_t state_size = state_take(b->tid, state), len = strlen(text) + 1;
    uint64_t mask = 0;
    if (!state_size || len > 4096 || ptrace(PTRACE_GETSIGMASK, b->tid, sizeof mask, &mask) < 0)
        return false;
    f->text = (b->regs.rsp - RED_ZONE - len) & ~15ull;
    uint64_t state_at = (f->text - state_size) & ~63ull;
    f->sp = ((state_at - sizeof(ucontext_t) - sizeof(siginfo_t) - 8) & ~15ull) - 8;
    f->base = f->sp;
    f->size = f->text + len - f->base;
    if (f->size > sizeof f->bytes)
        return false;
    memset(f->bytes, 0, sizeof f->bytes);
    ucontext_t context = {0};
    struct user_regs_struct after = afterwards(b);
    context_fill(&context, &after, state_at, mask);
    memcpy(f->bytes, &restorer, sizeof restorer);
    memcpy(f->bytes + 8, &context, sizeof context);
    memcpy(f->bytes + (state_at - f->base), state, state_size);
    memcpy(f->bytes + (f->text - f->base), text, len);
    return true;
}

static bool memory_put(const struct borrowed *b, const struct frame *f)
{
    struct iovec from = {.iov_base = (void *)(uintptr_t)f->bytes, .iov_len = f->size};
    struct iovec to = {.iov_base = (void *)(uintptr_t)f->base, .iov_len = f->size};
    return process_vm_writev(b->pid, &from, 1, &to, 1, 0) == (ssize_t)f->size;
}

int borrow_call(struct borrowed *b, uint64_t function, const char *text, uint64_t second,
                uint64_t restorer, struct error *err)
{
    static struct frame f;
    struct user_regs_struct r = b->regs;
    bool made = frame_make(b, text, restorer, &f) && memory_put(b, &f);
    if (made) {
        r.rip = function;
        r.rdi = f.text;
        r.rsi = second;
        r.rsp = f.sp;
        r.rax = 0;
        r.orig_rax = (uint64_t)-1; /* nothing to be made again on the way out */
        made = ptrace(PTRACE_SETREGS, b->tid, NULL, &r) == 0;
    }
    if (made)
        let_go(b);
    else
        borrow_release(b);
    return made ? 0
                : error_set(err, FAULT_SYSTEM,
                            "thread %d of process %d has no room on its stack for a call", b->tid,
                            b->pid);
}
