/* Who runs, what they map, and what they were sampled doing: records of perf in the order of
 * their times, into the profile. */
#include <string.h>

#include "formats/perf_data_internal.h"

#define HEADER sizeof(struct perf_event_header)
#define CONTEXT_MAX ((uint64_t)-4095)

static uint16_t misc_of(struct perf_bytes r)
{
    return perf_u16(r.data + 4);
}

/* A text inside a record, which need not end with a NUL. */
static void text_at(struct perf_bytes r, size_t at, struct text *out)
{
    const char *s = (const char *)r.data + at;
    text_clear(out);
    text_add_len(out, s, at < r.len ? strnlen(s, r.len - at) : 0);
}

static int find_process(struct perf_data *d, int32_t pid, uint32_t *out, struct error *err)
{
    *out = import_process(&d->im, pid, "");
    if (*out == PROFILE_NONE)
        return import_too_many(&d->im, "processes", IMPORT_THREADS_MAX, err);
    return 0;
}

static int find_thread(struct perf_data *d, uint32_t process, int32_t tid, uint32_t *out,
                       struct error *err)
{
    *out = import_thread(&d->im, process, tid, "");
    if (*out == PROFILE_NONE)
        return import_too_many(&d->im, "threads", IMPORT_THREADS_MAX, err);
    return 0;
}

static int use_comm(struct perf_data *d, struct perf_bytes r, struct error *err)
{
    struct profile *p = d->im.profile;
    int32_t pid = (int32_t)perf_u32(r.data + HEADER), tid = (int32_t)perf_u32(r.data + HEADER + 4);
    uint32_t process, thread;
    int rc = find_process(d, pid, &process, err);
    if (!rc)
        rc = find_thread(d, process, tid, &thread, err);
    if (rc)
        return rc;
    struct text name = TEXT_INIT;
    text_at(r, HEADER + 8, &name);
    uint32_t comm = import_string(&d->im, name.data, name.len);
    text_release(&name);
    p->threads.data[thread].name = comm;
    bool exec = misc_of(r) & PERF_RECORD_MISC_COMM_EXEC;
    struct profile_process *q = &p->processes.data[process];
    if (exec && q->execs.len && q->execs.data[q->execs.len - 1].comm)
        *vector_push(&q->execs) =
            (struct profile_exec){.time = perf_bytes_time(d, r), .comm = comm};
    else if (pid == tid && q->execs.len)
        q->execs.data[q->execs.len - 1].comm = comm;
    if (exec)
        perf_space_forget(d, process);
    return 0;
}

/* A child has its parent's name and code until it says otherwise. */
static int use_fork(struct perf_data *d, struct perf_bytes r, struct error *err)
{
    struct profile *p = d->im.profile;
    int32_t pid = (int32_t)perf_u32(r.data + HEADER), ppid = (int32_t)perf_u32(r.data + HEADER + 4);
    int32_t tid = (int32_t)perf_u32(r.data + HEADER + 8);
    uint64_t time = perf_u64(r.data + HEADER + 16);
    uint32_t parent, process, thread;
    if (pid != ppid) {
        const uint64_t *old = map_get(&d->im.processes, (uint32_t)pid, 0);
        if (old && p->processes.data[*old].ended)
            map_remove(&d->im.processes, (uint32_t)pid, 0);
    }
    int rc = find_process(d, ppid, &parent, err);
    if (!rc)
        rc = find_process(d, pid, &process, err);
    if (!rc)
        rc = find_thread(d, process, tid, &thread, err);
    if (rc)
        return rc;
    p->threads.data[thread].start = time;
    if (process == parent) {
        const struct profile_process *q = &p->processes.data[process];
        if (!p->threads.data[thread].name && q->execs.len)
            p->threads.data[thread].name = q->execs.data[q->execs.len - 1].comm;
        return 0;
    }
    struct profile_process *q = &p->processes.data[process], *from = &p->processes.data[parent];
    if (parent < process)
        q->parent = parent;
    q->start = time;
    if (q->execs.len && from->execs.len && !q->execs.data[0].comm)
        q->execs.data[0].comm = from->execs.data[from->execs.len - 1].comm;
    if (!p->threads.data[thread].name && q->execs.len)
        p->threads.data[thread].name = q->execs.data[0].comm;
    perf_space_copy(d, parent, process);
    return 0;
}

