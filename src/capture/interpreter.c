/* See interpreter.h. */
#include "capture/interpreter.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "capture/elf_names.h"
#include "capture/nesting.h"
#include "capture/python_files.h"
#include "cpython/cpython.h"

#define THREADS_MAX 4096
#define DEPTH SEGMENT_PYTHON_DEPTH
#define LOCK_BYTES 256 /* of a _gil_runtime_state, and more */
#define MS 1000000ull
#define THREADS_AGE (250 * MS) /* how long the list of threads is believed */
#define THREADS_PAUSE (5 * MS) /* and how soon it is read again for one that is not on it */
#define LOOK_PAUSE (100 * MS)  /* what was not there is looked for again after this */

struct interpreter {
    struct nesting nesting;
    struct cpython py;
    struct cpython_memory memory;
    struct cpython_ahead ahead;
    uint64_t eval_end, runtime_end;
    uint64_t lock, lock_looked; /* where the lock is, from 3.12 on */
    uint64_t tasks, tasks_looked;
    struct python_process *process;
    struct python_thread *thread;
    struct map stamps; /* code -> its stamp when it was read */
    struct map marks;  /* code and its mark in copies of frames -> its stamp */
    struct cpython_thread list[THREADS_MAX];
    size_t threads;
    uint64_t threads_read;
    struct cpython_frame walked[DEPTH];
    uint32_t frame[DEPTH], flags[DEPTH];
    uint8_t table[SEGMENT_TABLE_MAX];
};

void interpreter_modules_release(struct interpreter_modules *m)
{
    for (size_t i = 0; m->by_module.len && i <= m->by_module.mask; i++)
        if (m->by_module.slots[i].used)
            elf_names_free((struct elf_names *)(uintptr_t)m->by_module.slots[i].value);
    map_release(&m->by_module);
}

/* The module's names if it has an interpreter in it, else NULL. */
static const struct elf_names *names_of(struct interpreter_modules *known, const struct module *m)
{
    bool added;
    uint64_t address, size;
    uint64_t *at = map_put(&known->by_module, (uint64_t)(uintptr_t)m, 0, 0, &added);
    if (!added)
        return (const struct elf_names *)(uintptr_t)*at;
    struct elf_names *names =
        m->kind == CODE_ELF && m->path ? elf_names_read(m, python_files_is_one(m->path)) : NULL;
    if (names && !elf_names_find(names, "_PyEval_EvalFrameDefault", &address, &size) &&
        !elf_names_find(names, "PyEval_EvalFrameEx", &address, &size)) {
        elf_names_free(names);
        names = NULL;
    }
    *at = (uint64_t)(uintptr_t)names;
    return names;
}

struct lookup {
    const struct elf_names *names;
    uint64_t bias;
};

static bool symbol(void *context, const char *name, uint64_t *address)
{
    const struct lookup *l = context;
    uint64_t size;
    if (!elf_names_find(l->names, name, address, &size))
        return false;
    *address += l->bias;
    return true;
}

static uint64_t end_of(const struct lookup *l, const char *name)
{
    uint64_t address = 0, size = 0;
    return elf_names_find(l->names, name, &address, &size) ? address + l->bias + size : 0;
}

static struct interpreter *open_module(const struct lookup *l, const char *path, pid_t pid,
                                       int *fault)
{
    struct interpreter *i = memory_alloc(sizeof *i);
    struct lookup copy = *l;
    struct cpython_module module = {.path = path, .symbol = symbol, .ctx = &copy};
    nesting_init(&i->nesting, pid, 0);
    cpython_memory_remote(&i->memory, pid, &i->ahead);
    *fault = cpython_open(&i->py, &module, &i->memory);
    if (*fault) {
        free(i);
        return NULL;
    }
    i->eval_end = end_of(l, "_PyEval_EvalFrameDefault");
    i->runtime_end = end_of(l, "_PyRuntime");
    return i;
}

