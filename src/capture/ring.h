/*
 * A perf ring: the kernel writes records, we take them in place. Records are copied
 * only when they wrap around the end of the buffer. One reader.
 */
#ifndef SONDE_RING_H
#define SONDE_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring {
    struct perf_event_mmap_page *page;
    uint8_t *data;
    uint64_t size;    /* of data, a power of two */
    uint64_t head;    /* the kernel's, as of ring_refresh */
    uint64_t tail;    /* ours */
    uint64_t scanned; /* how far ring_scan has come */
    uint8_t *wrapped; /* room for one record */
};

/* Maps `pages` data pages (a power of two) of the event `fd`; 0 or a negative errno. */
int ring_open(struct ring *r, int fd, size_t pages);
void ring_refresh(struct ring *r); /* takes note of what has been written */
/* The oldest record not yet taken, whole, or NULL. Valid until ring_take. */
const struct perf_event_header *ring_peek(struct ring *r);
/* The next record that ring_scan has not shown yet, taken or not; valid until the next call of
 * ring_scan or ring_peek. NULL: there is none. */
const struct perf_event_header *ring_scan(struct ring *r);
void ring_take(struct ring *r); /* gives the peeked record's room back */
void ring_close(struct ring *r);

#endif
