/*
 * The asyncio task that a thread runs; see cpython.h. The C module _asyncio keeps a dict from event
 * loop to running task and shows it as _asyncio._current_tasks. Which of those tasks is
 * this thread's is told by its coroutine, which is one of the thread's frames.
 */
#include "cpython/cpython.h"

#include <string.h>

#include "cpython/dict.h"
#include "cpython/memory.h"

#define LOOPS_MAX 256 /* event loops that run at the same time */
#define TASK_MAX 176  /* of a Task: no version has its name further in */
#define TASK_MIN 144  /* and none is smaller from 3.8 on */
#define DIGIT_MAX (1u << 30)

int cpython_tasks(const struct cpython *py, const struct cpython_memory *memory, uint64_t interp,
                  uint64_t *tasks)
{
    return dict_find_global(py, memory, interp, "_asyncio", "_current_tasks", tasks);
}

/* "Task-7": 3.12 and later keep the number until somebody asks for the name. */
static void name_of_number(uint64_t number, char *to)
{
    char digits[12];
    size_t count = 0;
    memcpy(to, "Task-", 5);
    do
        digits[count++] = (char)('0' + number % 10);
    while (number /= 10);
    for (size_t i = 0; i < count; i++)
        to[5 + i] = digits[count - 1 - i];
    to[5 + count] = '\0';
}

static void read_name(const struct cpython *py, const struct cpython_memory *memory, uint64_t name,
                      char *to, size_t size)
{
    uint8_t head[LAYOUT_LONG_DIGIT + 4];
    to[0] = '\0';
    if (!address_is_sane(name) || !memory_read(memory, name, head, sizeof(head)))
        return;
    uint64_t type = word_of(head, LAYOUT_TYPE);
    if (type == py->long_type && half_of(head, LAYOUT_LONG_DIGIT) < DIGIT_MAX)
        name_of_number(half_of(head, LAYOUT_LONG_DIGIT), to);
    else if (memory_type_is(memory, type, 0, "str"))
        cpython_text(py, memory, name, to, size);
}

/* The task's coroutine is wherever one of its words is one of the frames' coroutines; the name is
 * the next word, from 3.8 on. */
static bool match(const struct cpython *py, const struct cpython_memory *memory, uint64_t task,
                  const struct cpython_frame *frame, size_t count, struct cpython_task *out)
{
    uint8_t bytes[TASK_MAX];
    uint32_t size = TASK_MAX;
    if (address_is_sane(task) && !memory_read(memory, task, bytes, size))
        size = TASK_MIN;
    if (!address_is_sane(task) || (size == TASK_MIN && !memory_read(memory, task, bytes, size)))
        return false;
    for (size_t i = count; i--;) { /* the outermost coroutine is the likeliest */
        if (!frame[i].generator)
            continue;
        for (uint32_t at = LAYOUT_SIZE; at + 16 <= size; at += 8) {
            if (word_of(bytes, at) != frame[i].generator)
                continue;
            out->task = task;
            out->frame = (uint32_t)i;
            out->name[0] = '\0';
            if (py->minor >= 8)
                read_name(py, memory, word_of(bytes, at + 8), out->name, sizeof(out->name));
            return true;
        }
    }
    return false;
}

size_t cpython_task_insert(struct cpython_frame *frame, size_t count, size_t max,
                           const struct cpython_task *task)
{
    size_t at = (size_t)task->frame + 1;
    if (count == max || at > count)
        return count;
    memmove(&frame[at + 1], &frame[at], (count - at) * sizeof(*frame));
    frame[at] =
        (struct cpython_frame){.code = task->task | 1, .lasti = -1, .flags = CPYTHON_FRAME_TASK};
    return count + 1;
}

int cpython_task(const struct cpython *py, const struct cpython_memory *memory, uint64_t tasks,
                 const struct cpython_frame *frame, size_t count, struct cpython_task *out)
{
    struct dict_entries entries;
    uint32_t loops = 0;
    if (!dict_entries(py, memory, tasks, &entries))
        return CPYTHON_DAMAGED;
    for (uint32_t i = entries.count; i-- && loops < LOOPS_MAX;) {
        uint64_t key, value;
        if (!dict_entry(memory, &entries, i, &key, &value))
            return CPYTHON_UNREADABLE;
        if (!value)
            continue;
        loops++;
        if (match(py, memory, value, frame, count, out))
            return CPYTHON_OK;
    }
    return CPYTHON_ABSENT;
}
