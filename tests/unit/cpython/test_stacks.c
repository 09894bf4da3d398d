/*
 * Every interpreter that is installed runs truth.py, whose threads say where they are; then each is
 * read from outside and must be found in that very place: names, files, lines, tasks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "interpreter.h"

#define DEPTH 4096
#define THREADS 16

static const char *script_folder;

struct truth_frame {
    char name[1024], qualname[1024], file[512];
    int line;
};

struct truth_thread {
    long tid;
    unsigned long ident;
    char task[64];
    struct truth_frame *frame;
    size_t count;
};

struct truth {
    struct truth_thread thread[THREADS];
    size_t count;
};

static void parse_frame(struct truth_thread *t, char *line)
{
    char *save, *name = strtok_r(line, "\t", &save), *qualname = strtok_r(NULL, "\t", &save);
    char *file = strtok_r(NULL, "\t", &save), *number = strtok_r(NULL, "\t", &save);
    assert_non_null(number);
    if (!(t->count & (t->count - 1))) /* doubles at each power of two */
        t->frame = realloc(t->frame, (t->count ? 2 * t->count : 1) * sizeof(*t->frame));
    struct truth_frame *f = &t->frame[t->count++];
    snprintf(f->name, sizeof(f->name), "%s", name);
    snprintf(f->qualname, sizeof(f->qualname), "%s", qualname);
    snprintf(f->file, sizeof(f->file), "%s", file);
    f->line = (int)strtol(number, NULL, 10);
}

static void parse_thread(struct truth *truth, char *line)
{
    assert_true(truth->count < THREADS);
    struct truth_thread *t = &truth->thread[truth->count++];
    t->tid = strtol(line, &line, 10);
    t->ident = strtoul(line, &line, 10);
    snprintf(t->task, sizeof(t->task), "%s", line + 1);
}

static void read_truth(struct interpreter_run *run, struct truth *truth)
{
    char line[8192];
    memset(truth, 0, sizeof(*truth));
    while (fgets(line, sizeof(line), run->out)) {
        line[strcspn(line, "\n")] = '\0';
        if (!strncmp(line, "T ", 2))
            parse_thread(truth, line + 2);
        else if (!strncmp(line, "F ", 2))
            parse_frame(&truth->thread[truth->count - 1], line + 2);
        else if (!strncmp(line, "READY", 5))
            break;
    }
    assert_int_equal(truth->count, 9);
    usleep(20000); /* the threads that have said where they are get to their sleep */
}

static void release_truth(struct truth *truth)
{
    for (size_t i = 0; i < truth->count; i++)
        free(truth->thread[i].frame);
}

/* What fits into our buffers of what there is. */
static void assert_text(const char *found, const char *truth, size_t size)
{
    if (strlen(truth) < size) {
        assert_string_equal(found, truth);
        return;
    }
    assert_memory_equal(found, truth, strlen(found));
    assert_true(strlen(found) >= size - 4 && strlen(found) < size);
}

static void check_frame(const struct cpython *py, const struct cpython_memory *memory,
                        const struct cpython_frame *frame, const struct truth_frame *truth)
{
    static uint8_t table[1 << 16];
    struct cpython_code code;
    uint64_t stamp;
    assert_int_equal(cpython_code_read(py, memory, frame->code, &code), 0);
    assert_text(code.name, truth->name, sizeof(code.name));
    assert_text(code.qualname, truth->qualname, sizeof(code.qualname));
    assert_text(code.filename, truth->file, sizeof(code.filename));
    ssize_t size = cpython_table_read(memory, &code, table, sizeof(table));
    assert_true(size >= 0);
    assert_int_equal(
        cpython_line(py->layout.lines, table, (size_t)size, code.first_line, frame->lasti),
        truth->line);
    assert_int_equal(cpython_code_stamp(py, memory, frame->code, &stamp), 0);
    assert_true(stamp == code.stamp);
}

static void check_task(const struct cpython *py, const struct cpython_memory *memory,
                       const struct cpython_thread *thread, const struct cpython_frame *frame,
                       size_t count, const struct truth_thread *truth)
{
    struct cpython_task task;
    uint64_t tasks;
    int fault = cpython_tasks(py, memory, thread->interp, &tasks);
    assert_int_equal(fault, py->minor < 7 ? CPYTHON_ABSENT : 0);
    if (fault)
        return;
    fault = cpython_task(py, memory, tasks, frame, count, &task);
    assert_int_equal(fault, strcmp(truth->task, "-") ? 0 : CPYTHON_ABSENT);
    if (fault)
        return;
    assert_string_equal(truth->frame[task.frame].name, "middle");
    if (!strcmp(truth->task, "Task-*"))
        assert_true(!strncmp(task.name, "Task-", 5) && task.name[5] >= '1' && task.name[5] <= '9');
    else
        assert_string_equal(task.name, strcmp(truth->task, "?") ? truth->task : "");
}

