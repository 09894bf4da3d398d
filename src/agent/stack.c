/*
 * Walks the interrupted stack. A thread's own stack is mapped from its stack pointer to its end,
 * so it is read in place. Of any other stack nothing is known: process_vm_readv on ourselves
 * copies what is there and stops where nothing is.
 */
#include "agent/stack.h"

#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "agent/arch.h"

static size_t copy(uint64_t from, void *to, size_t size)
{
    if (agent_quiet)
        return 0;
    struct iovec local = {.iov_base = to, .iov_len = size};
    struct iovec remote = {.iov_base = (void *)(uintptr_t)from, .iov_len = size};
    long got = raw6(SYS_process_vm_readv, agent_process->pid, &local, 1, &remote, 1, 0);
    return got > 0 ? (size_t)got : 0;
}

/* A word that the first copy does not hold: the walk went on to another stack, where a signal
 * came in. A second, smaller copy follows it. */
static int read_elsewhere(void *context, uint64_t address, uint64_t *word)
{
    struct agent_thread *t = context;
    if (address - t->window_at >= t->window_size || t->window_size - (address - t->window_at) < 8) {
        t->window_at = address;
        t->window_size = copy(address, t->window, sizeof t->window);
        if (t->window_size < 8)
            return -1;
    }
    memcpy(word, t->window + (address - t->window_at), 8);
    return 0;
}

static size_t walk_copy(struct agent_thread *t, const struct unwind_regs *regs,
                        struct unwind_end *end)
{
    uint64_t sp = regs->value[UNWIND_SP];
    size_t size = copy(sp, t->stack, sizeof t->stack);
    if (size == 0)
        agent_declare(SEGMENT_NO_STACK_COPY);
    t->window_size = 0;
    struct unwind_memory memory = {
        .start = sp, .data = t->stack, .size = size, .read = read_elsewhere, .ctx = t};
    return unwind_walk(&agent_map, regs, &memory, t->address, SEGMENT_DEPTH, end);
}

size_t stack_walk(struct agent_thread *t, const struct unwind_regs *regs, struct unwind_end *end,
                  bool *foreign)
{
    uint64_t sp = regs->value[UNWIND_SP];
    *foreign = sp < t->stack_low || sp >= t->stack_end;
    if (*foreign)
        return walk_copy(t, regs, end);
    return unwind_local(&agent_map, regs, t->stack_end, &t->cache, t->address, SEGMENT_DEPTH, end);
}