struct interpreter *interpreter_open(struct interpreter_modules *known, struct writer *writer,
                                     struct modules *modules, pid_t pid, const struct space *space,
                                     int *fault)
{
    *fault = 0;
    for (size_t k = 0; k < space->maps.all.len; k++) {
        const struct range *m = &space->maps.all.data[k];
        struct module *module = m->owner;
        struct lookup l = {.names = names_of(known, module), .bias = m->bias};
        if (!l.names)
            continue;
        struct interpreter *i = open_module(&l, module->path, pid, fault);
        if (!i)
            return NULL;
        struct agents_process like = {.pid = pid, .python_lines = i->py.layout.lines};
        i->process = python_process_new(writer, modules, &like);
        i->thread = python_thread_new();
        return i;
    }
    return NULL;
}

void interpreter_free(struct interpreter *i)
{
    if (!i)
        return;
    python_process_free(i->process);
    python_thread_free(i->thread);
    map_release(&i->stamps);
    map_release(&i->marks);
    nesting_release(&i->nesting);
    free(i);
}

void interpreter_loop(const struct interpreter *i, uint64_t *start, uint64_t *end)
{
    *start = i->py.eval;
    *end = i->eval_end;
}

static void threads_read(struct interpreter *i, uint64_t now)
{
    ssize_t n = cpython_threads(&i->py, &i->memory, i->nesting.inner, i->list, THREADS_MAX);
    i->threads = n > 0 ? (size_t)n : 0;
    for (size_t k = 0; k < i->threads; k++)
        i->list[k].native_id = (uint64_t)nesting_here(&i->nesting, (pid_t)i->list[k].native_id);
    i->threads_read = now;
}

static const struct cpython_thread *find_listed(const struct interpreter *i, pid_t tid)
{
    for (size_t k = 0; k < i->threads; k++)
        if (i->list[k].native_id == (uint64_t)tid)
            return &i->list[k];
    return NULL;
}

static const struct cpython_thread *thread_of(struct interpreter *i, pid_t tid)
{
    uint64_t now = clock_now();
    if (now - i->threads_read > THREADS_AGE)
        threads_read(i, now);
    const struct cpython_thread *t = find_listed(i, tid);
    if (t || now - i->threads_read < THREADS_PAUSE)
        return t;
    threads_read(i, now);
    return find_listed(i, tid);
}

/* Makes the code's name and lines known if they are not, or are another's. */
static void introduce(struct interpreter *i, uint64_t code)
{
    bool added;
    uint64_t stamp;
    struct cpython_code c;
    if (cpython_code_stamp(&i->py, &i->memory, code, &stamp) != 0)
        return;
    uint64_t *known = map_put(&i->stamps, code, 0, stamp, &added);
    if ((!added && *known == stamp) || cpython_code_read(&i->py, &i->memory, code, &c) != 0)
        return;
    *known = c.stamp;
    ssize_t size = cpython_table_read(&i->memory, &c, i->table, sizeof i->table);
    struct agents_code told = {.code = code,
                               .stamp = c.stamp,
                               .first_line = c.first_line,
                               .name = c.qualname,
                               .path = c.filename,
                               .name_len = strlen(c.qualname),
                               .path_len = strlen(c.filename),
                               .table = i->table,
                               .table_len = size > 0 ? (uint32_t)size : 0};
    python_on_code(i->process, i->thread, &told);
}

static void introduce_task(struct interpreter *i, const struct cpython_task *task)
{
    uint64_t stamp = 1469598103934665603ull;
    for (const char *c = task->name; *c; c++)
        stamp = (stamp ^ (uint8_t)*c) * 1099511628211ull;
    struct agents_code told = {.code = task->task | 1,
                               .stamp = stamp,
                               .name = task->name,
                               .path = "",
                               .name_len = strlen(task->name),
                               .table = i->table};
    python_on_code(i->process, i->thread, &told);
}