static int use_exit(struct perf_data *d, struct perf_bytes r, struct error *err)
{
    struct profile *p = d->im.profile;
    int32_t pid = (int32_t)perf_u32(r.data + HEADER);
    int32_t tid = (int32_t)perf_u32(r.data + HEADER + 8);
    uint64_t time = perf_u64(r.data + HEADER + 16);
    uint32_t process, thread;
    int rc = find_process(d, pid, &process, err);
    if (!rc)
        rc = find_thread(d, process, tid, &thread, err);
    if (rc)
        return rc;
    p->threads.data[thread].ended = true;
    p->threads.data[thread].end = time;
    if (pid == tid) {
        p->processes.data[process].ended = true;
        p->processes.data[process].end = time;
    }
    return 0;
}

static void use_kernel_map(struct perf_data *d, struct perf_bytes r, size_t path_at)
{
    const char *path = (const char *)r.data + path_at;
    if (path_at + 16 <= r.len && !strncmp(path, "[kernel.kallsyms]", 16))
        d->kernel_text = perf_u64(r.data + HEADER + 24);
}

/* How long the build-id in an MMAP2 is, 0: none. Where two profilers record one process, kernels
 * leave the mark of a build-id that one asked for on the other's record, which has a device there:
 * unasked for, only the lengths that linkers make are believed. */
static size_t map_id_len(const struct perf_data *d, uint16_t misc, uint8_t len)
{
    if (!(misc & PERF_RECORD_MISC_MMAP_BUILD_ID) || len > 20)
        return 0;
    return d->maps_have_ids || len == 20 || len == 16 ? len : 0;
}

/* MMAP and MMAP2: pid, tid, address, length, file offset; of the second also a device and inode,
 * or a build-id, and protection; the path. */
static int use_map(struct perf_data *d, struct perf_bytes r, bool second, struct error *err)
{
    size_t path_at = HEADER + (second ? 64 : 32);
    uint16_t misc = misc_of(r), mode = misc & PERF_RECORD_MISC_CPUMODE_MASK;
    if (mode == PERF_RECORD_MISC_KERNEL) {
        use_kernel_map(d, r, path_at);
        return 0;
    }
    if (mode != PERF_RECORD_MISC_USER || (misc & PERF_RECORD_MISC_MMAP_DATA))
        return 0;
    const uint8_t *at = r.data + HEADER;
    size_t id_len = second ? map_id_len(d, misc, at[32]) : 0;
    uint32_t process;
    int rc = find_process(d, (int32_t)perf_u32(at), &process, err);
    if (rc)
        return rc;
    struct text path = TEXT_INIT;
    text_at(r, path_at, &path);
    rc = perf_space_map(d, process, perf_u64(at + 8), perf_u64(at + 16), perf_u64(at + 24),
                        path.data, at + 36, id_len, err);
    text_release(&path);
    return rc;
}

static uint32_t kernel_frame(struct perf_data *d, uint64_t address)
{
    return profile_frame_add(d->im.profile, d->kernel, address);
}

/* Is code of this mode (a cpumode, or a marker in a chain) the kernel's? */
static bool is_kernel_mode(uint16_t mode)
{
    return mode == PERF_RECORD_MISC_KERNEL || mode == PERF_RECORD_MISC_HYPERVISOR ||
           mode == PERF_RECORD_MISC_GUEST_KERNEL;
}

/* Frames of the chain, innermost first, into `frames`; markers say whose code follows. With
 * `kernel_only`, the user's part is left to the copied stack. */
static size_t chain_frames(struct perf_data *d, const struct perf_space *space,
                           const struct perf_sample *s, bool in_kernel, bool kernel_only,
                           uint32_t *frames)
{
    size_t n = 0;
    bool first = true; /* of its context: an exact address, others are where a call returns to */
    for (size_t i = 0; i < s->chain_len && n < PERF_CHAIN_MAX; i++) {
        uint64_t at = perf_u64(s->chain + 8 * i);
        if (at >= CONTEXT_MAX) {
            in_kernel = at == PERF_CONTEXT_KERNEL || at == PERF_CONTEXT_HV ||
                        at == PERF_CONTEXT_GUEST_KERNEL;
            first = true;
            continue;
        }
        uint64_t code = first || !at ? at : at - 1;
        first = false;
        if (in_kernel)
            frames[n++] = kernel_frame(d, code);
        else if (!kernel_only)
            frames[n++] = perf_space_frame(d, space, code);
    }
    return n;
}

static int sample_stack(struct perf_data *d, const struct perf_item *item, const uint64_t *address,
                        uint32_t *stack, struct error *err)
{
    uint32_t frames[PERF_CHAIN_MAX];
    const struct perf_sample *s = &item->sample;
    size_t n = chain_frames(d, item->space, s, item->in_kernel, item->copied, frames);
    int rc = item->copied ? perf_space_push(d, item, address, stack, err) : 0;
    if (!n && !*stack && item->has_ip)
        frames[n++] =
            item->in_kernel ? kernel_frame(d, s->ip) : perf_space_frame(d, item->space, s->ip);
    while (n && !rc)
        rc = import_push(&d->im, stack, frames[--n], err);
    return rc;
}

