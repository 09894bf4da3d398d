/* A ring that BPF programs write to and we read, or only wait for. */
#ifndef SONDE_BPF_RING_H
#define SONDE_BPF_RING_H

#include <stddef.h>
#include <stdint.h>

struct bpf_ring {
    int fd;                /* the map; readable while there is something in it */
    uint64_t *taken;       /* how far we have read */
    const uint8_t *kernel; /* how far the kernel has written; a page later what, twice in a row */
    size_t page, bytes;
};

/* `bytes` is a power of two and a multiple of the page's. 0, or -1; release it in either case. */
int bpf_ring_open(struct bpf_ring *r, size_t bytes);
void bpf_ring_release(struct bpf_ring *r);

/* Calls for each record that has come, and takes it. */
void bpf_ring_each(struct bpf_ring *r, void (*each)(void *context, const void *record),
                   void *context);
/* Takes all there is, unseen. */
void bpf_ring_clear(struct bpf_ring *r);

#endif
