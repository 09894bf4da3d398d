/*
 * Records of perf, taken apart. What a sample holds is said by its event's sample_type, in
 * this order:
 *
 *     identifier, ip, pid+tid, time, addr, id, stream_id, cpu+res, period, read values,
 *     nr+call chain, size+raw, nr+branches, abi+registers, size+stack+dyn_size, ...
 *
 * Other records end with the same facts in the order pid+tid, time, id, stream_id, cpu+res,
 * identifier. Every length is checked against the record's own.
 */
#include <string.h>

#include "formats/perf_data_internal.h"

#define HEADER sizeof(struct perf_event_header)

struct cursor {
    const uint8_t *at, *end;
    bool bad;
};

static const uint8_t *take(struct cursor *c, uint64_t size)
{
    const uint8_t *here = c->at;
    if (c->bad || size > (uint64_t)(c->end - c->at)) {
        c->bad = true;
        return NULL;
    }
    c->at += size;
    return here;
}

static uint64_t take_u64(struct cursor *c)
{
    const uint8_t *at = take(c, 8);
    return at ? perf_u64(at) : 0;
}

static uint32_t record_type(struct perf_bytes record)
{
    return perf_u32(record.data);
}

/* Values of counters that the sample read along; never used, but in the way. */
static void skip_read(struct cursor *c, uint64_t format)
{
    uint64_t each = 8 + (format & PERF_FORMAT_ID ? 8 : 0) + (format & 16 ? 8 : 0), count = 1;
    if (format & PERF_FORMAT_GROUP)
        count = take_u64(c);
    take(c, (format & PERF_FORMAT_TOTAL_TIME_ENABLED ? 8 : 0) +
                (format & PERF_FORMAT_TOTAL_TIME_RUNNING ? 8 : 0));
    if (count > 0xffff)
        c->bad = true;
    else
        take(c, count * each);
}

#define BRANCH_HW_INDEX ((uint64_t)1 << 17)
#define BRANCH_COUNTERS ((uint64_t)1 << 19)

static void skip_branches(struct cursor *c, uint64_t branch_type)
{
    uint64_t count = take_u64(c);
    if (branch_type & BRANCH_HW_INDEX)
        take(c, 8);
    if (count > 0xffff)
        c->bad = true;
    else
        take(c, count * (branch_type & BRANCH_COUNTERS ? 32 : 24));
}

static void take_chain(struct cursor *c, struct perf_sample *out)
{
    uint64_t count = take_u64(c);
    if (count > 0xffff) {
        c->bad = true;
        return;
    }
    out->chain = take(c, count * 8);
    out->chain_len = out->chain ? (size_t)count : 0;
}

static void take_registers(struct cursor *c, const struct perf_attr *a, struct perf_sample *out)
{
    out->regs_abi = take_u64(c);
    size_t count = out->regs_abi ? (size_t)__builtin_popcountll(a->regs_user) : 0;
    out->regs = take(c, count * 8);
    out->regs_len = out->regs ? count : 0;
}

/* A copied stack that goes on in the file: how much of it was used is said behind it. */
static void take_far_stack(struct cursor *c, struct perf_data *d, struct perf_bytes r,
                           uint64_t size, struct perf_sample *out)
{
    const struct perf_front *f = r.front;
    uint64_t before = (uint64_t)(c->at - r.data), behind = f->whole_len - before - size, used;
    if (size > f->whole_len - before || behind < sizeof used) {
        c->bad = true;
        return;
    }
    used = f->ended && behind <= sizeof f->end ? perf_u64(f->end + sizeof f->end - behind)
                                               : perf_u64(d->file + f->offset + before + size);
    used = used < size ? used : size;
    out->far_stack = d->file + f->offset + before;
    out->far_stack_len = (size_t)used;
    out->stack = c->at;
    out->stack_len = (size_t)(c->end - c->at);
    if (out->stack_len >= used) {
        out->stack_len = (size_t)used;
        out->far_stack = NULL;
    }
}

static void take_stack(struct cursor *c, struct perf_data *d, struct perf_bytes r,
                       struct perf_sample *out)
{
    uint64_t size = take_u64(c);
    if (r.front && !c->bad && size > (uint64_t)(c->end - c->at)) {
        take_far_stack(c, d, r, size, out);
        return;
    }
    const uint8_t *stack = take(c, size);
    uint64_t used = size ? take_u64(c) : 0;
    out->stack = stack;
    out->stack_len = c->bad ? 0 : (size_t)(used < size ? used : size);
}

/* The facts of fixed size that stand first. */
static void take_fixed(struct cursor *c, uint64_t type, struct perf_sample *out)
{
    if (type & PERF_SAMPLE_IDENTIFIER)
        out->id = take_u64(c);
    if (type & PERF_SAMPLE_IP)
        out->ip = take_u64(c);
    if (type & PERF_SAMPLE_TID) {
        uint64_t both = take_u64(c);
        out->pid = (int32_t)both;
        out->tid = (int32_t)(both >> 32);
    }
    if (type & PERF_SAMPLE_TIME)
        out->time = take_u64(c);
    if (type & PERF_SAMPLE_ADDR)
        take(c, 8);
    if (type & PERF_SAMPLE_ID)
        out->id = take_u64(c);
    if (type & PERF_SAMPLE_STREAM_ID)
        take(c, 8);
    if (type & PERF_SAMPLE_CPU)
        take(c, 8);
    if (type & PERF_SAMPLE_PERIOD)
        out->period = take_u64(c);
}

