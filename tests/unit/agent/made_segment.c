/* See made_segment.h. */
#include "made_segment.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "agent/ring.h"

void made_segment_init(struct made_segment *m)
{
    agent_settings.ring_bytes = MADE_RING;
    if (!segment_layout(MADE_SLOTS, MADE_RING, 8, &m->layout))
        abort();
    m->size = m->layout.size;
    m->base = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (m->base == MAP_FAILED)
        abort();
    m->header = m->base;
    m->modules = (struct segment_module *)((char *)m->base + m->layout.modules);
    m->slots = (struct segment_thread *)((char *)m->base + m->layout.slots);
    *m->header = (struct segment_header){.magic = SEGMENT_MAGIC,
                                         .version = SEGMENT_VERSION,
                                         .header_size = sizeof *m->header,
                                         .size = m->size,
                                         .slots = MADE_SLOTS,
                                         .ring_bytes = MADE_RING,
                                         .modules = 8,
                                         .pid = 1,
                                         .clock = CLOCK_MONOTONIC,
                                         .comm = "made",
                                         .exe = "/bin/made",
                                         .exe_len = 9};
}

void made_segment_release(struct made_segment *m)
{
    munmap(m->base, m->size);
}

void made_segment_thread(struct made_segment *m, uint32_t index, struct agent_thread *t)
{
    struct segment_thread *s = &m->slots[index];
    uint32_t generation = s->generation + 1;
    memset(s, 0, sizeof *s);
    s->generation = generation;
    s->tid = 100 + index;
    s->start = 1;
    s->timer = 1;
    memcpy(s->name, "worker", 7);
    t->slot = s;
    t->ring = (uint64_t *)((char *)m->base + m->layout.rings + (size_t)index * MADE_RING);
    if (m->header->slots_used <= index)
        m->header->slots_used = index + 1;
    __atomic_store_n(&s->state, SLOT_LIVE, __ATOMIC_RELEASE);
}

bool made_segment_put(struct agent_thread *t, uint64_t seed, uint16_t count)
{
    uint64_t address[SEGMENT_DEPTH], head[sizeof(struct segment_sample) / 8];
    struct segment_sample s = {.time = seed, .value = 10, .count = count};
    for (uint16_t i = 0; i < count; i++)
        address[i] = MADE_ADDRESS(seed, i);
    memcpy(head, &s, sizeof s);
    return ring_put(t, SEGMENT_SAMPLE, s.value, head, sizeof s / 8, address, count);
}
