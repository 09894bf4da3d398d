/*
 * The session: listens for processes with an agent, takes their segments over, and follows each
 * process by a pidfd until it is gone. A hello carries no authority: who sent it is what the
 * kernel says of the socket.
 */
#include "capture/agents.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/vector.h"
#include "capture/agents_segment.h"
#include "cpython/cpython.h"
#include "wire/session.h"

#define ENVIRONMENT_MAX 25
#define SEGMENT_SIZE_MAX (1ull << 34)
#define CALLERS_MAX 1024 /* connections that have not spoken yet */

/* One image of one process. */
struct member {
    struct agents_process process;
    int pidfd;
    bool gone; /* the process has ended */
    bool over; /* that was so before the latest look at what it had to say */
    void *base;
    size_t size;
    struct segment_view *view;
    void *heap;
    size_t heap_size;
    void *trace;
    size_t trace_size;
};

struct caller {
    int fd;
    pid_t pid;
};

struct agents {
    int listener, epoll;
    char *environment[ENVIRONMENT_MAX + 1];
    size_t variables;
    VECTOR(struct member *) members;
    VECTOR(struct caller) callers;
    struct map epochs; /* pid -> how many images it had, while it lives */
    struct heap_tree *tree;
    int tree_fd;
    uint64_t interval; /* that was asked for later, or 0 */
};

static void variable_add(struct agents *a, const char *name, const char *value)
{
    struct text t = TEXT_INIT;
    text_format(&t, "%s=%s", name, value);
    a->environment[a->variables++] = text_take(&t);
}

static void variable_add_number(struct agents *a, const char *name, uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
    variable_add(a, name, digits);
}

/* A file that agents open by way of our own descriptor. */
static void variable_add_file(struct agents *a, const char *name, int fd)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), fd);
    variable_add(a, name, path);
}

/* As the agent counts them: see agent/start.c. */
static uint64_t own_filters(void)
{
    char *status;
    if (io_slurp("/proc/self/status", 1 << 16, &status, NULL, NULL) != 0)
        return 0;
    const char *at = strstr(status, "\nSeccomp_filters:\t");
    at = at ? strchr(at, '\t') : strstr(status, "\nSeccomp:\t");
    at = at && *at == '\n' ? strchr(at, '\t') : at;
    uint64_t n = at ? strtoull(at + 1, NULL, 10) : 0;
    free(status);
    return n;
}