static size_t add_task(struct interpreter *i, const struct cpython_memory *memory, uint64_t interp,
                       size_t count, uint64_t now)
{
    struct cpython_task task;
    size_t k = 0;
    while (k < count && !(i->walked[k].flags & CPYTHON_FRAME_GENERATOR))
        k++;
    if (k == count)
        return count;
    if (!i->tasks && now - i->tasks_looked > LOOK_PAUSE) {
        i->tasks_looked = now;
        if (cpython_tasks(&i->py, &i->memory, interp, &i->tasks) != 0)
            i->tasks = 0;
    }
    if (!i->tasks || cpython_task(&i->py, memory, i->tasks, i->walked, count, &task) != 0)
        return count;
    size_t more = cpython_task_insert(i->walked, count, DEPTH, &task);
    if (more > count)
        introduce_task(i, &task);
    return more;
}

/* Its file's name, its own and the table of its lines stand in a row. */
static uint32_t mark_size(const struct layout *l)
{
    uint32_t size = l->code_table + 8 - l->code_filename, most = 8 * FRAME_COPIES_MARKS;
    return l->code_table < l->code_filename || size > most ? most : size;
}

/* Whether the code at that address is still what was there when the frame was copied. */
static bool is_marked(const struct interpreter *i, uint64_t code, uint64_t mark)
{
    const struct layout *l = &i->py.layout;
    uint64_t words[FRAME_COPIES_MARKS] = {0};
    const struct cpython_piece piece = {code + l->code_filename, words, mark_size(l)};
    return i->memory.read(i->memory.ctx, &piece, 1) == 1 && frame_mark(words) == mark;
}

/* The mark of the code, from the frames that were copied; they come in the same order. */
static uint64_t mark_in(const struct interpreter *i, const struct frame_copy *copy, uint64_t code,
                        size_t *next)
{
    for (; *next < copy->bytes / sizeof *copy->frame; ++*next) {
        uint64_t word;
        memcpy(&word, copy->frame[*next].bytes + i->py.layout.frame_code, sizeof word);
        if ((word & ~3ull) == code)
            return copy->frame[(*next)++].mark;
    }
    return 0;
}

/* The frame in the recording of one that was copied: by then its code may be gone, or another. */
static uint32_t frame_copied(struct interpreter *i, const struct frame_copy *copy,
                             const struct cpython_frame *f, size_t *next)
{
    if (f->flags & CPYTHON_FRAME_TASK)
        return python_frame(i->process, i->thread, f->code, f->lasti);
    uint64_t mark = mark_in(i, copy, f->code, next);
    const uint64_t *stamp = map_get(&i->marks, f->code, mark);
    if (!stamp && is_marked(i, f->code, mark)) {
        introduce(i, f->code);
        stamp = map_get(&i->stamps, f->code, 0);
        if (stamp)
            map_put(&i->marks, f->code, mark, *stamp, NULL);
    }
    return python_frame_stamped(i->process, f->code, stamp ? *stamp & HEAP_STAMP_MASK : 0,
                                f->lasti);
}

static uint32_t frame_now(struct interpreter *i, const struct cpython_frame *f)
{
    if (!(f->flags & CPYTHON_FRAME_TASK))
        introduce(i, f->code);
    return python_frame(i->process, i->thread, f->code, f->lasti);
}

/* The frames of a thread, in `memory`, which has those of `copy` if there is one. */
static enum interpreter_answer walk(struct interpreter *i, const struct cpython_thread *t,
                                    const struct cpython_memory *memory,
                                    const struct frame_copy *copy, struct interpreter_stack *out)
{
    uint64_t now = clock_now();
    struct cpython_end end;
    size_t count = cpython_walk(&i->py, memory, t->state, i->walked, DEPTH, &end), next = 0;
    bool is_cut = end.reason == CPYTHON_UNREAD && copy && copy->rest && end.address == copy->rest;
    size_t copied = copy ? copy->bytes / sizeof *copy->frame : 0;
    if (end.reason != CPYTHON_COMPLETE && end.reason != CPYTHON_DEPTH && !is_cut)
        return INTERPRETER_REJECTED;
    if (!count)
        return INTERPRETER_NONE;
    out->count = add_task(i, memory, t->interp, count, now);
    out->whole = end.reason == CPYTHON_COMPLETE;
    for (size_t k = 0; k < out->count; k++) {
        i->frame[k] = next < copied ? frame_copied(i, copy, &i->walked[k], &next)
                                    : frame_now(i, &i->walked[k]);
        i->flags[k] = i->walked[k].flags;
    }
    return INTERPRETER_READ;
}

