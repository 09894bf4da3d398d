/* Prints the Python stacks of a process: `pystack PID [NAMESPACE-PID]`. For tests and development.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../unit/cpython/interpreter.h"

#define DEPTH 1024

static void print_frame(const struct cpython *py, const struct cpython_memory *memory,
                        const struct cpython_frame *frame)
{
    static uint8_t table[1 << 20];
    struct cpython_code code;
    int fault = cpython_code_read(py, memory, frame->code, &code);
    if (fault) {
        printf("  %#" PRIx64 " %s\n", frame->code, cpython_fault_text(fault));
        return;
    }
    ssize_t size = cpython_table_read(memory, &code, table, sizeof(table));
    int32_t line = size < 0 ? CPYTHON_LINE_BAD
                            : cpython_line(py->layout.lines, table, (size_t)size, code.first_line,
                                           frame->lasti);
    printf("  %s (%s:%d)%s%s\n", code.qualname, code.filename, line,
           frame->flags & CPYTHON_FRAME_GENERATOR ? " [generator]" : "",
           frame->flags & CPYTHON_FRAME_ENTRY ? " [entry]" : "");
}

static void print_thread(const struct cpython *py, const struct cpython_memory *memory,
                         const struct cpython_thread *thread)
{
    static const char *const reasons[] = {"",         " (deeper)",   " (unreadable)",
                                          " (cycle)", " (no frame)", " (moved)"};
    static struct cpython_frame frame[DEPTH];
    struct cpython_end end;
    struct cpython_task task;
    uint64_t tasks;
    size_t count = cpython_walk(py, memory, thread->state, frame, DEPTH, &end);
    printf("thread %" PRIu64 " of interpreter %" PRId64 "%s%s\n", thread->native_id,
           thread->interp_id, thread->has_gil ? " (GIL)" : "", reasons[end.reason]);
    if (!cpython_tasks(py, memory, thread->interp, &tasks) &&
        !cpython_task(py, memory, tasks, frame, count, &task))
        printf("  task '%s', frame %u\n", task.name, task.frame);
    for (size_t i = 0; i < count; i++)
        print_frame(py, memory, &frame[i]);
}

static void print_name(void *context, uint64_t ident, const char *name)
{
    (void)context;
    printf("name of %" PRIx64 ": %s\n", ident, name);
}

int main(int argc, char **argv)
{
    static struct cpython_ahead ahead;
    static struct cpython_thread thread[1024];
    struct cpython_memory memory;
    struct interpreter_module module;
    struct cpython py;
    if (argc < 2)
        return 2;
    pid_t pid = (pid_t)strtol(argv[1], NULL, 10);
    cpython_memory_remote(&memory, pid, &ahead);
    int fault = interpreter_open(pid, &py, &memory, &module);
    if (fault) {
        fprintf(stderr, "process %d %s\n", pid, cpython_fault_text(fault));
        return 1;
    }
    pid_t inside = argc > 2 ? (pid_t)strtol(argv[2], NULL, 10) : pid;
    ssize_t count = cpython_threads(&py, &memory, inside, thread, 1024);
    printf("process %d: CPython %u.%u.%u in %s\n", pid, py.major, py.minor, py.micro, module.path);
    if (count < 0)
        printf("its threads: %s\n", cpython_fault_text((int)count));
    for (ssize_t i = 0; i < count; i++)
        print_thread(&py, &memory, &thread[i]);
    if (count > 0)
        cpython_thread_names(&py, &memory, thread[0].interp, print_name, NULL);
    interpreter_module_close(&module);
    return count < 0;
}