/* One page for all. */
static int tree_make(struct agents *a, struct error *err)
{
    a->tree_fd = memfd_create("sonde-tree", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (a->tree_fd < 0 || ftruncate(a->tree_fd, 4096) != 0)
        return error_errno(err, FAULT_SYSTEM, "Cannot make the page that agents share");
    fcntl(a->tree_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    a->tree = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, a->tree_fd, 0);
    if (a->tree == MAP_FAILED) {
        a->tree = NULL;
        return error_errno(err, FAULT_SYSTEM, "Cannot map the page that agents share");
    }
    a->tree->epoch = 1;
    a->tree->tick = clock_now();
    a->tree->magic = HEAP_MAGIC;
    return 0;
}

static int environment_make_heap(struct agents *a, const struct agents_options *o,
                                 struct error *err)
{
    int result = tree_make(a, err);
    if (result != 0)
        return result;
    variable_add_file(a, SESSION_HEAP_TREE, a->tree_fd);
    variable_add(a, SESSION_HEAP_MODE, o->heap == HEAP_SAMPLED ? "sampled" : "exact");
    if (o->heap_interval)
        variable_add_number(a, SESSION_HEAP_INTERVAL, o->heap_interval);
    if (o->heap_memory)
        variable_add_number(a, SESSION_HEAP_MEMORY, o->heap_memory);
    if (o->pymalloc)
        variable_add(a, SESSION_PYMALLOC, "1");
    return 0;
}

static void environment_make_trace(struct agents *a, const struct agents_trace *t)
{
    struct text what = TEXT_INIT;
    text_add(&what, t->calls ? "calls" : "spans");
    if (t->calls && !t->no_builtins)
        text_add(&what, ",builtins");
    if (t->lines)
        text_add(&what, ",lines");
    variable_add(a, SESSION_TRACE_WHAT, what.data);
    text_release(&what);
    variable_add(a, SESSION_TRACE_CLOCK, t->tsc ? "tsc" : "monotonic");
    if (t->depth)
        variable_add_number(a, SESSION_TRACE_DEPTH, t->depth);
    if (t->ring_words)
        variable_add_number(a, SESSION_TRACE_RING, t->ring_words);
    if (t->only)
        variable_add(a, SESSION_TRACE_ONLY, t->only);
    if (t->skip)
        variable_add(a, SESSION_TRACE_SKIP, t->skip);
    if (t->rss)
        variable_add(a, SESSION_LINES_RSS, "1");
    if (t->lines)
        variable_add(a, SESSION_LINES, t->lines);
}

static int environment_make(struct agents *a, const struct agents_options *o, const char *address,
                            struct error *err)
{
    if (strpbrk(o->library, " :"))
        return error_set(err, FAULT_USAGE,
                         "The agent cannot be preloaded from %s: the path has a space or a colon",
                         o->library);
    struct text preload = TEXT_INIT;
    text_add(&preload, o->library);
    if (o->preload && *o->preload) {
        text_add_char(&preload, ':');
        text_add(&preload, o->preload);
    }
    variable_add(a, "LD_PRELOAD", preload.data);
    text_release(&preload);
    variable_add(a, SESSION_ADDRESS, address);
    variable_add_number(a, SESSION_RATE, o->rate);
    variable_add_number(a, SESSION_RING, o->ring_bytes ? o->ring_bytes : SESSION_RING_DEFAULT);
    variable_add_number(a, SESSION_FILTERS, own_filters());
    if (o->python_only)
        variable_add(a, SESSION_ONLY, "python");
    if (o->single)
        variable_add(a, SESSION_SINGLE, "1");
    if (o->rows)
        variable_add(a, SESSION_ROWS, o->rows);
    if (o->pack > 0)
        variable_add_file(a, SESSION_PACK, o->pack);
    if (o->trace)
        environment_make_trace(a, o->trace);
    return o->heap == HEAP_OFF ? 0 : environment_make_heap(a, o, err);
}

/* An abstract name: it needs no folder that the target could lose sight of by chroot, and is gone
 * when we are. */
static int listen_anywhere(struct agents *a, char *address, size_t size, struct error *err)
{
    uint64_t random[2];
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return error_errno(err, FAULT_SYSTEM, "Cannot get random bytes for the session's name");
    snprintf(address, size, "@sonde-%d-%016llx%016llx", (int)getpid(),
             (unsigned long long)random[0], (unsigned long long)random[1]);
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    size_t len = strlen(address);
    memcpy(at.sun_path + 1, address + 1, len - 1);
    a->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (a->listener < 0 ||
        bind(a->listener, (struct sockaddr *)&at,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) != 0 ||
        listen(a->listener, SOMAXCONN) != 0)
        return error_errno(err, FAULT_SYSTEM, "Cannot open the session's socket for agents");
    return 0;
}

static int watch(struct agents *a, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    return epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &event);
}

int agents_new(const struct agents_options *options, struct agents **out, struct error *err)
{
    char address[108];
    struct agents *a = memory_alloc(sizeof *a);
    a->listener = a->tree_fd = -1;
    a->epoll = epoll_create1(EPOLL_CLOEXEC);
    int result = 0;
    if (a->epoll < 0)
        result = error_errno(err, FAULT_SYSTEM, "Cannot make an epoll descriptor for agents");
    if (result == 0)
        result = listen_anywhere(a, address, sizeof address, err);
    if (result == 0)
        result = environment_make(a, options, address, err);
    if (result == 0 && watch(a, a->listener) != 0)
        result = error_errno(err, FAULT_SYSTEM, "Cannot watch the session's socket");
    if (result != 0) {
        agents_free(a);
        return result;
    }
    *out = a;
    return 0;
}

