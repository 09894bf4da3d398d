/*
 * A profile as perf.data: who ran, what was mapped and every sample with its call chain, in the
 * order of their times. The header says how long the records are, so they are gone through twice:
 * once to add up their sizes. Only frames with an address can be written; the names of all are
 * looked up by whoever reads the file.
 */
#include "formats/perf_data_write.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/kernel.h"
#include "base/memory.h"
#include "formats/perf_data_layout.h"

#define CHAIN_MAX 4096 /* words of a chain, markers among them */
#define NAME_MAX_LEN ((size_t)4000)

/* When somebody begins or ends. */
struct moment {
    uint64_t time;
    uint32_t thread; /* or the process, by `of_process` */
    bool of_process, ends;
};

struct data_writer {
    const struct profile *p;
    struct sink *out; /* NULL while sizes are added up */
    uint64_t size;
    struct perf_events events;
    struct layout layout;
    uint64_t kernel_text;      /* 0: not known */
    uint16_t *chain_words;     /* by stack, plus one; 0: not known yet */
    bool *timed;               /* by event */
    bool *processes, *threads; /* by number: has begun */
    VECTOR(struct moment) moments;
    size_t next_moment;
    uint64_t time; /* of the record in hand */
    struct text record;
};

static void put(struct data_writer *w, const void *bytes, size_t len)
{
    w->size += len;
    if (w->out)
        sink_add(w->out, bytes, len);
}

static void add_u64(struct text *out, uint64_t value)
{
    text_add_len(out, &value, sizeof value);
}

static uint64_t pair(int32_t low, int32_t high)
{
    return (uint32_t)low | (uint64_t)(uint32_t)high << 32;
}

static void begin_record(struct data_writer *w)
{
    text_clear(&w->record);
    text_add_repeat(&w->record, 0, sizeof(struct perf_event_header));
}

/* With what stands at the end of every record that is no sample: who, when, which counter. */
static void end_record(struct data_writer *w, uint32_t type, uint16_t misc, int32_t pid,
                       int32_t tid)
{
    add_u64(&w->record, pair(pid, tid));
    add_u64(&w->record, w->time);
    add_u64(&w->record, 1);
    struct perf_event_header head = {type, misc, (uint16_t)w->record.len};
    memcpy(w->record.data, &head, sizeof head);
    put(w, w->record.data, w->record.len);
}

/* A text with its NUL, to a multiple of eight bytes. */
static void add_name(struct data_writer *w, const char *name)
{
    struct text *out = &w->record;
    size_t before = out->len;
    text_add_printable(out, name);
    if (out->len - before > NAME_MAX_LEN)
        out->len = before + NAME_MAX_LEN;
    text_add_repeat(out, 0, 8 - (out->len - before) % 8);
}

static void put_comm(struct data_writer *w, int32_t pid, int32_t tid, const char *name)
{
    begin_record(w);
    add_u64(&w->record, pair(pid, tid));
    add_name(w, name);
    end_record(w, PERF_RECORD_COMM, 0, pid, tid);
}

static void put_task(struct data_writer *w, uint32_t type, int32_t pid, int32_t ppid, int32_t tid,
                     int32_t ptid)
{
    begin_record(w);
    add_u64(&w->record, pair(pid, ppid));
    add_u64(&w->record, pair(tid, ptid));
    add_u64(&w->record, w->time);
    end_record(w, type, 0, pid, tid);
}

