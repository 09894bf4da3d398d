/* The part of python.h that runs in handlers. */
#include "agent/python.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "agent/arch.h"
#include "agent/publish.h"
#include "agent/ring.h"

#define STACK_NEEDED 6144 /* bytes that a walk may take */
#define CODE_WORDS (sizeof(struct segment_code) / SEGMENT_WORD_BYTES)

struct python_found agent_python;

bool python_probe(uint64_t address)
{
    return raw4(SYS_rt_sigprocmask, ~0l, address, NULL, 8) == -EINVAL;
}

void python_show(struct segment_header *h)
{
    const struct python_found *f = &agent_python;
    h->python_fault = f->fault;
    if (!f->ready)
        return;
    h->python_lines = f->py.layout.lines;
    h->python_eval = f->py.eval;
    h->python_eval_end = f->eval_end;
    __atomic_store_n(&h->python,
                     (uint32_t)f->py.major << 16 | (uint32_t)f->py.minor << 8 | f->py.micro,
                     __ATOMIC_RELEASE);
}

/* Handlers may run on a small stack that the program gave them. */
static bool has_stack(const struct agent_thread *t, const ucontext_t *uc)
{
    uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    uint64_t low = (uint64_t)(uintptr_t)uc->uc_stack.ss_sp, size = uc->uc_stack.ss_size;
    if (low && here - low < size)
        return here - low >= STACK_NEEDED;
    return here < t->stack_low || here >= t->stack_end || here - t->stack_low >= STACK_NEEDED;
}

static struct python_thread *memory_of(struct agent_thread *t)
{
    if (t->python)
        return t->python;
    /* The child's half is wiped, and then nothing would lead here any more. */
    t->python = publish_map_advised(sizeof *t->python, MADV_DONTFORK);
    return t->python;
}

/* The reader of this slot has been told nothing yet. */
static void forget(struct python_thread *p, uint32_t generation)
{
    memset(p->told.known, 0, sizeof p->told.known);
    p->last_native = p->last_python = 0;
    p->generation = generation;
}

static uint8_t *put(uint8_t *to, const char *text, uint16_t *size)
{
    size_t len = strlen(text);
    *size = (uint16_t)(len < SEGMENT_TEXT_MAX ? len : SEGMENT_TEXT_MAX);
    memcpy(to, text, *size);
    return to + *size;
}

/* Writes what the code object is to the ring; false if there is no room, or no such object. */
static bool tell(struct agent_thread *t, struct python_told *p, const struct cpython_memory *memory,
                 uint64_t code)
{
    struct cpython_code *c = &p->code;
    if (cpython_code_read(&agent_python.py, memory, code, c) != 0)
        return false;
    struct segment_code head = {
        .code = code, .stamp = c->stamp, .first_line = c->first_line, .flags = c->flags};
    uint8_t *start = (uint8_t *)&p->record[CODE_WORDS], *at = start;
    at = put(at, c->qualname, &head.name);
    at = put(at, c->filename, &head.path);
    ssize_t table = cpython_table_read(memory, c, at, SEGMENT_TABLE_MAX);
    head.table = table > 0 ? (uint32_t)table : 0;
    at += head.table;
    size_t words = (size_t)(at - start + 7) / SEGMENT_WORD_BYTES;
    memset(at, 0, words * SEGMENT_WORD_BYTES - (size_t)(at - start));
    memcpy(p->record, &head, sizeof head);
    return ring_put(t, SEGMENT_CODE, 0, p->record, CODE_WORDS, &p->record[CODE_WORDS], words);
}

static uint64_t known_at(uint64_t code)
{
    return ((code >> 4) * 0x9e3779b97f4a7c15ull >> 40) % PYTHON_KNOWN;
}

uint64_t python_stamp(const struct python_told *p, const struct cpython_memory *memory,
                      uint64_t code, bool *known)
{
    uint64_t stamp, at = known_at(code);
    if (cpython_code_stamp(&agent_python.py, memory, code, &stamp) != 0)
        return 0;
    *known = p->known[at].code == code && p->known[at].stamp == stamp;
    return stamp;
}

uint64_t python_introduce(struct agent_thread *t, struct python_told *p,
                          const struct cpython_memory *memory, uint64_t code)
{
    bool known;
    uint64_t stamp = python_stamp(p, memory, code, &known), at = known_at(code);
    if (!stamp || known || !tell(t, p, memory, code))
        return stamp;
    p->known[at].code = code;
    p->known[at].stamp = stamp;
    return stamp;
}

static bool same_frame(const struct cpython_frame *a, const struct cpython_frame *b)
{
    return a->code == b->code && a->lasti == b->lasti && a->flags == b->flags;
}

const uint64_t *python_pack(struct agent_thread *t, struct segment_sample *s, size_t *words)
{
    struct python_thread *p = t->python;
    if (!p) {
        *words = s->count;
        return t->address;
    }
    if (p->generation != t->slot->generation)
        forget(p, t->slot->generation);
    uint16_t n = 0, m = 0;
    while (n < s->count && n < p->last_native && t->address[s->count - 1 - n] == p->last_address[n])
        n++;
    while (m < s->python && m < p->last_python &&
           same_frame(&p->frame[s->python - 1 - m], &p->last_frame[m]))
        m++;
    s->shared = n;
    s->python_shared = m;
    size_t native = (size_t)s->count - n, python = (size_t)s->python - m;
    memcpy(p->body, t->address, native * sizeof *p->body);
    for (size_t i = 0; i < python; i++) {
        p->body[native + 2 * i] = p->frame[i].code;
        p->body[native + 2 * i + 1] =
            (uint64_t)(uint32_t)p->frame[i].lasti | (uint64_t)p->frame[i].flags << 32;
    }
    memcpy(p->body + native + 2 * python, p->kernel, s->kernel * sizeof *p->body);
    *words = native + 2 * python + s->kernel;
    return p->body;
}

