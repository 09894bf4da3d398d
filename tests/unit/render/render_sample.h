/*
 * A profile for golden outputs: a shell that starts a server, which waits and is killed.
 * Names are as bad as names can be: escape sequences, HTML, broken UTF-8, formulas, very long.
 */
#ifndef SONDE_RENDER_SAMPLE_H
#define SONDE_RENDER_SAMPLE_H

#include "profile/profile.h"

#define MS 1000000ull
#define START (1000 * MS)

static uint32_t named_frame(struct profile *p, uint32_t module, const char *function,
                            const char *file, uint32_t line)
{
    return profile_frame_named(p, module,
                               profile_function_add(p, function, "", file, line - 2, module), line);
}

static void run_program(struct profile *p, uint32_t process, const char *comm,
                        const char *arguments)
{
    struct profile_exec e = {.comm = profile_string(p, comm),
                             .arguments = profile_string(p, arguments)};
    *vector_push(&p->processes.data[process].execs) = e;
}

static void end_process(struct profile *p, uint32_t process, int status)
{
    struct profile_process *q = &p->processes.data[process];
    q->ended = q->status_known = true;
    q->status = status;
    q->end = START + 4000 * MS;
    q->max_rss = 123 << 20;
}

static void render_sample_code(struct profile *p, uint32_t cpu, uint32_t io, uint32_t main_thread,
                               uint32_t evil_thread)
{
    uint32_t exe = profile_module_add(p, CODE_ELF, "/opt/server", NULL, 0);
    uint32_t odd = profile_module_add(p, CODE_ELF, "/tmp/\033[2Jodd \"lib\",1.so", NULL, 0);
    uint32_t kernel = profile_module_add(p, CODE_KERNEL, "vmlinux", NULL, 0);
    uint32_t main_ = named_frame(p, exe, "main", "server.c", 12);
    uint32_t serve = named_frame(p, exe, "server::serve(server::Request const&)", "server.c", 80);
    uint32_t parse = named_frame(p, exe,
                                 "server::Parser<std::map<std::string, std::vector<int>>>::parse("
                                 "std::basic_string_view<char, std::char_traits<char>>, int)",
                                 "parse.c", 33);
    uint32_t evil = named_frame(p, odd, "\033[31mred\033[0m<script>alert('x')</script>\xff\xc3",
                                "evil\r\n.c", 5);
    uint32_t formula = named_frame(p, odd, "=HYPERLINK(\"http://x\",\"y\")", "", 2);
    uint32_t read = named_frame(p, kernel, "vfs_read", "", 2);
    uint32_t s = profile_stack_add(p, profile_stack_add(p, 0, main_), serve);
    uint32_t parsing = profile_stack_add(p, s, parse);
    uint32_t again = profile_stack_add(p, parsing, parse);
    profile_count(p, cpu, main_thread, s, 300, 300 * MS);
    profile_count(p, cpu, main_thread, parsing, 1500, 1500 * MS);
    profile_count(p, cpu, main_thread, again, 700, 700 * MS);
    profile_count(p, cpu, evil_thread, profile_stack_add(p, s, evil), 600, 600 * MS);
    profile_count(p, cpu, evil_thread, profile_stack_add(p, again, formula), 40, 40 * MS);
    profile_count(p, cpu, evil_thread, profile_stack_add(p, s, profile_frame_add(p, odd, 0x1234)),
                  10, 10 * MS);
    profile_count(p, io, main_thread, profile_stack_add(p, parsing, read), 17, 850 * MS);
}

static inline void render_sample_init(struct profile *p)
{
    profile_init(p);
    p->start = START;
    p->end = START + 4096 * MS;
    p->wall_start = 1763241185ull * 1000000000;
    p->complete = p->symbolized = true;
    profile_meta_set(p, "command", "./start.sh --config 'a b' \033]0;title\007");
    profile_meta_set(p, "host", "db1");
    profile_meta_set(p, "cpus", "8");
    uint32_t cpu = profile_event_add(p, "cpu", UNIT_NANOSECONDS, MS);
    uint32_t io = profile_event_add(p, "off-cpu:io", UNIT_NANOSECONDS, 0);
    uint32_t shell = profile_process_add(p, 4100, PROFILE_NONE, START);
    run_program(p, shell, "sh", "/bin/sh ./start.sh");
    uint32_t server = profile_process_add(p, 4101, shell, START + 5 * MS);
    run_program(p, server, "sh", "/bin/sh ./start.sh");
    run_program(p, server, "server", "/opt/server --port 80\n--name \033[5mblink");
    end_process(p, shell, 3 << 8);
    end_process(p, server, 11 | 0x80);
    profile_thread_add(p, shell, 4100, "sh", START);
    uint32_t main_thread = profile_thread_add(p, server, 4101, "server", START);
    uint32_t evil_thread = profile_thread_add(p, server, 4102, "w\xe9\033[1m<b>", START);
    p->threads.data[main_thread].cpu = 2504 * MS;
    p->threads.data[evil_thread].cpu = 651 * MS;
    render_sample_code(p, cpu, io, main_thread, evil_thread);
    *vector_push(&p->losses) = (struct profile_loss){
        .event = cpu, .thread = PROFILE_NONE, .reason = LOSS_RING_FULL, .count = 12};
    p->cost = (struct profile_cost){.collector_cpu = 41 * MS,
                                    .collector_rss = 16 << 20,
                                    .target_extra = 63 * MS,
                                    .stacks_whole = 3160,
                                    .stacks_cut = 7,
                                    .bytes_written = 54321};
    *vector_push(&p->notes) = (struct profile_note){
        .level = NOTE_INFO, .text = profile_string(p, "sampled by perf's cpu-clock: no PMU here")};
    *vector_push(&p->notes) = (struct profile_note){
        .level = NOTE_WARNING,
        .text = profile_string(p, "kernel symbols are hidden: run `sysctl kernel.kptr_restrict=0` "
                                  "as root before the next recording\033[0K")};
}

#endif
