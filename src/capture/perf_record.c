/* Decoding perf records; see perf_record.h. Layouts: perf_event_open(2). */
#include "capture/perf_record.h"

#include <string.h>

/* Bytes not yet looked at; `bad` once something did not fit. */
struct bytes {
    const uint8_t *at, *end;
    bool bad;
};

static const void *take(struct bytes *b, uint64_t len)
{
    if (b->bad || len > (uint64_t)(b->end - b->at)) {
        b->bad = true;
        return NULL;
    }
    const void *p = b->at;
    b->at += len;
    return p;
}

static uint64_t take_u64(struct bytes *b)
{
    uint64_t v = 0;
    const void *p = take(b, sizeof v);
    if (p)
        memcpy(&v, p, sizeof v);
    return v;
}

static uint32_t take_u32(struct bytes *b)
{
    uint32_t v = 0;
    const void *p = take(b, sizeof v);
    if (p)
        memcpy(&v, p, sizeof v);
    return v;
}

/* A terminated string inside what is left, or NULL. */
static const char *take_string(struct bytes *b)
{
    size_t left = (size_t)(b->end - b->at);
    const char *s = (const char *)b->at;
    if (b->bad || strnlen(s, left) == left) {
        b->bad = true;
        return NULL;
    }
    return s;
}

/* The last fields of every record but samples: pid, tid | time | cpu | identifier. */
#define TRAILER_SIZE 32

static void decode_trailer(const struct perf_event_header *h, struct perf_record *r)
{
    const uint8_t *end = (const uint8_t *)h + h->size;
    int32_t ids[2];
    memcpy(ids, end - 32, sizeof ids);
    memcpy(&r->time, end - 24, sizeof r->time);
    memcpy(&r->id, end - 8, sizeof r->id);
    r->pid = ids[0];
    r->tid = ids[1];
}

uint64_t perf_record_time(const struct perf_event_header *h)
{
    uint64_t t = 0;
    const uint8_t *p = (const uint8_t *)h;
    if (h->type == PERF_RECORD_SAMPLE && h->size >= 40)
        memcpy(&t, p + 32, sizeof t); /* header, identifier, ip, pid and tid */
    else if (h->type != PERF_RECORD_SAMPLE && h->size >= sizeof *h + TRAILER_SIZE)
        memcpy(&t, p + h->size - 24, sizeof t);
    return t;
}

/* Keeps the kernel's part of the chain: what follows PERF_CONTEXT_KERNEL. */
static void decode_chain(struct perf_record *r, const uint64_t *chain, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        if (chain[i] == PERF_CONTEXT_KERNEL) {
            r->chain = chain + i + 1;
            while (i + 1 + r->chain_len < n && r->chain[r->chain_len] < PERF_CONTEXT_MAX)
                r->chain_len++;
            return;
        }
    }
}

static void decode_sample(struct bytes *b, unsigned user_regs, struct perf_record *r)
{
    r->kind = PERF_SAMPLE;
    r->id = take_u64(b);
    r->ip = take_u64(b);
    r->pid = (int32_t)take_u32(b);
    r->tid = (int32_t)take_u32(b);
    r->time = take_u64(b);
    take_u64(b); /* cpu */
    r->period = take_u64(b);
    uint64_t n = take_u64(b);
    const uint64_t *chain = n <= 4096 ? take(b, n * 8) : take(b, UINT64_MAX);
    if (chain)
        decode_chain(r, chain, n);
    uint64_t abi = take_u64(b);
    if (abi != PERF_SAMPLE_REGS_ABI_NONE) {
        r->regs = take(b, (uint64_t)user_regs * 8);
        r->regs_len = user_regs;
        if (abi != PERF_SAMPLE_REGS_ABI_64)
            r->regs = NULL; /* 32-bit code: counted, its stack is not walked */
    }
    uint64_t size = take_u64(b);
    if (size) {
        r->stack = take(b, size);
        uint64_t valid = take_u64(b);
        r->stack_len = valid < size ? valid : size;
    }
}

static void decode_mmap2(struct bytes *b, const struct perf_event_header *h, struct perf_record *r)
{
    r->kind = PERF_MMAP;
    r->pid = (int32_t)take_u32(b);
    r->tid = (int32_t)take_u32(b);
    r->start = take_u64(b);
    r->length = take_u64(b);
    r->offset = take_u64(b);
    const uint8_t *file = take(b, 24);
    take(b, 8); /* protection, flags */
    r->path = take_string(b);
    if (file && (h->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) && file[0] <= 20) {
        r->build_id = file + 4;
        r->build_id_len = file[0];
    }
}

static void decode_task(struct bytes *b, struct perf_record *r, enum perf_kind kind)
{
    r->kind = kind;
    r->pid = (int32_t)take_u32(b);
    r->parent_pid = (int32_t)take_u32(b);
    r->tid = (int32_t)take_u32(b);
    r->parent_tid = (int32_t)take_u32(b);
}

static void decode_other(struct bytes *b, const struct perf_event_header *h, struct perf_record *r)
{
    switch (h->type) {
    case PERF_RECORD_MMAP2:
        decode_mmap2(b, h, r);
        break;
    case PERF_RECORD_COMM:
        r->kind = PERF_COMM;
        r->exec = h->misc & PERF_RECORD_MISC_COMM_EXEC;
        r->pid = (int32_t)take_u32(b);
        r->tid = (int32_t)take_u32(b);
        r->comm = take_string(b);
        break;
    case PERF_RECORD_FORK:
        decode_task(b, r, PERF_FORK);
        break;
    case PERF_RECORD_EXIT:
        decode_task(b, r, PERF_EXIT);
        break;
    case PERF_RECORD_LOST:
        r->kind = PERF_LOST;
        r->id = take_u64(b);
        r->count = take_u64(b);
        break;
    case PERF_RECORD_LOST_SAMPLES:
        r->kind = PERF_LOST;
        r->count = take_u64(b);
        break;
    case PERF_RECORD_THROTTLE:
        r->kind = PERF_THROTTLE;
        break;
    case PERF_RECORD_SWITCH:
        r->kind = PERF_SWITCH;
        r->out = h->misc & PERF_RECORD_MISC_SWITCH_OUT;
        r->preempted = r->out && (h->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
        break;
    case PERF_RECORD_READ:
        r->kind = PERF_READ;
        r->pid = (int32_t)take_u32(b);
        r->tid = (int32_t)take_u32(b);
        r->count = take_u64(b);
        break;
    default:
        r->kind = PERF_OTHER;
    }
}

bool perf_record_decode(const struct perf_event_header *h, unsigned user_regs,
                        struct perf_record *r)
{
    *r = (struct perf_record){0};
    struct bytes b = {.at = (const uint8_t *)(h + 1), .end = (const uint8_t *)h + h->size};
    if (h->type == PERF_RECORD_SAMPLE) {
        decode_sample(&b, user_regs, r);
        r->in_kernel = (h->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
        return !b.bad;
    }
    if (h->size < sizeof *h + TRAILER_SIZE)
        return false;
    b.end -= TRAILER_SIZE;
    struct perf_record trailer = {0};
    decode_trailer(h, &trailer);
    r->time = trailer.time;
    r->id = trailer.id;
    r->pid = trailer.pid;
    r->tid = trailer.tid;
    decode_other(&b, h, r);
    return !b.bad;
}