/* Frames that the C stack's calls of the interpreter loop begin with. */
static void check_entries(const struct cpython *py, const struct cpython_frame *frame, size_t count,
                          const struct truth_thread *truth)
{
    size_t entries = 0;
    for (size_t i = 0; i < count; i++) {
        bool entry = frame[i].flags & CPYTHON_FRAME_ENTRY;
        entries += entry;
        /* What sorted() and max() call is called from C in every version. */
        if (!strcmp(truth->frame[i].name, "<lambda>") && strcmp(truth->frame[i + 1].name, "jump"))
            assert_true(entry);
    }
    assert_true(frame[count - 1].flags & CPYTHON_FRAME_ENTRY);
    if (py->minor <= 10)
        assert_int_equal(entries, count);
    else
        assert_true(entries < count || count == 1);
}

struct counted {
    struct cpython_memory memory;
    size_t calls;
};

static size_t read_counted(void *ctx, const struct cpython_piece *piece, size_t count)
{
    struct counted *c = ctx;
    c->calls++;
    return c->memory.read(c->memory.ctx, piece, count);
}

static void check_thread(const struct cpython *py, pid_t pid, const struct cpython_thread *thread,
                         const struct truth_thread *truth)
{
    static struct cpython_frame frame[DEPTH], first[DEPTH];
    static struct cpython_ahead ahead;
    struct counted counted = {0};
    cpython_memory_remote(&counted.memory, pid, NULL);
    struct cpython_memory memory = counted.memory,
                          bulk = {.read = read_counted, .ctx = &counted, .ahead = &ahead};
    memset(&ahead, 0, sizeof(ahead));
    assert_int_equal(thread->ident, truth->ident);
    for (int walk = 0; walk < 3; walk++) { /* frame by frame, in bulk, as expected */
        struct cpython_end end;
        counted.calls = 0;
        size_t count = cpython_walk(py, walk ? &bulk : &memory, thread->state, frame, DEPTH, &end);
        assert_int_equal(end.reason, CPYTHON_COMPLETE);
        assert_int_equal(count, truth->count);
        if (walk)
            assert_memory_equal(frame, first, count * sizeof(frame[0]));
        else
            memcpy(first, frame, count * sizeof(frame[0]));
        for (size_t i = 0; !walk && i < count; i++)
            check_frame(py, &memory, &frame[i], &truth->frame[i]);
        check_entries(py, frame, count, truth);
        if (walk == 2)
            assert_true(counted.calls <= (count < 60       ? 3
                                          : py->minor > 10 ? 4 + count / 50
                                                           : count));
    }
    check_task(py, &memory, thread, frame, truth->count, truth);
    struct cpython_end end;
    assert_int_equal(cpython_walk(py, &bulk, thread->state, frame, 1, &end), 1);
    assert_int_equal(end.reason, truth->count > 1 ? CPYTHON_DEPTH : CPYTHON_COMPLETE);
}

static void check_interpreter(const char *path, struct interpreter_run *run)
{
    struct truth truth;
    struct cpython py;
    struct cpython_memory memory;
    struct interpreter_module module;
    struct cpython_thread thread[THREADS];
    print_message("%s\n", path);
    read_truth(run, &truth);
    cpython_memory_remote(&memory, run->pid, NULL);
    assert_int_equal(interpreter_open(run->pid, &py, &memory, &module), 0);
    /* What 3.13 says of itself is what its headers say. */
    assert_memory_equal(&py.layout, layout_find(py.minor, py.micro), sizeof(py.layout));
    assert_int_equal(cpython_threads(&py, &memory, run->pid, thread, THREADS), truth.count);
    for (size_t i = 0; i < truth.count; i++) {
        size_t t = 0;
        while (t < truth.count && truth.thread[t].tid != (long)thread[i].native_id)
            t++;
        assert_true(t < truth.count);
        assert_false(thread[i].has_gil);
        check_thread(&py, run->pid, &thread[i], &truth.thread[t]);
    }
    interpreter_module_close(&module);
    release_truth(&truth);
}

static void test_every_interpreter(void **state)
{
    (void)state;
    if (!interpreter_each(script_folder, "truth.py", NULL, NULL, check_interpreter))
        skip();
}

int main(int argc, char **argv)
{
    script_folder = argc > 1 ? argv[1] : ".";
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_interpreter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
