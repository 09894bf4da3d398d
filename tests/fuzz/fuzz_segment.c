/*
 * A segment whose every byte the target chose: the input is laid over a small valid one, so that
 * the interesting places are reached, and then drained twice as the collector does.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "capture/agents_segment.h"

#define SLOTS 2
#define RING 4096
#define MODULES 2

static volatile uint64_t touched;

static void on_mapping(void *context, struct agents_process *p, const struct agents_mapping *m)
{
    (void)context;
    (void)p;
    touched += strlen(m->path) + m->build_id_len;
    for (size_t i = 0; i < m->build_id_len; i++)
        touched += m->build_id[i];
}

static void on_sample(void *context, struct agents_process *p, struct agents_thread *t,
                      const struct agents_sample *s)
{
    (void)context;
    touched += strlen(p->comm) + strlen(p->exe) + strlen(t->name);
    for (size_t i = 0; i < s->count; i++)
        touched += s->address[i];
    if (s->interrupted >= s->count)
        abort();
}

static void on_thread_end(void *context, struct agents_process *p, struct agents_thread *t)
{
    (void)context;
    (void)p;
    if (t->generated != t->recorded + t->lost)
        abort();
}

static const struct agents_sink sink = {
    .mapping = on_mapping, .sample = on_sample, .thread_end = on_thread_end};

/* Chunks of the input go to places it names: 4 bytes of offset, 2 of length, then the bytes. */
static void overlay(uint8_t *base, size_t size, const uint8_t *data, size_t len)
{
    while (len > 6) {
        uint32_t offset;
        uint16_t chunk;
        memcpy(&offset, data, 4);
        memcpy(&chunk, data + 4, 2);
        data += 6;
        len -= 6;
        size_t n = chunk < len ? chunk : len;
        offset %= (uint32_t)size;
        if (n > size - offset)
            n = size - offset;
        memcpy(base + offset, data, n);
        data += n;
        len -= n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct segment_layout l;
    if (!segment_layout(SLOTS, RING, MODULES, &l))
        abort();
    uint8_t *base = mmap(NULL, l.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        abort();
    struct segment_header *h = (struct segment_header *)base;
    *h = (struct segment_header){.magic = SEGMENT_MAGIC,
                                 .version = SEGMENT_VERSION,
                                 .header_size = sizeof *h,
                                 .size = l.size,
                                 .slots = SLOTS,
                                 .ring_bytes = RING,
                                 .modules = MODULES,
                                 .slots_used = SLOTS,
                                 .modules_used = MODULES};
    struct segment_view *v;
    overlay(base, l.size, data, len / 2);
    if (segment_view_new(base, l.size, &v, NULL) == 0) {
        struct agents_process p = {0};
        segment_view_drain(v, false, &p, &sink, NULL);
        overlay(base, l.size, data + len / 2, len - len / 2);
        segment_view_drain(v, false, &p, &sink, NULL);
        segment_view_drain(v, true, &p, &sink, NULL);
        segment_view_free(v);
    }
    munmap(base, l.size);
    return 0;
}