static void put_map(struct data_writer *w, int32_t pid, uint32_t module)
{
    const struct profile_module *m = &w->p->modules.data[module];
    const struct layout_module *at = &w->layout.modules[module];
    uint8_t id[24] = {m->build_id_len};
    bool has_id = m->kind == CODE_ELF && m->build_id_len && m->build_id_len <= 20;
    begin_record(w);
    add_u64(&w->record, pair(pid, pid));
    add_u64(&w->record, at->start);
    add_u64(&w->record, at->end - at->start);
    add_u64(&w->record, at->offset);
    memcpy(id + 4, m->build_id, has_id ? m->build_id_len : 0);
    text_add_len(&w->record, has_id ? id : (uint8_t[24]){0}, sizeof id);
    add_u64(&w->record, pair(PROT_READ | PROT_EXEC, MAP_PRIVATE));
    add_name(w, m->kind == CODE_JIT ? "//anon" : profile_text(w->p, m->path));
    end_record(w, PERF_RECORD_MMAP2,
               PERF_RECORD_MISC_USER | (has_id ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0), pid, pid);
}

/* Where the kernel stood. A recording does not say, but if it is of this boot, it stands there. */
static void put_kernel(struct data_writer *w)
{
    const struct profile *p = w->p;
    uint64_t last = 0;
    for (uint32_t i = 0; i < p->modules.len; i++)
        if (p->modules.data[i].kind == CODE_KERNEL && w->layout.modules[i].last > last)
            last = w->layout.modules[i].last;
    if (last <= w->kernel_text || !w->kernel_text)
        return;
    begin_record(w);
    add_u64(&w->record, pair(-1, 0));
    add_u64(&w->record, w->kernel_text);
    add_u64(&w->record, (last - w->kernel_text) / 4096 * 4096 + 4096);
    add_u64(&w->record, w->kernel_text);
    add_name(w, "[kernel.kallsyms]_text");
    end_record(w, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL, -1, 0);
}

/* All that is mapped anywhere; code that was compiled at run time only in the process whose it is,
 * as the name of its map says. */
static void put_maps(struct data_writer *w, int32_t pid, bool own)
{
    char jit[64];
    snprintf(jit, sizeof jit, "/tmp/perf-%d.map", pid);
    for (uint32_t i = 0; i < w->p->modules.len; i++) {
        const struct layout_module *m = &w->layout.modules[i];
        const struct profile_module *of = &w->p->modules.data[i];
        if (m->start == m->end)
            continue;
        if (of->kind == CODE_JIT ? !strcmp(profile_text(w->p, of->path), jit) : own)
            put_map(w, pid, i);
    }
}

/* A child has what its parent has mapped; who has no parent maps everything. */
static void begin_process(struct data_writer *w, uint32_t process)
{
    const struct profile_process *q = &w->p->processes.data[process];
    bool child = q->parent < w->p->processes.len && w->processes[q->parent];
    if (w->processes[process])
        return;
    w->processes[process] = true;
    if (child) {
        int32_t parent = w->p->processes.data[q->parent].pid;
        put_task(w, PERF_RECORD_FORK, q->pid, parent, q->pid, parent);
    }
    put_comm(w, q->pid, q->pid, profile_process_name(w->p, process));
    put_maps(w, q->pid, !child);
}

static void begin_thread(struct data_writer *w, uint32_t thread)
{
    const struct profile_thread *t = &w->p->threads.data[thread];
    int32_t pid = w->p->processes.data[t->process].pid;
    const char *name = profile_text(w->p, t->name);
    if (w->threads[thread])
        return;
    w->threads[thread] = true;
    begin_process(w, t->process);
    if (t->tid == pid)
        return;
    put_task(w, PERF_RECORD_FORK, pid, pid, t->tid, pid);
    if (name[0])
        put_comm(w, pid, t->tid, name);
}

static void use_moment(struct data_writer *w, const struct moment *m)
{
    const struct profile *p = w->p;
    if (m->time > w->time)
        w->time = m->time;
    if (m->of_process && !m->ends) {
        begin_process(w, m->thread);
    } else if (m->of_process) {
        const struct profile_process *q = &p->processes.data[m->thread];
        put_task(w, PERF_RECORD_EXIT, q->pid, q->pid, q->pid, q->pid);
    } else if (!m->ends) {
        begin_thread(w, m->thread);
    } else {
        const struct profile_thread *t = &p->threads.data[m->thread];
        int32_t pid = p->processes.data[t->process].pid;
        put_task(w, PERF_RECORD_EXIT, pid, pid, t->tid, pid);
    }
}