void python_packed(struct agent_thread *t, const struct segment_sample *s)
{
    struct python_thread *p = t->python;
    if (!p)
        return;
    for (size_t i = s->shared; i < s->count; i++)
        p->last_address[i] = t->address[s->count - 1 - i];
    for (size_t i = s->python_shared; i < s->python; i++)
        p->last_frame[i] = p->frame[s->python - 1 - i];
    p->last_native = s->count;
    p->last_python = s->python;
}

/* The name of a task stands where code objects are told of. */
static void introduce_task(struct agent_thread *t, const struct cpython_task *task)
{
    struct python_told *p = &t->python->told;
    uint64_t code = task->task | 1, stamp = 1469598103934665603ull;
    for (const char *c = task->name; *c; c++)
        stamp = (stamp ^ (uint8_t)*c) * 1099511628211ull;
    uint64_t at = known_at(code);
    if (p->known[at].code == code && p->known[at].stamp == stamp)
        return;
    struct segment_code head = {.code = code, .stamp = stamp};
    uint8_t *start = (uint8_t *)&p->record[CODE_WORDS], *end = put(start, task->name, &head.name);
    size_t words = (size_t)(end - start + 7) / SEGMENT_WORD_BYTES;
    memset(end, 0, words * SEGMENT_WORD_BYTES - (size_t)(end - start));
    memcpy(p->record, &head, sizeof head);
    if (!ring_put(t, SEGMENT_CODE, 0, p->record, CODE_WORDS, &p->record[CODE_WORDS], words))
        return;
    p->known[at].code = code;
    p->known[at].stamp = stamp;
}

/* Looking for asyncio's dict goes through all modules: more and more rarely where there is none. */
static bool tasks_are_known(const struct cpython_memory *memory, uint64_t interp)
{
    struct python_found *f = &agent_python;
    uint64_t tasks;
    if (__atomic_load_n(&f->tasks, __ATOMIC_RELAXED))
        return true;
    uint32_t looked = __atomic_add_fetch(&f->looked, 1, __ATOMIC_RELAXED);
    if (looked < __atomic_load_n(&f->look_next, __ATOMIC_RELAXED))
        return false;
    __atomic_store_n(&f->look_next, looked < 1024 ? 2 * looked : looked + 1024, __ATOMIC_RELAXED);
    if (cpython_tasks(&f->py, memory, interp, &tasks) != 0)
        return false;
    __atomic_store_n(&f->tasks, tasks, __ATOMIC_RELAXED);
    return true;
}

/* Adds the task that runs these frames, if there is one; the new count. */
static size_t add_task(struct agent_thread *t, const struct cpython_memory *memory, uint64_t interp,
                       size_t count)
{
    struct python_thread *p = t->python;
    size_t i = 0;
    while (i < count && !(p->frame[i].flags & CPYTHON_FRAME_GENERATOR))
        i++;
    if (i == count || !tasks_are_known(memory, interp) ||
        cpython_task(&agent_python.py, memory, agent_python.tasks, p->frame, count, &p->task) != 0)
        return count;
    size_t now = cpython_task_insert(p->frame, count, SEGMENT_PYTHON_DEPTH, &p->task);
    if (now > count)
        introduce_task(t, &p->task);
    return now;
}

size_t python_walk(struct agent_thread *t, const void *ucontext, uint64_t sp, bool *whole,
                   bool *gil)
{
    const struct python_found *f = &agent_python;
    if (!__atomic_load_n(&f->ready, __ATOMIC_ACQUIRE) || !f->py.this_thread || agent_quiet ||
        !has_stack(t, ucontext) || !memory_of(t))
        return 0;
    struct python_thread *p = t->python;
    if (p->generation != t->slot->generation)
        forget(p, t->slot->generation);
    void *(*this_thread)(void);
    memcpy(&this_thread, &f->py.this_thread, sizeof this_thread);
    uint64_t state = (uint64_t)(uintptr_t)this_thread();
    if (!state)
        return 0;
    bool own = sp >= t->stack_low && sp < t->stack_end;
    struct cpython_memory memory;
    struct cpython_end end;
    cpython_memory_local(&memory, &p->pages, python_probe, own ? sp : 0, own ? t->stack_end : 0);
    size_t count = cpython_walk(&f->py, &memory, state, p->frame, SEGMENT_PYTHON_DEPTH, &end);
    *whole = end.reason == CPYTHON_COMPLETE;
    uint64_t interp = 0, holder = 0;
    cpython_interp(&f->py, &memory, state, &interp);
    *gil = cpython_gil(&f->py, &memory, interp, &holder) == 0 && holder == state;
    for (size_t i = 0; i < count; i++)
        if (i == 0 || p->frame[i].code != p->frame[i - 1].code)
            python_introduce(t, &p->told, &memory, p->frame[i].code);
    return interp ? add_task(t, &memory, interp, count) : count;
}
