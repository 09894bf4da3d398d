/*
 * A small profile with known truth, for the tests of this folder:
 *
 *   app (42), threads main (42) and worker-1 (43); tool (50), thread tool (50).
 *   cpu, 1 ms a sample:
 *     main:     main > work > work > leaf        3   (work recursive; leaf inlines tiny)
 *     main:     main > work                      2
 *     worker-1: start > work > [libx.so+0x10] > [libx.so+0x20]  4
 *     tool:     (no stack)                       1
 *   off-cpu:lock  main: main > work   10 ms, one sample
 *   off-cpu:io    tool: main          20 ms, one sample
 *   page-faults   main: main          7, seven samples
 */
#ifndef SONDE_SAMPLE_PROFILE_H
#define SONDE_SAMPLE_PROFILE_H

#include "profile/profile.h"

#define MS 1000000ull

struct sample_profile {
    struct profile p;
    uint32_t cpu, lock, io, faults;
    uint32_t app, tool;
    uint32_t thread_main, thread_worker, thread_tool;
    uint32_t main_work, leaf, nameless; /* stacks */
};

static uint32_t sample_frame(struct profile *p, uint32_t module, uint64_t address,
                             const char *function, const char *file, uint32_t line)
{
    uint32_t frame = profile_frame_add(p, module, address);
    uint32_t f = profile_function_add(p, function, "", file, 1, module);
    profile_frame_locate(p, frame, &(struct profile_location){f, line}, 1);
    return frame;
}

static inline void sample_profile_init(struct sample_profile *s)
{
    struct profile *p = &s->p;
    profile_init(p);
    s->cpu = profile_event_add(p, "cpu", UNIT_NANOSECONDS, MS);
    s->lock = profile_event_add(p, "off-cpu:lock", UNIT_NANOSECONDS, 0);
    s->io = profile_event_add(p, "off-cpu:io", UNIT_NANOSECONDS, 0);
    s->faults = profile_event_add(p, "page-faults", UNIT_COUNT, 1);
    s->app = profile_process_add(p, 42, PROFILE_NONE, 0);
    *vector_push(&p->processes.data[s->app].execs) = (struct profile_exec){
        .comm = profile_string(p, "app"), .arguments = profile_string(p, "app --fast")};
    s->tool = profile_process_add(p, 50, s->app, 0);
    *vector_push(&p->processes.data[s->tool].execs) =
        (struct profile_exec){.comm = profile_string(p, "tool")};
    s->thread_main = profile_thread_add(p, s->app, 42, "main", 0);
    s->thread_worker = profile_thread_add(p, s->app, 43, "worker-1", 0);
    s->thread_tool = profile_thread_add(p, s->tool, 50, "tool", 0);

    uint32_t exe = profile_module_add(p, CODE_ELF, "/opt/app/bin/app", NULL, 0);
    uint32_t libx = profile_module_add(p, CODE_ELF, "/usr/lib/libx.so", NULL, 0);
    uint32_t f_main = sample_frame(p, exe, 0x100, "main", "app.c", 10);
    uint32_t f_start = sample_frame(p, exe, 0x400, "start(void*)", "app.c", 90);
    uint32_t f_work1 = sample_frame(p, exe, 0x200, "work", "work.c", 20);
    uint32_t f_work2 = sample_frame(p, exe, 0x208, "work", "work.c", 25);
    uint32_t f_leaf = profile_frame_add(p, exe, 0x300);
    uint32_t tiny = profile_function_add(p, "tiny", "", "tiny.h", 3, exe);
    uint32_t leaf = profile_function_add(p, "leaf", "", "work.c", 50, exe);
    profile_frame_locate(p, f_leaf, (struct profile_location[]){{tiny, 4}, {leaf, 55}}, 2);

    uint32_t st_main = profile_stack_add(p, 0, f_main);
    s->main_work = profile_stack_add(p, st_main, f_work1);
    s->leaf = profile_stack_add(p, profile_stack_add(p, s->main_work, f_work2), f_leaf);
    uint32_t st_start = profile_stack_add(p, profile_stack_add(p, 0, f_start), f_work1);
    s->nameless = profile_stack_add(p, st_start, profile_frame_add(p, libx, 0x10));
    s->nameless = profile_stack_add(p, s->nameless, profile_frame_add(p, libx, 0x20));

    profile_count(p, s->cpu, s->thread_main, s->leaf, 3, 3 * MS);
    profile_count(p, s->cpu, s->thread_main, s->main_work, 2, 2 * MS);
    profile_count(p, s->cpu, s->thread_worker, s->nameless, 4, 4 * MS);
    profile_count(p, s->cpu, s->thread_tool, 0, 1, 1 * MS);
    profile_count(p, s->lock, s->thread_main, s->main_work, 1, 10 * MS);
    profile_count(p, s->io, s->thread_tool, st_main, 1, 20 * MS);
    profile_count(p, s->faults, s->thread_main, st_main, 7, 7);
}

#endif