static int compare(const void *left, const void *right)
{
    const struct moment *a = left, *b = right;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    if (a->ends != b->ends)
        return a->ends - b->ends;
    if (a->of_process != b->of_process)
        return (b->of_process - a->of_process) * (a->ends ? -1 : 1);
    return (a->thread > b->thread) - (a->thread < b->thread);
}

static void find_moments(struct data_writer *w)
{
    const struct profile *p = w->p;
    for (uint32_t i = 0; i < p->processes.len; i++) {
        const struct profile_process *q = &p->processes.data[i];
        *vector_push(&w->moments) = (struct moment){q->start, i, true, false};
        if (q->ended)
            *vector_push(&w->moments) = (struct moment){q->end, i, true, true};
    }
    for (uint32_t i = 0; i < p->threads.len; i++) {
        const struct profile_thread *t = &p->threads.data[i];
        *vector_push(&w->moments) = (struct moment){t->start, i, false, false};
        if (t->ended && t->tid != p->processes.data[t->process].pid)
            *vector_push(&w->moments) = (struct moment){t->end, i, false, true};
    }
    if (w->moments.len)
        qsort(w->moments.data, w->moments.len, sizeof *w->moments.data, compare);
}

static void pass_moments(struct data_writer *w, uint64_t until)
{
    while (w->next_moment < w->moments.len && w->moments.data[w->next_moment].time <= until)
        use_moment(w, &w->moments.data[w->next_moment++]);
}

/* Addresses from the innermost on; a marker says whose code follows. The first behind a marker is
 * exact, of all others a profile keeps the byte before that to which a call returns. */
static size_t fill_chain(const struct data_writer *w, uint32_t stack, uint64_t *chain)
{
    size_t n = 0;
    int mode = -1;
    for (; stack && n + 2 <= CHAIN_MAX; stack = w->p->stacks.data[stack].parent) {
        struct layout_frame f = w->layout.frames[w->p->stacks.data[stack].frame];
        if (!f.address)
            continue;
        bool first = mode != f.kernel;
        mode = f.kernel;
        if (first)
            chain[n++] = f.kernel ? (uint64_t)PERF_CONTEXT_KERNEL : (uint64_t)PERF_CONTEXT_USER;
        chain[n++] = f.address + !first;
    }
    return n;
}

enum sample_word {
    WORD_HEADER,
    WORD_ID,
    WORD_IP,
    WORD_WHO,
    WORD_TIME,
    WORD_PERIOD,
    WORD_COUNT,
    WORD_CHAIN
};

static void put_sample(struct data_writer *w, const struct profile_sample *s)
{
    uint64_t words[WORD_CHAIN + CHAIN_MAX];
    uint16_t *known = &w->chain_words[s->stack];
    w->time = s->time > w->time ? s->time : w->time;
    pass_moments(w, s->time);
    begin_thread(w, s->thread);
    if (!w->out && *known) {
        w->size += 8 * (WORD_CHAIN + (uint64_t)*known - 1);
        return;
    }
    size_t n = fill_chain(w, s->stack, words + WORD_CHAIN);
    *known = (uint16_t)(n + 1);
    const struct profile_thread *t = &w->p->threads.data[s->thread];
    bool kernel = n && words[WORD_CHAIN] == (uint64_t)PERF_CONTEXT_KERNEL;
    struct perf_event_header head = {PERF_RECORD_SAMPLE,
                                     kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER,
                                     (uint16_t)(8 * (WORD_CHAIN + n))};
    memcpy(&words[WORD_HEADER], &head, sizeof head);
    words[WORD_ID] = w->events.number[s->event];
    words[WORD_IP] = n ? words[WORD_CHAIN + 1] : 0;
    words[WORD_WHO] = pair(w->p->processes.data[t->process].pid, t->tid);
    words[WORD_TIME] = w->time;
    words[WORD_PERIOD] = s->value;
    words[WORD_COUNT] = n;
    put(w, words, 8 * (WORD_CHAIN + n));
}