static bool decode(struct perf_data *d, struct perf_bytes record, const struct perf_attr *a,
                   struct perf_sample *out)
{
    struct cursor c = {record.data + HEADER, record.data + record.len, false};
    *out = (struct perf_sample){.period = a->flags & PERF_FLAG_FREQ ? 1 : a->period};
    take_fixed(&c, a->sample_type, out);
    if (a->sample_type & PERF_SAMPLE_READ)
        skip_read(&c, a->read_format);
    if (a->sample_type & PERF_SAMPLE_CALLCHAIN)
        take_chain(&c, out);
    if (a->sample_type & PERF_SAMPLE_RAW) {
        const uint8_t *size = take(&c, 4);
        take(&c, size ? perf_u32(size) : 0);
    }
    if (a->sample_type & PERF_SAMPLE_BRANCH_STACK)
        skip_branches(&c, a->branch_type);
    if (a->sample_type & PERF_SAMPLE_REGS_USER)
        take_registers(&c, a, out);
    if (a->sample_type & PERF_SAMPLE_STACK_USER)
        take_stack(&c, d, record, out);
    return !c.bad;
}

bool perf_sample_decode(struct perf_data *d, struct perf_bytes record, const struct perf_attr *a,
                        struct perf_sample *out)
{
    if (decode(d, record, a, out))
        return true;
    /* The front may have been too short for what stands before the stack. */
    if (!record.front)
        return false;
    struct perf_bytes whole = {
        .data = d->file + record.front->offset, .len = record.front->whole_len, .stays = true};
    return decode(d, whole, a, out);
}

/* Where a sample has its counter's id, in words behind the header; -1: nowhere. */
static int id_place(uint64_t type)
{
    if (type & PERF_SAMPLE_IDENTIFIER)
        return 0;
    if (!(type & PERF_SAMPLE_ID))
        return -1;
    return __builtin_popcountll(
        type & (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR));
}

/* The same from the end of other records, and of their time. */
static int id_place_from_end(uint64_t type)
{
    if (type & PERF_SAMPLE_IDENTIFIER)
        return 1;
    if (!(type & PERF_SAMPLE_ID))
        return -1;
    return 1 + __builtin_popcountll(type & (PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU));
}

static int time_place_from_end(uint64_t type)
{
    if (!(type & PERF_SAMPLE_TIME))
        return -1;
    return 1 + __builtin_popcountll(type & (PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
                                            PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER));
}

static bool word_at(struct perf_bytes r, int place, uint64_t *out)
{
    size_t at = HEADER + 8 * (size_t)place;
    if (place < 0 || at + 8 > r.len)
        return false;
    *out = perf_u64(r.data + at);
    return true;
}

static bool word_from_end(struct perf_bytes r, int place, uint64_t *out)
{
    if (place < 0 || HEADER + 8 * (size_t)place > r.len)
        return false;
    *out = perf_u64(r.data + r.len - 8 * (size_t)place);
    return true;
}

/* All events of a file have the id in the same place, or there is only one: perf sees to that. */
struct perf_attr *perf_attr_of(struct perf_data *d, struct perf_bytes r)
{
    if (!d->attrs.len)
        return NULL;
    struct perf_attr *first = d->attrs.data;
    bool sample = record_type(r) == PERF_RECORD_SAMPLE;
    uint64_t id;
    if (d->attrs.len == 1)
        return first;
    if (!sample && !(first->flags & PERF_FLAG_SAMPLE_ID_ALL))
        return first;
    if (!(sample ? word_at(r, id_place(first->sample_type), &id)
                 : word_from_end(r, id_place_from_end(first->sample_type), &id)))
        return first;
    const uint64_t *known = map_get(&d->ids, id, 0);
    if (known)
        return &d->attrs.data[*known];
    /* What perf itself made up at the start has no counter. */
    return sample && id ? NULL : first;
}

uint64_t perf_bytes_time(struct perf_data *d, struct perf_bytes r)
{
    const struct perf_attr *a = perf_attr_of(d, r);
    uint64_t time = 0;
    if (!a || !(a->sample_type & PERF_SAMPLE_TIME))
        return 0;
    if (record_type(r) == PERF_RECORD_SAMPLE) {
        uint64_t before =
            a->sample_type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID);
        return word_at(r, __builtin_popcountll(before), &time) ? time : 0;
    }
    if (!(a->flags & PERF_FLAG_SAMPLE_ID_ALL))
        return 0;
    return word_from_end(r, time_place_from_end(a->sample_type), &time) ? time : 0;
}