int perf_item_use(struct perf_data *d, const struct perf_item *item, const uint64_t *address,
                  struct error *err)
{
    const struct perf_sample *s = &item->sample;
    uint32_t stack = 0;
    int rc = sample_stack(d, item, address, &stack, err);
    perf_front_free(&d->fronts, item->front);
    if (rc)
        return rc;
    if (!item->timed)
        return import_count(&d->im, item->event, item->thread, stack, 1, s->period, err);
    return import_sample(&d->im, item->event, s->time, item->thread, stack, s->period, err);
}

static int use_sample(struct perf_data *d, struct perf_bytes r, struct error *err)
{
    struct perf_attr *a = perf_attr_of(d, r);
    struct perf_item item = {.front = r.front};
    struct perf_sample *s = &item.sample;
    uint32_t process;
    if (!a || !perf_sample_decode(d, r, a, s)) {
        perf_front_free(&d->fronts, r.front);
        d->odd++;
        return 0;
    }
    item.event = perf_attr_event(d, a);
    if (item.event == PROFILE_NONE)
        return import_too_many(&d->im, "events", IMPORT_EVENTS_MAX, err);
    int rc = find_process(d, s->pid, &process, err);
    if (!rc)
        rc = find_thread(d, process, s->tid, &item.thread, err);
    if (rc)
        return rc;
    item.space = perf_space_of(d, process);
    item.regs_mask = a->regs_user;
    item.in_kernel = is_kernel_mode(misc_of(r) & PERF_RECORD_MISC_CPUMODE_MASK);
    item.timed = a->sample_type & PERF_SAMPLE_TIME;
    item.has_ip = a->sample_type & PERF_SAMPLE_IP;
    item.copied = s->regs_len && s->stack_len && s->regs_abi == PERF_SAMPLE_REGS_ABI_64;
    return d->stacks_copied ? perf_work_add(d, &item, err) : perf_item_use(d, &item, NULL, err);
}

static void use_lost(struct perf_data *d, struct perf_bytes r, bool samples)
{
    uint64_t count = perf_u64(r.data + HEADER + (samples ? 0 : 8));
    const uint64_t *known = samples ? NULL : map_get(&d->ids, perf_u64(r.data + HEADER), 0);
    struct perf_attr *a = known ? &d->attrs.data[*known] : perf_attr_of(d, r);
    uint64_t *sum = a ? &a->lost : &d->lost;
    if (__builtin_add_overflow(*sum, count, sum))
        *sum = UINT64_MAX;
}

/* Least size of each kind of record that is used; 0 for others. */
static size_t least_size(uint32_t type)
{
    switch (type) {
    case PERF_RECORD_MMAP:
        return HEADER + 32;
    case PERF_RECORD_MMAP2:
        return HEADER + 64;
    case PERF_RECORD_COMM:
        return HEADER + 8;
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        return HEADER + 24;
    case PERF_RECORD_LOST:
        return HEADER + 16;
    case PERF_RECORD_LOST_SAMPLES:
        return HEADER + 8;
    default:
        return HEADER;
    }
}

/* May what a process has mapped be other code after this? */
static bool changes_code(uint32_t type)
{
    return type == PERF_RECORD_MMAP || type == PERF_RECORD_MMAP2 || type == PERF_RECORD_COMM ||
           type == PERF_RECORD_FORK;
}

int perf_bytes_use(struct perf_data *d, struct perf_bytes r, struct error *err)
{
    uint32_t type = perf_u32(r.data);
    if (r.len < least_size(type)) {
        d->odd++;
        return 0;
    }
    if (type == PERF_RECORD_SAMPLE)
        return use_sample(d, r, err);
    int rc = changes_code(type) ? perf_work_flush(d, err) : 0;
    if (rc)
        return rc;
    switch (type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        return use_map(d, r, type == PERF_RECORD_MMAP2, err);
    case PERF_RECORD_COMM:
        return use_comm(d, r, err);
    case PERF_RECORD_FORK:
        return use_fork(d, r, err);
    case PERF_RECORD_EXIT:
        return use_exit(d, r, err);
    case PERF_RECORD_LOST:
    case PERF_RECORD_LOST_SAMPLES:
        use_lost(d, r, type == PERF_RECORD_LOST_SAMPLES);
        return 0;
    default:
        return 0;
    }
}