static void put_losses(struct data_writer *w)
{
    for (size_t i = 0; i < w->p->losses.len; i++) {
        const struct profile_loss *l = &w->p->losses.data[i];
        if (l->event >= w->p->events.len || !w->events.number[l->event])
            continue;
        begin_record(w);
        add_u64(&w->record, w->events.number[l->event]);
        add_u64(&w->record, l->count);
        end_record(w, PERF_RECORD_LOST, 0, -1, -1);
    }
}

static bool stopped(const struct data_writer *w)
{
    return w->out && sink_failed(w->out);
}

/* All records, from the beginning. */
static int put_records(struct data_writer *w, struct error *err)
{
    const struct profile *p = w->p;
    struct samples_cursor cursor;
    struct profile_sample s;
    w->size = w->time = w->next_moment = 0;
    memset(w->processes, 0, p->processes.len * sizeof *w->processes);
    memset(w->threads, 0, p->threads.len * sizeof *w->threads);
    put_kernel(w);
    samples_begin(&cursor, &p->samples, SAMPLES_ALL, SAMPLES_ALL);
    while (!stopped(w) && samples_next(&cursor, &s))
        if (w->timed[s.event] && w->events.number[s.event])
            put_sample(w, &s);
    int rc = samples_end(&cursor, err);
    for (size_t i = 0; i < p->cells.len && !stopped(w); i++) {
        const struct profile_cell *c = &p->cells.data[i];
        if (!w->timed[c->event] && w->events.number[c->event])
            put_sample(w,
                       &(struct profile_sample){w->time, c->value, c->event, c->thread, c->stack});
    }
    pass_moments(w, UINT64_MAX);
    put_losses(w);
    return rc;
}

/* Those that have samples; where none has, the first one, for a file without any. */
static void choose_events(struct data_writer *w, uint32_t chosen)
{
    for (uint32_t i = 0; i < w->p->events.len; i++) {
        const struct profile_event *e = &w->p->events.data[i];
        w->timed[i] = profile_is_timed(w->p, i);
        if ((e->samples || e->value) && (chosen == PROFILE_NONE || chosen == i))
            w->events.number[i] = ++w->events.count;
    }
    if (!w->events.count && w->p->events.len)
        w->events.number[chosen == PROFILE_NONE ? 0 : chosen] = ++w->events.count;
}

int perf_data_write(const struct profile *p, const struct export_options *options, struct sink *out,
                    struct error *err)
{
    struct data_writer w = {.p = p, .events.p = p};
    w.events.number = memory_array(p->events.len + 1, sizeof *w.events.number);
    w.timed = memory_array(p->events.len + 1, sizeof *w.timed);
    w.processes = memory_array(p->processes.len + 1, sizeof *w.processes);
    w.threads = memory_array(p->threads.len + 1, sizeof *w.threads);
    w.chain_words = memory_array(p->stacks.len + 1, sizeof *w.chain_words);
    text_init(&w.record);
    layout_init(&w.layout, p);
    if (kernel_is(profile_meta_get(p, "kernel"), profile_meta_get(p, "host")) &&
        kernel_ran(p->wall_start))
        w.kernel_text = kernel_text();
    choose_events(&w, options->event);
    find_moments(&w);
    int rc = w.events.count ? put_records(&w, err)
                            : error_set(err, FAULT_MISSING, "there are no samples to write");
    if (!rc) {
        perf_write_front(&w.events, w.size, out);
        w.out = out;
        rc = put_records(&w, err);
    }
    if (!rc)
        perf_write_features(&w.events, w.size, out);
    layout_release(&w.layout);
    text_release(&w.record);
    vector_release(&w.moments);
    free(w.chain_words);
    free(w.threads);
    free(w.processes);
    free(w.timed);
    free(w.events.number);
    return rc;
}