enum interpreter_answer interpreter_walk(struct interpreter *i, pid_t tid,
                                         struct interpreter_stack *out)
{
    const struct cpython_thread *t = thread_of(i, tid);
    uint64_t holder = 0;
    *out = (struct interpreter_stack){.frame = i->frame, .flags = i->flags};
    if (!t)
        return INTERPRETER_NONE;
    out->gil = cpython_gil(&i->py, &i->memory, t->interp, &holder) == 0 && holder == t->state;
    return walk(i, t, &i->memory, NULL, out);
}

bool interpreter_plan(struct interpreter *i, pid_t tid, struct frame_plan *plan)
{
    const struct layout *l = &i->py.layout;
    const struct cpython_thread *t = thread_of(i, tid);
    bool between = l->cframe_frame != LAYOUT_ABSENT;
    if (!t)
        return false;
    *plan = (struct frame_plan){.state = t->state,
                                .state_size = (uint32_t)layout_thread_size(l),
                                .top = l->thread_frame,
                                .between = between,
                                .between_top = between ? l->cframe_frame : 0,
                                .frame_size = (uint32_t)layout_frame_size(l),
                                .back = l->frame_back,
                                .code = l->frame_code,
                                .mark = l->code_filename,
                                .mark_size = mark_size(l),
                                .tasks = i->tasks ? i->tasks + l->dict.keys : 0};
    return true;
}

struct copied_memory {
    const struct frame_copy *copy;
    const struct cpython_memory *process;
    size_t state_size, frame_size;
    size_t next; /* of the frames: mostly the next one is asked for */
    bool ends;   /* where the copy ends: what is further out is not read from the process */
};

static const uint8_t *within(uint64_t start, const void *bytes, size_t size,
                             const struct cpython_piece *piece)
{
    uint64_t at = piece->address - start;
    return start && at <= size && piece->size <= size - at ? (const uint8_t *)bytes + at : NULL;
}

static const uint8_t *find_copied(struct copied_memory *m, const struct cpython_piece *piece)
{
    const struct frame_copy *k = m->copy;
    size_t count = k->bytes / sizeof *k->frame;
    const uint8_t *found = within(k->state_at, k->state, m->state_size, piece);
    if (!found)
        found = within(k->between_at, k->between, sizeof k->between, piece);
    if (!found && k->tasks_at)
        found = within(k->tasks_at, &k->tasks, sizeof k->tasks, piece);
    if (!found && k->tasks_at)
        found = within(k->tasks, k->table, sizeof k->table, piece);
    for (size_t n = 0; n < count && !found; n++) {
        size_t at = (m->next + n) % count;
        found = within(k->frame[at].address, k->frame[at].bytes, m->frame_size, piece);
        if (found)
            m->next = at;
    }
    return found;
}

/* What was not copied (names, code, frames too far out) is read from the process. */
static size_t read_copied(void *context, const struct cpython_piece *piece, size_t count)
{
    struct copied_memory *m = context;
    for (size_t n = 0; n < count; n++) {
        const uint8_t *found = find_copied(m, &piece[n]);
        if (found)
            memcpy(piece[n].to, found, piece[n].size);
        else if ((m->ends && piece[n].address == m->copy->rest) ||
                 m->process->read(m->process->ctx, &piece[n], 1) != 1)
            return n;
    }
    return count;
}

/* Whether the state is still that thread's: its number may have been another's before. */
static bool is_of(const struct interpreter *i, const struct cpython_thread *t,
                  const struct frame_copy *k)
{
    uint64_t ident;
    uint32_t at = i->py.layout.thread_ident;
    memcpy(&ident, k->state + at, sizeof ident);
    return t->state == k->state_at && at + sizeof ident <= layout_thread_size(&i->py.layout) &&
           ident == t->ident;
}

