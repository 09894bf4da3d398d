/*
 * A heap with known truth, for tests: the shell (4200) and the server (4201, killed), two threads.
 * Bytes (blocks), of the shell's main > load > malloc and main > keep > Row (inlined operator new
 * and std::allocator), of the server's serve > malloc:
 *
 *              load            keep           serve
 *   allocated  5000 (50)       900 (9)        40000 (4)
 *   live       0               600 (6)        10000 (1)
 *   peak       4000            500            30000
 *   tree-peak  1000            600            30000
 *   temporary  1000 (10)       0              0
 *
 * stdio's buffer: 1024 (1) allocated and live in the shell. CPU: 2 samples in load, of 1 ms.
 */
#ifndef SONDE_HEAP_PROFILE_H
#define SONDE_HEAP_PROFILE_H

#include "profile/profile.h"

#define HEAP_MS 1000000ull
#define HEAP_START (500 * HEAP_MS)

struct heap_profile {
    struct profile p;
    uint32_t allocated, live, peak, tree_peak, temporary, cpu;
    uint32_t shell, server, shell_thread, server_thread;
};

static uint32_t heap_function(struct profile *p, uint32_t module, const char *name, uint32_t line)
{
    return profile_function_add(p, name, "", "src/app.cc", line, module);
}

static uint32_t heap_frame(struct profile *p, uint32_t module, uint64_t address, const char *name,
                           uint32_t line)
{
    uint32_t frame = profile_frame_add(p, module, address);
    profile_frame_locate(
        p, frame, &(struct profile_location){heap_function(p, module, name, line - 1), line}, 1);
    return frame;
}

static void heap_people(struct heap_profile *h)
{
    struct profile *p = &h->p;
    h->shell = profile_process_add(p, 4200, PROFILE_NONE, HEAP_START);
    h->server = profile_process_add(p, 4201, h->shell, HEAP_START + HEAP_MS);
    h->shell_thread = profile_thread_add(p, h->shell, 4200, "shell", HEAP_START);
    h->server_thread = profile_thread_add(p, h->server, 4201, "server", HEAP_START);
    const char *arguments[] = {"./shell \033[1m-x", "server --port 80"};
    for (uint32_t i = 0; i < 2; i++) {
        struct profile_process *q = &p->processes.data[i ? h->server : h->shell];
        *vector_push(&q->execs) =
            (struct profile_exec){.comm = profile_string(p, i ? "server" : "shell"),
                                  .arguments = profile_string(p, arguments[i])};
        q->ended = q->status_known = true;
        q->status = i ? 9 : 0;
        q->end = HEAP_START + 900 * HEAP_MS;
    }
    *vector_push(&p->heaps) = (struct profile_heap){.process = h->shell,
                                                    .time = HEAP_START + 900 * HEAP_MS,
                                                    .peak = 5524,
                                                    .peak_time = HEAP_START + 100 * HEAP_MS,
                                                    .live = 1624,
                                                    .live_blocks = 7,
                                                    .allocations = 60,
                                                    .lost = 2,
                                                    .frees = 53};
    *vector_push(&p->heaps) = (struct profile_heap){.process = h->server,
                                                    .time = HEAP_START + 800 * HEAP_MS,
                                                    .peak = 30000,
                                                    .peak_time = HEAP_START + 400 * HEAP_MS,
                                                    .live = 10000,
                                                    .live_blocks = 1,
                                                    .allocations = 4,
                                                    .frees = 3};
}

static void heap_count(struct heap_profile *h, uint32_t thread, uint32_t stack,
                       const uint64_t *pairs)
{
    const uint32_t events[] = {h->allocated, h->live, h->peak, h->tree_peak, h->temporary};
    for (size_t i = 0; i < 5; i++)
        if (pairs[2 * i])
            profile_count(&h->p, events[i], thread, stack, pairs[2 * i + 1], pairs[2 * i]);
}

