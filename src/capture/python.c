/* See python.h. */
#include "capture/python.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "cpython/cpython.h"
#include "wire/heap.h"

#define CODES_MAX (1u << 20) /* of one process: more is not programs but mischief */

static char *folder_of(pid_t pid)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/%d/cwd", pid);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0)
        return getcwd(path, sizeof path) ? memory_strdup(path) : NULL;
    path[n] = 0;
    return memory_strdup(path);
}

struct python_process *python_process_new(struct writer *writer, struct modules *modules,
                                          const struct agents_process *p)
{
    struct python_process *made = memory_alloc(sizeof *made);
    uint32_t unknown = modules->unknown->id;
    uint32_t f = writer_function(writer, "[python code gone]", "", "", 0, unknown);
    made->writer = writer;
    made->pid = p->pid;
    made->lines = p->python_lines;
    made->gone = writer_frame_named(writer, unknown, f, 0);
    made->folder = folder_of(p->pid);
    return made;
}

void python_process_free(struct python_process *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->code.len; i++)
        free(p->code.data[i].table);
    vector_release(&p->code);
    map_release(&p->by_stamp);
    map_release(&p->by_end);
    map_release(&p->frames);
    free(p->folder);
    free(p);
}

struct python_thread *python_thread_new(void)
{
    return memory_alloc(sizeof(struct python_thread));
}

void python_thread_free(struct python_thread *t)
{
    if (!t)
        return;
    map_release(&t->by_address);
    free(t);
}

/* "<string>" and "<frozen ...>" are no files. */
static char *source_path(const struct python_process *p, const char *at, size_t len)
{
    struct text t = TEXT_INIT;
    if (len && at[0] != '/' && at[0] != '<' && p->folder)
        text_format(&t, "%s/", p->folder);
    if (len > 2 && t.len && !memcmp(at, "./", 2)) {
        at += 2;
        len -= 2;
    }
    text_add_len(&t, at, len);
    return text_take(&t);
}

/* A task of asyncio's comes as code too, at an odd address; see cpython.h. */
static char *name_of(const struct agents_code *c)
{
    struct text t = TEXT_INIT;
    if (c->code & 1)
        text_add(&t, c->name_len ? "task " : "task");
    text_add_len(&t, c->name, c->name_len);
    return text_take(&t);
}

uint32_t python_function(struct python_process *p, const char *name, const char *path,
                         size_t path_len, int32_t first_line, uint32_t *module)
{
    char *full = source_path(p, path, path_len);
    *module = writer_module(p->writer, CODE_PYTHON, full, NULL, 0);
    uint32_t function = writer_function(p->writer, name, "", full,
                                        first_line > 0 ? (uint32_t)first_line : 0, *module);
    free(full);
    return function;
}

static void code_add(struct python_process *p, const struct agents_code *c)
{
    static const char asyncio[] = "<asyncio>";
    bool task = c->code & 1;
    char *name = name_of(c);
    struct python_code *code = vector_push(&p->code);
    *code = (struct python_code){.first_line = c->first_line, .table_size = c->table_len};
    code->function =
        python_function(p, name, task ? asyncio : c->path, task ? sizeof asyncio - 1 : c->path_len,
                        c->first_line, &code->module);
    code->table = memory_alloc(c->table_len ? c->table_len : 1);
    memcpy(code->table, c->table, c->table_len);
    free(name);
}

void python_on_code(struct python_process *p, struct python_thread *t, const struct agents_code *c)
{
    bool added;
    p->news++;
    if (p->code.len == CODES_MAX)
        return;
    uint64_t *index = map_put(&p->by_stamp, c->code, c->stamp, p->code.len, &added);
    uint64_t at = *index;
    if (added)
        code_add(p, c);
    *map_put(&p->by_end, c->code, c->stamp & HEAP_STAMP_MASK, at, NULL) = at;
    *map_put(&t->by_address, c->code, 0, at, NULL) = at;
}

static uint32_t frame_at(struct python_process *p, const uint64_t *index, int32_t instruction)
{
    if (!index) {
        p->gone_count++;
        return p->gone;
    }
    bool added;
    uint64_t *frame = map_put(&p->frames, *index + 1, (uint32_t)instruction, 0, &added);
    if (!added)
        return (uint32_t)*frame;
    const struct python_code *c = &p->code.data[*index];
    int32_t line = instruction < 0 ? c->first_line
                                   : cpython_line(p->lines, c->table, c->table_size, c->first_line,
                                                  instruction);
    *frame = writer_frame_named(p->writer, c->module, c->function, line > 0 ? (uint32_t)line : 0);
    return (uint32_t)*frame;
}