enum interpreter_answer interpreter_walk_copy(struct interpreter *i, const struct frame_copy *copy,
                                              struct interpreter_stack *out)
{
    const struct cpython_thread *t = thread_of(i, (pid_t)copy->tid);
    struct copied_memory m = {.copy = copy,
                              .process = &i->memory,
                              .state_size = layout_thread_size(&i->py.layout),
                              .frame_size = layout_frame_size(&i->py.layout)};
    const struct cpython_memory memory = {.read = read_copied, .ctx = &m};
    *out = (struct interpreter_stack){.frame = i->frame, .flags = i->flags};
    if (!t || !is_of(i, t, copy))
        return INTERPRETER_REJECTED;
    /* Where the ring was full, or a page not there, the outer frames are where they were if it is
     * not long ago. */
    m.ends = copy->rest && clock_now() - copy->time > INTERPRETER_LATE;
    enum interpreter_answer answer = walk(i, t, &memory, copy, out);
    if (answer != INTERPRETER_REJECTED || m.ends || !copy->rest)
        return answer;
    m.ends = true;
    return walk(i, t, &memory, copy, out);
}

struct naming {
    struct interpreter *interpreter;
    void (*each)(void *context, pid_t tid, const char *name);
    void *context;
};

static void on_name(void *context, uint64_t ident, const char *name)
{
    struct naming *n = context;
    const struct interpreter *i = n->interpreter;
    for (size_t k = 0; k < i->threads; k++)
        if (i->list[k].ident == ident)
            n->each(n->context, (pid_t)i->list[k].native_id, name);
}

void interpreter_names(struct interpreter *i,
                       void (*each)(void *context, pid_t tid, const char *name), void *context)
{
    struct naming n = {.interpreter = i, .each = each, .context = context};
    threads_read(i, clock_now());
    for (size_t k = 0; k < i->threads; k++)
        if (k == 0 || i->list[k].interp != i->list[k - 1].interp)
            cpython_thread_names(&i->py, &i->memory, i->list[k].interp, on_name, &n);
}

pid_t interpreter_holder(struct interpreter *i)
{
    uint64_t state = 0;
    if (cpython_gil(&i->py, &i->memory, 0, &state) != 0 || !state)
        return 0;
    for (int again = 0; again < 2; again++) {
        for (size_t k = 0; k < i->threads; k++)
            if (i->list[k].state == state)
                return (pid_t)i->list[k].native_id;
        threads_read(i, clock_now());
    }
    return 0;
}

bool interpreter_is_lock(struct interpreter *i, uint64_t address)
{
    const struct layout *l = &i->py.layout;
    if (l->interp_gil == LAYOUT_ABSENT)
        return i->py.runtime && address - i->py.runtime < i->runtime_end - i->py.runtime;
    uint64_t interp = 0, now = clock_now();
    if (!i->lock && now - i->lock_looked > LOOK_PAUSE) {
        const struct cpython_piece first = {i->py.interpreters, &interp, 8};
        i->lock_looked = now;
        if (i->memory.read(i->memory.ctx, &first, 1) == 1 && interp) {
            const struct cpython_piece lock = {interp + l->interp_gil, &i->lock, 8};
            if (i->memory.read(i->memory.ctx, &lock, 1) != 1)
                i->lock = 0;
        }
    }
    return i->lock && address - i->lock < LOCK_BYTES;
}

pid_t interpreter_mutex_holder(struct interpreter *i, uint64_t address)
{
    /* glibc's pthread_mutex_t: the futex (2: somebody waits), how often, who has it. */
    int32_t word[3] = {0};
    const struct cpython_piece piece = {address, word, sizeof word};
    if (address % 4 || i->memory.read(i->memory.ctx, &piece, 1) != 1 || word[0] != 2)
        return 0;
    pid_t tid = nesting_here(&i->nesting, word[2]);
    return find_listed(i, tid) ? tid : 0;
}