static void member_free(struct member *m)
{
    segment_view_free(m->view);
    nesting_release(&m->process.nesting);
    if (m->base)
        munmap(m->base, m->size);
    if (m->heap)
        munmap(m->heap, m->heap_size);
    if (m->trace)
        munmap(m->trace, m->trace_size);
    if (m->pidfd >= 0)
        close(m->pidfd);
    free(m);
}

void agents_free(struct agents *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->members.len; i++)
        member_free(a->members.data[i]);
    for (size_t i = 0; i < a->callers.len; i++)
        close(a->callers.data[i].fd);
    vector_release(&a->members);
    vector_release(&a->callers);
    map_release(&a->epochs);
    for (size_t i = 0; i < a->variables; i++)
        free(a->environment[i]);
    if (a->tree)
        munmap(a->tree, 4096);
    if (a->tree_fd >= 0)
        close(a->tree_fd);
    if (a->listener >= 0)
        close(a->listener);
    if (a->epoll >= 0)
        close(a->epoll);
    free(a);
}

const char *const *agents_environment(const struct agents *a)
{
    return (const char *const *)a->environment;
}

int agents_fd(const struct agents *a)
{
    return a->epoll;
}

struct heap_tree *agents_tree(const struct agents *a)
{
    return a->tree;
}

size_t agents_processes(const struct agents *a)
{
    return a->members.len;
}

void agents_set_interval(struct agents *a, uint64_t interval)
{
    a->interval = interval;
    for (size_t i = 0; i < a->members.len; i++)
        segment_view_set_interval(a->members.data[i]->view, interval);
}

void agents_hand_over(struct agents *a, pid_t pid)
{
    for (size_t i = 0; i < a->members.len; i++)
        if (a->members.data[i]->process.pid == pid)
            segment_view_hand_over(a->members.data[i]->view);
}

/* Maps the segment behind `fd`, whose size can change no more. */
static int segment_map(int fd, void **base, size_t *size, struct error *err)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW))
        return error_set(err, FAULT_INPUT, "An agent's segment is not sealed");
    if (fstat(fd, &st) != 0 || st.st_size <= 0 || (uint64_t)st.st_size > SEGMENT_SIZE_MAX)
        return error_set(err, FAULT_INPUT, "An agent's segment has an impossible size");
    *size = (size_t)st.st_size;
    *base = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (*base == MAP_FAILED) {
        *base = NULL;
        return error_errno(err, FAULT_SYSTEM, "Cannot map an agent's segment");
    }
    madvise(*base, *size, MADV_DONTDUMP);
    return 0;
}

static void member_drain(struct member *m, bool last, const struct agents_sink *sink, void *context)
{
    segment_view_drain(m->view, last, &m->process, sink, context);
    if (sink->round)
        sink->round(context, &m->process);
    m->process.cost = 0;
    if (last && sink->process_end)
        sink->process_end(context, &m->process);
}

/* The image that `pid` ran before this one, if it is still here: exec has ended it. */
static void previous_end(struct agents *a, pid_t pid, const struct agents_sink *sink, void *context)
{
    for (size_t i = 0; i < a->members.len; i++) {
        struct member *m = a->members.data[i];
        if (m->process.pid != pid)
            continue;
        m->process.execed = true;
        member_drain(m, true, sink, context);
        member_free(m);
        a->members.data[i] = a->members.data[--a->members.len];
        return;
    }
}