uint32_t python_frame(struct python_process *p, const struct python_thread *t, uint64_t address,
                      int32_t instruction)
{
    return frame_at(p, map_get(&t->by_address, address, 0), instruction);
}

uint32_t python_frame_stamped(struct python_process *p, uint64_t address, uint64_t stamp,
                              int32_t instruction)
{
    return frame_at(p, map_get(&p->by_end, address, stamp), instruction);
}

bool python_knows(const struct python_process *p, uint64_t address, uint64_t stamp)
{
    return map_get(&p->by_end, address, stamp) != NULL;
}

static bool is_eval(void *context, uint64_t address, size_t index)
{
    const struct python_stack *k = context;
    return address - (index > 0) - k->eval < k->eval_end - k->eval;
}

static bool has_name(const struct module *m, const char *start)
{
    const char *slash = m->path ? strrchr(m->path, '/') : NULL;
    return slash && !strncmp(slash + 1, start, strlen(start));
}

/* greenlet (and so gevent) runs Python on pieces of the stack: what lies outside of its functions
 * belongs to whoever first switched there, and Python's own frames do not go on to it. */
static bool is_switch(const struct module *m)
{
    return has_name(m, "_greenlet.") || has_name(m, "greenlet.");
}

static bool is_switched(const struct space *space, const struct python_stack *k)
{
    size_t evals = 0, entries = 0;
    for (size_t i = 0; i < k->native; i++)
        evals += is_eval((void *)(uintptr_t)k, k->address[i], i);
    for (size_t i = 0; i < k->python; i++)
        entries += (k->flags[i] & CPYTHON_FRAME_ENTRY) != 0;
    for (size_t i = 0; i < k->native && evals > entries; i++) {
        const struct range *m = space_find(space, k->address[i] - (i > 0));
        if (m && is_switch(m->owner))
            return true;
    }
    return false;
}

/* How many of the outermost frames are but the interpreter's own start, or its threads': all that
 * come before Python code, if there is nobody else's code among them. */
static size_t count_start(const struct space *space, const struct python_stack *k,
                          const struct cpython_mixed *mixed, size_t n)
{
    const struct range *loop = space_find(space, k->eval);
    size_t count = 0;
    for (; count < n && !mixed[n - 1 - count].python; count++) {
        uint64_t at = k->address[mixed[n - 1 - count].index] - 1;
        const struct range *m = space_find(space, at);
        if (!m || (!(loop && m->owner == loop->owner) && !has_name(m->owner, "libc.so") &&
                   !has_name(m->owner, "libpthread") && !has_name(m->owner, "python") &&
                   !is_switch(m->owner)))
            return 0;
    }
    return count < n ? count : 0;
}

/* A task is the root of what it runs: the event loop around it would only join all tasks again. */
static size_t count_to_task(const struct python_stack *k, const struct cpython_mixed *mixed,
                            size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (mixed[i].python && (k->flags[mixed[i].index] & CPYTHON_FRAME_TASK))
            return i + 1;
    return n;
}

uint32_t python_stack_of(struct stacks *s, const struct space *space, const struct python_stack *k,
                         bool python_only)
{
    static struct cpython_mixed mixed[STACK_DEPTH_MAX + SEGMENT_PYTHON_DEPTH];
    static struct cpython_frame frames[SEGMENT_PYTHON_DEPTH];
    const struct cpython_native native = {.address = k->address,
                                          .count = k->native,
                                          .whole = k->native_whole && !is_switched(space, k),
                                          .is_eval = is_eval,
                                          .ctx = (void *)(uintptr_t)k};
    for (size_t i = 0; i < k->python; i++)
        frames[i] = (struct cpython_frame){.flags = k->flags[i]};
    size_t n = cpython_merge(&native, frames, k->python, k->python_whole, mixed,
                             sizeof mixed / sizeof *mixed);
    /* The interpreter's frames that stand for missing ones of Python's are not shown. */
    uint32_t stack = stacks_root(s, k->python_whole || (k->native_whole && !k->python));
    n -= k->python_whole ? count_start(space, k, mixed, n) : 0;
    n = count_to_task(k, mixed, n);
    bool in_task = false;
    for (size_t i = n; i > 0; i--) {
        size_t at = mixed[i - 1].index;
        bool is_return = at != 0 && (!k->interrupted || at != k->interrupted);
        if (mixed[i - 1].python) {
            stack = writer_stack(s->writer, stack, k->frame[at]);
            in_task = k->flags[at] & CPYTHON_FRAME_TASK; /* then come the steps of the loop's */
        } else if (!python_only && !in_task)
            stack = writer_stack(s->writer, stack,
                                 stacks_user_frame(s, space, k->address[at], is_return));
    }
    return stack;
}
