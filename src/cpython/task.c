/*
 * The asyncio task that a thread runs; see cpython.h. The C module _asyncio keeps a dict from event
 * loop to running task and shows it as _asyncio._current_tasks. Which of those tasks is
 * this thread's is told by its coroutine, which is one of the thread's frames.
 */
#include "cpython/cpython.h"

#include <string.h>

#include "cpython/memory.h"
#include "cpython/text.h"

#define ENTRIES_MAX (1u << 16)
#define LOOPS_MAX 256 /* event loops that run at the same time */
#define TASK_MAX 176  /* of a Task: no version has its name further in */
#define TASK_MIN 144  /* and none is smaller from 3.8 on */
#define DIGIT_MAX (1u << 30)

/* The entries of a dict, in the order they were made; unused ones have a zero value. */
struct entries {
    uint64_t at;
    uint32_t count, stride; /* stride: hash, key, value or key, value */
};

static unsigned index_width(uint64_t slots)
{
    return slots <= 0xff ? 1 : slots <= 0xffff ? 2 : 4;
}

static bool find_entries(const struct cpython *py, const struct cpython_memory *memory,
                         uint64_t dict, struct entries *out)
{
    const struct layout_dict *d = &py->layout.dict;
    uint8_t head[40];
    uint64_t keys, used;
    if (!address_is_sane(dict) || !memory_word(memory, dict + d->keys, &keys) ||
        !address_is_sane(keys) || !memory_read(memory, keys, head, d->indices))
        return false;
    used = word_of(head, d->used);
    out->stride = 24;
    if (d->size_is_log2) {
        if (head[d->log2_index] > 24)
            return false;
        out->at = keys + d->indices + (1ull << head[d->log2_index]);
        out->stride = head[d->kind] ? 16 : 24;
    } else {
        uint64_t slots = word_of(head, d->size);
        if (slots > ENTRIES_MAX * 4ull)
            return false;
        out->at = keys + d->indices + slots * index_width(slots);
    }
    out->count = (uint32_t)used;
    return used <= ENTRIES_MAX;
}

static bool read_entry(const struct cpython_memory *memory, const struct entries *entries,
                       uint32_t i, uint64_t *key, uint64_t *value)
{
    uint8_t bytes[24];
    if (!memory_read(memory, entries->at + (uint64_t)i * entries->stride, bytes, entries->stride))
        return false;
    *key = word_of(bytes, entries->stride - 16);
    *value = word_of(bytes, entries->stride - 8);
    return true;
}

/* The value of an ASCII key in a dict. */
static int dict_find(const struct cpython *py, const struct cpython_memory *memory, uint64_t dict,
                     const char *name, uint64_t *value)
{
    struct entries entries;
    size_t length = strlen(name);
    if (!find_entries(py, memory, dict, &entries))
        return CPYTHON_DAMAGED;
    for (uint32_t i = 0; i < entries.count; i++) {
        uint8_t head[TEXT_HEAD];
        struct text_place place;
        uint64_t key;
        char text[32];
        if (!read_entry(memory, &entries, i, &key, value))
            return CPYTHON_UNREADABLE;
        if (!address_is_sane(key) || !*value || !memory_read(memory, key, head, sizeof(head)) ||
            word_of(head, LAYOUT_TEXT_LENGTH) != length ||
            !text_place(py, memory, key, head, &place) || place.width != 1)
            continue;
        if (length <= sizeof(text) && memory_read(memory, place.address, text, length) &&
            !memcmp(text, name, length))
            return CPYTHON_OK;
    }
    return CPYTHON_ABSENT;
}

int cpython_tasks(const struct cpython *py, const struct cpython_memory *memory, uint64_t interp,
                  uint64_t *tasks)
{
    uint64_t modules, module, dict;
    if (!address_is_sane(interp) ||
        !memory_word(memory, interp + py->layout.interp_modules, &modules))
        return CPYTHON_UNREADABLE;
    if (!modules)
        return CPYTHON_ABSENT;
    int fault = dict_find(py, memory, modules, "_asyncio", &module);
    if (fault)
        return fault;
    if (!address_is_sane(module) || !memory_word(memory, module + LAYOUT_MODULE_DICT, &dict))
        return CPYTHON_UNREADABLE;
    return dict_find(py, memory, dict, "_current_tasks", tasks);
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

int cpython_task(const struct cpython *py, const struct cpython_memory *memory, uint64_t tasks,
                 const struct cpython_frame *frame, size_t count, struct cpython_task *out)
{
    struct entries entries;
    uint32_t loops = 0;
    if (!find_entries(py, memory, tasks, &entries))
        return CPYTHON_DAMAGED;
    for (uint32_t i = entries.count; i-- && loops < LOOPS_MAX;) {
        uint64_t key, value;
        if (!read_entry(memory, &entries, i, &key, &value))
            return CPYTHON_UNREADABLE;
        if (!value)
            continue;
        loops++;
        if (match(py, memory, value, frame, count, out))
            return CPYTHON_OK;
    }
    return CPYTHON_ABSENT;
}