static void member_add(struct agents *a, struct member *m, const struct agents_sink *sink,
                       void *context)
{
    struct agents_process *p = &m->process;
    previous_end(a, p->pid, sink, context);
    uint64_t *images = map_put(&a->epochs, (uint64_t)p->pid, 0, 0, NULL);
    p->epoch = (uint32_t)(*images)++;
    m->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
    m->gone = m->pidfd < 0;
    if (m->pidfd >= 0)
        watch(a, m->pidfd);
    *vector_push(&a->members) = m;
    segment_view_describe(m->view, p);
    if (a->interval)
        segment_view_set_interval(m->view, a->interval);
    if (sink->process)
        sink->process(context, p);
}

static void segment_take(struct agents *a, pid_t pid, int fd, const struct agents_sink *sink,
                         void *context)
{
    struct error err = {0};
    struct member *m = memory_alloc(sizeof *m);
    m->pidfd = -1;
    m->process.pid = pid;
    if (segment_map(fd, &m->base, &m->size, &err) == 0 &&
        segment_view_new(m->base, m->size, &m->view, &err) == 0) {
        member_add(a, m, sink, context);
        return;
    }
    member_free(m);
    if (sink->refused)
        sink->refused(context, pid, err.text);
}

/* A process's second segment; the first one came before, so the member is there. */
static void heap_take(struct agents *a, pid_t pid, int fd, const struct agents_sink *sink,
                      void *context)
{
    struct error err = {0};
    for (size_t i = 0; i < a->members.len; i++) {
        struct member *m = a->members.data[i];
        if (m->process.pid != pid || m->heap)
            continue;
        if (segment_map(fd, &m->heap, &m->heap_size, &err) != 0) {
            if (sink->refused)
                sink->refused(context, pid, err.text);
            return;
        }
        m->process.heap = m->heap;
        m->process.heap_size = m->heap_size;
        if (sink->heap)
            sink->heap(context, &m->process);
        return;
    }
}

static void trace_take(struct agents *a, pid_t pid, int fd, const struct agents_sink *sink,
                       void *context)
{
    struct error err = {0};
    for (size_t i = 0; i < a->members.len; i++) {
        struct member *m = a->members.data[i];
        if (m->process.pid != pid || m->trace)
            continue;
        if (segment_map(fd, &m->trace, &m->trace_size, &err) != 0) {
            if (sink->refused)
                sink->refused(context, pid, err.text);
            return;
        }
        m->process.trace = m->trace;
        m->process.trace_size = m->trace_size;
        if (sink->trace)
            sink->trace(context, &m->process);
        return;
    }
}

static void refusal_tell(pid_t pid, const struct session_hello *hello,
                         const struct agents_sink *sink, void *context)
{
    static const char *const reasons[SESSION_REASONS] = {
        [SESSION_NO_REASON] = "its agent gave no reason",
        [SESSION_NO_MEMFD] = "memfd_create was refused",
        [SESSION_LIMIT_FSIZE] = "its limit on file sizes (ulimit -f) is too small",
        [SESSION_NO_MEMORY] = "it has no memory for a segment (ulimit -v)",
        [SESSION_PYTHON] = "its Python",
        [SESSION_NO_WIPE] = "the kernel is older than 4.14 (no MADV_WIPEONFORK)",
        [SESSION_NO_TRACE] = "its calls are not traced: there is no memory for the rings",
        [SESSION_NO_HEAP] = "its heap is not recorded: there is no memory for the tables",
        [SESSION_OWN_MALLOC] = "it has an allocator of its own linked into it, whose functions "
                               "cannot be hooked: start it under sonde, or link that as a shared "
                               "library",
    };
    struct text why = TEXT_INIT;
    text_add(&why, reasons[hello->reason < SESSION_REASONS ? hello->reason : 0]);
    if (hello->reason == SESSION_PYTHON)
        text_format(&why, " %s", cpython_fault_text(-hello->error));
    else if (hello->error > 0 && hello->error < 4096)
        text_format(&why, ": %s", strerror(hello->error));
    if (sink->refused)
        sink->refused(context, pid, why.data);
    text_release(&why);
}

/* The descriptor that came along, or -1; any further ones are closed. */
static int received_fd(struct msghdr *message)
{
    int kept = -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (kept < 0)
                kept = fd;
            else
                close(fd);
        }
    }
    return kept;
}

