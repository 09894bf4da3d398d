/*
 * An interpreter's memory in any state: whatever it holds, reading ends, stays in bounds, and gives
 * valid text. Input: | version | ways | then words to put into a sound image: offset 16, value 64 |
 * The last of these may come one by one while it is read, as if the process went on.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/cpython/image.h"

#define MAX 64
#define WORD 10 /* bytes of the input */
#define LATE 16 /* words that come meanwhile */
#define READS_MAX 100000

static struct image image;
static struct cpython_ahead ahead;
static const uint8_t *late; /* the words that come meanwhile */
static size_t late_left;

static void put_word(const uint8_t *word)
{
    uint16_t offset;
    memcpy(&offset, word, sizeof(offset));
    if (offset <= IMAGE_SIZE - 8)
        memcpy(image.bytes + offset, word + 2, 8);
}

/* The process goes on: at every third read. */
static void go_on(struct image *at)
{
    if (at->reads % 3 || !late_left)
        return;
    put_word(late);
    late += WORD;
    late_left--;
}

/* Every symbol is there, and its address too is from the input. */
static bool symbol(void *ctx, const char *name, uint64_t *address)
{
    const uint8_t *bytes = ctx;
    uint64_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (uint8_t)*name;
    *address = IMAGE_BASE + bytes[hash % 64] * 256u;
    return hash % 7 != bytes[64] % 8;
}

static void check_text(const char *text, size_t size)
{
    size_t i = 0, length = strnlen(text, size);
    if (length == size)
        abort();
    while (i < length) {
        uint8_t c = (uint8_t)text[i++];
        size_t more = c < 0x80 ? 0 : c < 0xc2 ? 9 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : c < 0xf5 ? 3 : 9;
        for (; more && i < length && ((uint8_t)text[i] & 0xc0) == 0x80; more--)
            i++;
        if (more)
            abort();
    }
}

static void read_code(const struct cpython_frame *frame)
{
    static uint8_t table[4096];
    struct cpython_code code;
    if (cpython_code_read(&image.py, &image.memory, frame->code, &code))
        return;
    check_text(code.name, sizeof(code.name));
    check_text(code.qualname, sizeof(code.qualname));
    check_text(code.filename, sizeof(code.filename));
    ssize_t size = cpython_table_read(&image.memory, &code, table, sizeof(table));
    if (size > (ssize_t)sizeof(table))
        abort();
    if (size < 0)
        return;
    /* A copy of the exact size, so that a sanitizer sees the first byte past the end. */
    uint8_t *exact = malloc((size_t)size + 1);
    memcpy(exact, table, (size_t)size);
    if (cpython_line(image.py.layout.lines, exact, (size_t)size, code.first_line, frame->lasti) <
        CPYTHON_LINE_BAD)
        abort();
    free(exact);
}

static void check_name(void *ctx, uint64_t ident, const char *name)
{
    (void)ident;
    check_text(name, 4096);
    if (++*(size_t *)ctx > READS_MAX)
        abort();
}

/* What belongs to no frame. */
static void read_interpreter(const struct cpython_thread *thread)
{
    uint64_t interp, holder;
    uint32_t key;
    size_t names = 0;
    cpython_interp(&image.py, &image.memory, thread->state, &interp);
    cpython_gil(&image.py, &image.memory, thread->interp, &holder);
    cpython_gil(&image.py, &image.memory, 0, &holder);
    cpython_thread_key(&image.py, &image.memory, &key);
    cpython_thread_names(&image.py, &image.memory, thread->interp, check_name, &names);
}

static bool is_eval(void *ctx, uint64_t address, size_t index)
{
    (void)index;
    return (address ^ *(const uint8_t *)ctx) & 1;
}

/* Frames and native addresses (the image's own words) as one stack: each at most once, in order. */
static void mix(const struct cpython_frame *frame, size_t count, bool whole, const uint8_t *ways)
{
    struct cpython_mixed mixed[3 * MAX];
    uint64_t address[MAX];
    memcpy(address, image.bytes, sizeof(address));
    const struct cpython_native native = {address, ways[0] % (MAX + 1u), ways[1] & 4, is_eval,
                                          (void *)(uintptr_t)ways};
    size_t made =
        cpython_merge(&native, frame, count, whole, mixed, sizeof(mixed) / sizeof(*mixed));
    uint32_t next[2] = {0, 0};
    for (size_t i = 0; i < made; i++) {
        if (mixed[i].index < next[mixed[i].python] ||
            mixed[i].index >= (mixed[i].python ? count : native.count))
            abort();
        next[mixed[i].python] = mixed[i].index + 1;
    }
}

static void read_thread(const struct cpython_thread *thread, const uint8_t *ways)
{
    struct cpython_frame frame[MAX + 1];
    struct cpython_end end;
    struct cpython_task task;
    uint64_t tasks, stamp;
    size_t count = cpython_walk(&image.py, &image.memory, thread->state, frame, MAX, &end);
    if (count > MAX || (end.reason == CPYTHON_DEPTH && count < MAX))
        abort();
    for (size_t i = 0; i < count; i++) {
        cpython_code_stamp(&image.py, &image.memory, frame[i].code, &stamp);
        read_code(&frame[i]);
    }
    mix(frame, count, end.reason == CPYTHON_COMPLETE, ways);
    if (!cpython_tasks(&image.py, &image.memory, thread->interp, &tasks) &&
        !cpython_task(&image.py, &image.memory, tasks, frame, count, &task)) {
        check_text(task.name, sizeof(task.name));
        if (task.frame >= count || cpython_task_insert(frame, count, MAX + 1, &task) != count + 1)
            abort();
    }
}

/* Three frames, a code object, a module; all sound until the input says otherwise. */
static void make_image(unsigned minor)
{
    image_init(&image, minor);
    image_outermost(&image, 0);
    image_frame(&image, 1, image_frame_at(0));
    image_frame(&image, 2, image_frame_at(1));
    image_top(&image, 2);
    image.py.code_type = IMAGE_FRAME_TYPE;
    for (unsigned i = 0; i < 3; i++)
        image_code(&image, i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cpython_thread thread[8];
    if (size < 2)
        return 0;
    make_image(LAYOUT_MINOR_FIRST + data[0] % (LAYOUT_MINOR_LAST - LAYOUT_MINOR_FIRST + 1));
    size_t words = (size - 2) / WORD;
    late_left = data[1] & 8 ? words < LATE ? words : LATE : 0;
    late = data + 2 + (words - late_left) * WORD;
    for (size_t i = 0; i < words - late_left; i++)
        put_word(data + 2 + i * WORD);
    image.meanwhile = go_on;
    if (data[1] & 1) {
        const struct cpython_module module = {"libpython3.9.so", symbol, image.bytes + 256};
        struct cpython py;
        if (!cpython_open(&py, &module, &image.memory))
            image.py = py;
    }
    memset(&ahead, 0, sizeof(ahead));
    image.memory.ahead = data[1] & 2 ? &ahead : NULL;
    for (int round = 0; round < 2; round++) {
        ssize_t count = cpython_threads(&image.py, &image.memory, 1, thread, 8);
        if (count > 8)
            abort();
        for (ssize_t i = 0; i < count; i++) {
            read_thread(&thread[i], data);
            read_interpreter(&thread[i]);
        }
    }
    if (image.reads > READS_MAX)
        abort();
    return 0;
}
