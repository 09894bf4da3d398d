/* Perf records: the kernel is trusted with our time, not with our memory. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "capture/perf_record.h"

#define USER_REGISTERS 17

static volatile uint64_t sink;

/* Touches everything the record claims to point to. */
static void touch(const struct perf_record *r)
{
    for (size_t i = 0; i < r->chain_len; i++)
        sink += r->chain[i];
    for (size_t i = 0; r->regs && i < r->regs_len; i++)
        sink += r->regs[i];
    for (size_t i = 0; i < r->stack_len; i++)
        sink += r->stack[i];
    for (size_t i = 0; i < r->build_id_len; i++)
        sink += r->build_id[i];
    if (r->path)
        sink += strlen(r->path);
    if (r->comm)
        sink += strlen(r->comm);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < sizeof(struct perf_event_header) || size > UINT16_MAX)
        return 0;
    struct perf_event_header *h = malloc(size);
    struct perf_record r;
    memcpy(h, data, size);
    h->size = (uint16_t)size;
    sink += perf_record_time(h);
    if (perf_record_decode(h, USER_REGISTERS, &r))
        touch(&r);
    free(h);
    return 0;
}
