/* See bpf_ring.h. */
#include "capture/bpf_ring.h"

#include <sys/mman.h>
#include <unistd.h>

#include "capture/bpf.h"

int bpf_ring_open(struct bpf_ring *r, size_t bytes)
{
    *r = (struct bpf_ring){.page = (size_t)sysconf(_SC_PAGESIZE), .bytes = bytes};
    r->fd = bpf_map(BPF_MAP_TYPE_RINGBUF, 0, 0, (uint32_t)bytes, 0);
    if (r->fd < 0)
        return -1;
    void *taken = mmap(NULL, r->page, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
    if (taken == MAP_FAILED)
        return -1;
    r->taken = taken;
    void *kernel = mmap(NULL, r->page + 2 * bytes, PROT_READ, MAP_SHARED, r->fd, (off_t)r->page);
    if (kernel == MAP_FAILED)
        return -1;
    r->kernel = kernel;
    return 0;
}

void bpf_ring_release(struct bpf_ring *r)
{
    if (r->taken)
        munmap(r->taken, r->page);
    if (r->kernel)
        munmap((void *)r->kernel, r->page + 2 * r->bytes);
    if (r->fd >= 0)
        close(r->fd);
    *r = (struct bpf_ring){.fd = -1};
}

static uint64_t written(const struct bpf_ring *r)
{
    return __atomic_load_n((const uint64_t *)r->kernel, __ATOMIC_ACQUIRE);
}

void bpf_ring_each(struct bpf_ring *r, void (*each)(void *context, const void *record),
                   void *context)
{
    for (uint64_t taken = *r->taken, end = written(r); taken < end;) {
        const uint8_t *at = r->kernel + r->page + (taken & (r->bytes - 1));
        uint32_t len = __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);
        if (len & BPF_RINGBUF_BUSY_BIT)
            return;
        if (!(len & BPF_RINGBUF_DISCARD_BIT))
            each(context, at + BPF_RINGBUF_HDR_SZ);
        len &= ~BPF_RINGBUF_DISCARD_BIT;
        taken += (len + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
        __atomic_store_n(r->taken, taken, __ATOMIC_RELEASE);
    }
}

void bpf_ring_clear(struct bpf_ring *r)
{
    __atomic_store_n(r->taken, written(r), __ATOMIC_RELEASE);
}