static void heap_code(struct heap_profile *h)
{
    struct profile *p = &h->p;
    uint32_t exe = profile_module_add(p, CODE_ELF, "/opt/shell", NULL, 0);
    uint32_t libc = profile_module_add(p, CODE_ELF, "/lib/libc.so.6", NULL, 0);
    uint32_t main_ = profile_stack_add(p, 0, heap_frame(p, exe, 0x100, "main", 10));
    uint32_t load = profile_stack_add(p, main_, heap_frame(p, exe, 0x200, "load(int)", 20));
    uint32_t malloc_ = heap_frame(p, libc, 0x10, "malloc", 300);
    uint32_t inlined = profile_frame_add(p, exe, 0x300);
    uint32_t new_ = heap_function(p, exe, "std::__new_allocator<Row>::allocate(unsigned long)", 90);
    uint32_t keep = heap_function(p, exe, "keep", 40);
    profile_frame_locate(p, inlined, (struct profile_location[]){{new_, 91}, {keep, 44}}, 2);
    uint32_t serve = profile_stack_add(p, 0, heap_frame(p, exe, 0x400, "serve", 60));
    uint32_t stdio = heap_frame(p, libc, 0x20, "_IO_file_doallocate", 400);
    heap_count(h, h->shell_thread, profile_stack_add(p, load, malloc_),
               (uint64_t[]){5000, 50, 0, 0, 4000, 0, 1000, 0, 1000, 10});
    heap_count(h, h->shell_thread, profile_stack_add(p, main_, inlined),
               (uint64_t[]){900, 9, 600, 6, 500, 0, 600, 0, 0, 0});
    heap_count(h, h->shell_thread, profile_stack_add(p, main_, stdio),
               (uint64_t[]){1024, 1, 1024, 1, 1024, 0, 1024, 0, 0, 0});
    heap_count(h, h->server_thread, profile_stack_add(p, serve, malloc_),
               (uint64_t[]){40000, 4, 10000, 1, 30000, 0, 30000, 0, 0, 0});
    profile_count(p, h->cpu, h->shell_thread, load, 2, 2 * HEAP_MS);
}

static void heap_curve(struct profile *p, uint32_t process, const int64_t *values, size_t count)
{
    struct profile_series s = {.name = profile_string(p, "heap"),
                               .process = process,
                               .thread = PROFILE_NONE,
                               .unit = UNIT_BYTES};
    for (size_t i = 0; i < count; i++)
        *vector_push(&s.points) =
            (struct profile_point){HEAP_START + (i + 1) * 50 * HEAP_MS, values[i]};
    *vector_push(&p->series) = s;
}

static inline void heap_profile_init(struct heap_profile *h)
{
    struct profile *p = &h->p;
    profile_init(p);
    p->start = HEAP_START;
    p->end = HEAP_START + 1000 * HEAP_MS;
    p->complete = p->symbolized = true;
    profile_meta_set(p, "command", "./shell -x");
    profile_meta_set(p, "heap_mode", "exact");
    profile_meta_set(p, "heap_tree_peak", "32624");
    profile_meta_set(p, "heap_tree_peak_time", "910000000");
    h->allocated = profile_event_add(p, "heap:allocated", UNIT_BYTES, 0);
    h->live = profile_event_add(p, "heap:live", UNIT_BYTES, 0);
    h->peak = profile_event_add(p, "heap:peak", UNIT_BYTES, 0);
    h->tree_peak = profile_event_add(p, "heap:tree-peak", UNIT_BYTES, 0);
    h->temporary = profile_event_add(p, "heap:temporary", UNIT_BYTES, 0);
    h->cpu = profile_event_add(p, "cpu", UNIT_NANOSECONDS, HEAP_MS);
    heap_people(h);
    heap_code(h);
    heap_curve(p, h->shell, (const int64_t[]){3000, 5000, 1624, 1624, 2624, 2624, 1624}, 7);
    heap_curve(p, h->server, (const int64_t[]){0, 10000, 2000, 2000, 20000, 20000, 10000}, 7);
    *vector_push(&p->losses) = (struct profile_loss){
        .event = h->allocated, .thread = h->shell_thread, .reason = LOSS_STOPPED, .count = 2};
}

#endif
