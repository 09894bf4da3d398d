/* Stacks for the recording; see stacks.h. */
#include "capture/stacks.h"

#include <string.h>
#include <sys/uio.h>

#include "unwind/walk.h"

/* Deeper parts of a stack than were copied with the sample, read while the target runs on. Frames
 * that far out rarely move; that they did not is checked where the copy ends. */
struct remote {
    pid_t pid;
    const struct perf_record *record;
    uint64_t sp;
    enum { REMOTE_UNTRIED, REMOTE_SAME, REMOTE_MOVED } state;
    uint64_t start;
    size_t len;
    uint8_t bytes[4096];
};

#define REMOTE_REACH ((uint64_t)8 << 20)
#define REMOTE_OVERLAP 512

static size_t read_remote(pid_t pid, uint64_t from, void *to, size_t len)
{
    struct iovec local = {.iov_base = to, .iov_len = len};
    struct iovec far = {.iov_base = (void *)(uintptr_t)from, .iov_len = len};
    ssize_t n = process_vm_readv(pid, &local, 1, &far, 1, 0);
    return n > 0 ? (size_t)n : 0;
}

/* Is the end of the copy still what the target has there? */
static bool has_not_moved(struct remote *r)
{
    uint8_t now[REMOTE_OVERLAP];
    size_t len = r->record->stack_len;
    if (len < sizeof now)
        return false;
    uint64_t at = r->sp + len - sizeof now;
    return read_remote(r->pid, at, now, sizeof now) == sizeof now &&
           !memcmp(now, r->record->stack + len - sizeof now, sizeof now);
}

static int read_word(void *context, uint64_t address, uint64_t *word)
{
    struct remote *r = context;
    uint64_t end = r->sp + r->record->stack_len;
    if (address < end || address - end > REMOTE_REACH)
        return -1;
    if (r->state == REMOTE_UNTRIED)
        r->state = has_not_moved(r) ? REMOTE_SAME : REMOTE_MOVED;
    if (r->state == REMOTE_MOVED)
        return -1;
    if (address < r->start || address + 8 > r->start + r->len) {
        r->start = address;
        r->len = read_remote(r->pid, address, r->bytes, sizeof r->bytes);
        if (r->len < 8)
            return -1;
    }
    memcpy(word, r->bytes + (address - r->start), sizeof *word);
    return 0;
}

void stacks_init(struct stacks *s, struct writer *writer, struct modules *modules)
{
    *s = (struct stacks){.writer = writer, .modules = modules};
    uint32_t f = writer_function(writer, "[cut]", "", "", 0, modules->unknown->id);
    s->cut_frame = writer_frame_named(writer, modules->unknown->id, f, 0);
}

uint32_t stacks_user_frame(struct stacks *s, const struct space *space, uint64_t address,
                           bool is_return)
{
    uint64_t at = address - is_return;
    const struct range *m = space_find(space, at);
    if (!m)
        return writer_frame(s->writer, s->modules->unknown->id, at);
    const struct module *module = m->owner;
    return writer_frame(s->writer, module->id, at - m->bias);
}

uint32_t stacks_root(struct stacks *s, bool complete)
{
    if (complete)
        s->whole++;
    else
        s->cut++;
    return complete ? 0 : writer_stack(s->writer, 0, s->cut_frame);
}

uint32_t stacks_of_addresses(struct stacks *s, const struct space *space, const uint64_t *address,
                             size_t count, size_t interrupted, bool complete)
{
    uint32_t stack = stacks_root(s, complete || !count);
    for (size_t i = count; i > 0; i--) {
        bool is_return = i - 1 != 0 && (!interrupted || i - 1 != interrupted);
        stack =
            writer_stack(s->writer, stack, stacks_user_frame(s, space, address[i - 1], is_return));
    }
    return stack;
}

bool stacks_walk(struct stacks *s, const struct space *space, const struct perf_record *r,
                 struct stacks_walk *out)
{
    struct unwind_regs regs;
    struct unwind_end end = {0};
    if (!r->regs)
        return false; /* a kernel thread, or code that runs before there is a stack */
    unwind_regs_from_perf(&regs, UNWIND_PERF_MASK, r->regs, r->regs_len);
    if (r->in_kernel && !space_find(space, regs.value[UNWIND_IP])) {
        /* In exec: the registers are the old program's, which is gone, and the new one has none. */
        s->whole++;
        return false;
    }
    struct remote remote = {.pid = r->pid, .record = r, .sp = regs.value[UNWIND_SP]};
    struct unwind_memory memory = {.start = remote.sp,
                                   .data = r->stack,
                                   .size = r->stack_len,
                                   .read = read_word,
                                   .ctx = &remote};
    out->count = unwind_walk(&space->unwind, &regs, &memory, s->address, STACK_DEPTH_MAX, &end);
    out->interrupted = end.interrupted;
    out->whole = end.reason == UNWIND_COMPLETE;
    return true;
}

uint32_t stacks_add_kernel(struct stacks *s, uint32_t stack, const uint64_t *address, size_t count)
{
    for (size_t i = count; i > 0; i--) {
        uint64_t at = address[i - 1] - (i > 1);
        stack = writer_stack(s->writer, stack, writer_frame(s->writer, s->modules->kernel->id, at));
    }
    return stack;
}
