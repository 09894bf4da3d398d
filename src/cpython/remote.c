/* Another process's memory, by process_vm_readv; see cpython.h. Apart, since the agent has no use
 * for it and links only what it uses. */
#include "cpython/cpython.h"

#include <sys/uio.h>

#define BATCH 64

static size_t read_batch(pid_t pid, const struct cpython_piece *piece, size_t count)
{
    struct iovec local[BATCH], remote[BATCH];
    for (size_t i = 0; i < count; i++) {
        local[i] = (struct iovec){piece[i].to, piece[i].size};
        remote[i] = (struct iovec){(void *)piece[i].address, piece[i].size};
    }
    ssize_t got = process_vm_readv(pid, local, count, remote, count, 0);
    size_t whole = 0;
    for (; whole < count && got >= (ssize_t)piece[whole].size; whole++)
        got -= (ssize_t)piece[whole].size;
    return whole;
}

static size_t read_remote(void *ctx, const struct cpython_piece *piece, size_t count)
{
    size_t done = 0;
    while (done < count) {
        size_t batch = count - done < BATCH ? count - done : BATCH;
        size_t whole = read_batch((pid_t)(intptr_t)ctx, piece + done, batch);
        done += whole;
        if (whole < batch)
            break;
    }
    return done;
}

void cpython_memory_remote(struct cpython_memory *memory, pid_t pid, struct cpython_ahead *ahead)
{
    *memory =
        (struct cpython_memory){.read = read_remote, .ctx = (void *)(intptr_t)pid, .ahead = ahead};
}