/* True when the caller has said what it had to say, or never will. */
static bool caller_hear(struct agents *a, const struct caller *c, const struct agents_sink *sink,
                        void *context)
{
    struct session_hello hello;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(4 * sizeof(int))];
    } control;
    struct iovec part = {.iov_base = &hello, .iov_len = sizeof hello};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t got = recvmsg(c->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    int fd = got >= 0 ? received_fd(&message) : -1;
    if (got == sizeof hello && hello.magic == SESSION_MAGIC && hello.version == SESSION_VERSION) {
        if (hello.kind == SESSION_SEGMENT && fd >= 0)
            segment_take(a, c->pid, fd, sink, context);
        else if (hello.kind == SESSION_HEAP && fd >= 0)
            heap_take(a, c->pid, fd, sink, context);
        else if (hello.kind == SESSION_TRACE && fd >= 0)
            trace_take(a, c->pid, fd, sink, context);
        else if (hello.kind == SESSION_REFUSED)
            refusal_tell(c->pid, &hello, sink, context);
    }
    if (fd >= 0)
        close(fd);
    return true;
}

/* Ours are processes of this user, or anybody's if we are root: a target may change its user. */
static bool may_call(int fd, pid_t *pid)
{
    struct ucred who;
    socklen_t len = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) != 0 || who.pid <= 0)
        return false;
    *pid = who.pid;
    return geteuid() == 0 || who.uid == geteuid();
}

/* False when nobody is waiting any more, or there is no room. */
static bool callers_accept(struct agents *a)
{
    while (a->callers.len < CALLERS_MAX) {
        struct caller c = {.fd = accept4(a->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)};
        if (c.fd < 0)
            return false;
        if (may_call(c.fd, &c.pid) && watch(a, c.fd) == 0)
            *vector_push(&a->callers) = c;
        else
            close(c.fd);
    }
    return true;
}

static void callers_hear(struct agents *a, const struct agents_sink *sink, void *context)
{
    size_t kept = 0;
    for (size_t i = 0; i < a->callers.len; i++) {
        struct caller c = a->callers.data[i];
        if (caller_hear(a, &c, sink, context))
            close(c.fd);
        else
            a->callers.data[kept++] = c;
    }
    a->callers.len = kept;
}

/* A pidfd is readable once the last thread is over. */
static bool has_ended(const struct member *m)
{
    struct pollfd p = {.fd = m->pidfd, .events = POLLIN};
    return m->gone || poll(&p, 1, 0) > 0;
}

static void members_drain(struct agents *a, bool finish, const struct agents_sink *sink,
                          void *context)
{
    size_t kept = 0;
    for (size_t i = 0; i < a->members.len; i++) {
        struct member *m = a->members.data[i];
        bool last = finish || m->over;
        member_drain(m, last, sink, context);
        if (last) {
            map_remove(&a->epochs, (uint64_t)m->process.pid, 0);
            member_free(m);
        } else {
            a->members.data[kept++] = m;
        }
    }
    a->members.len = kept;
}

static void callers_drain(struct agents *a, const struct agents_sink *sink, void *context)
{
    bool more;
    do {
        size_t before = a->callers.len;
        more = callers_accept(a) && before < CALLERS_MAX;
        callers_hear(a, sink, context);
    } while (more);
}

void agents_drain(struct agents *a, const struct agents_sink *sink, void *context)
{
    /* Asked first: what a process sent, it sent before its end, so nothing can come after. */
    for (size_t i = 0; i < a->members.len; i++)
        a->members.data[i]->over = has_ended(a->members.data[i]);
    if (a->tree)
        a->tree->tick = clock_now();
    callers_drain(a, sink, context);
    members_drain(a, false, sink, context);
}

void agents_finish(struct agents *a, const struct agents_sink *sink, void *context)
{
    callers_drain(a, sink, context);
    members_drain(a, true, sink, context);
}
