/*
 * Who runs: the processes and threads of the tree, as perf records (or the agents) tell, written
 * to the recording as they come and go. Answers which thread a sample belongs to and what
 * code its process has mapped.
 */
#ifndef SONDE_TASKS_H
#define SONDE_TASKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/map.h"
#include "base/vector.h"
#include "capture/commands.h"
#include "capture/module.h"
#include "capture/space.h"
#include "recording/writer.h"

struct process {
    pid_t pid;
    uint32_t id; /* in the recording */
    struct space *space;
    unsigned threads; /* alive */
    bool ended;
    int status; /* as wait(2) gives it, -1 unknown */
    uint64_t max_rss;
    uint64_t start, end;
    uint64_t gone;      /* found to be no more, though nobody told its end; 0: not so */
    char *nameless;     /* name of a program whose path is not known yet, else NULL */
    char *arguments;    /* its arguments, then */
    uint64_t exec_time; /* when it was started */
    bool muted;         /* its samples are not wanted */
};

/* What a thread was doing when it left the CPU, for --wall. */
struct blocked {
    uint64_t since; /* 0: not blocked, or unknown */
    uint32_t stack;
    uint32_t event;
    bool has_stack;
    bool has_holder;               /* somebody else has what it waits for ... */
    uint32_t holder, holder_stack; /* ... a thread of the recording, and where it stood */
};

struct thread {
    pid_t tid;
    uint64_t start;
    char name[16];
    uint64_t python_name; /* hash of the name that Python has for it, 0: none */
    uint32_t id;
    struct process *process;
    uint64_t cpu;        /* ns, as the kernel told at its end */
    size_t cpu_counts;   /* how many counters it told of */
    uint64_t cpu_seen;   /* as /proc told of the command before it was reaped */
    uint64_t end;        /* 0 while alive */
    uint64_t cpu_before; /* at attach: what it had used before */
    struct blocked blocked;
};

/* An ended thread whose CPU time nobody told. */
struct untold {
    uint32_t thread;
    uint64_t end;
};

/* The status of a process of which no record has told yet, if it is one of ours at all. */
struct early {
    pid_t pid;
    int status;
    uint64_t time;
};

struct tasks {
    struct writer *writer;
    struct commands *commands; /* or NULL: then arguments are as /proc tells */
    struct modules *modules;
    struct map by_pid, by_tid;       /* -> pointer */
    VECTOR(struct process *) ended;  /* processes to write out and free */
    VECTOR(struct thread *) retired; /* threads whose CPU time may still arrive */
    VECTOR(struct untold) untold;
    VECTOR(struct early) early;
    uint64_t cpu_told; /* sum of what the kernel told */
    size_t counters;   /* counts that a thread tells at its end */
    size_t live_processes, live_threads;
    size_t all_processes, all_threads;
};

void tasks_init(struct tasks *t, struct writer *writer, struct modules *modules);
void tasks_release(struct tasks *t);

/* Finds or makes; what is not known is read from /proc. */
struct thread *tasks_thread(struct tasks *t, pid_t pid, pid_t tid, uint64_t time);
struct process *tasks_find(struct tasks *t, pid_t pid);                  /* NULL if not known */
struct thread *tasks_find_thread(struct tasks *t, pid_t pid, pid_t tid); /* the same */

/* A process (pid is not the parent's) or a thread; it has the name of the thread that made it. */
void tasks_on_fork(struct tasks *t, pid_t pid, pid_t tid, pid_t parent, pid_t parent_tid,
                   uint64_t time);
void tasks_on_exec(struct tasks *t, pid_t pid, const char *comm, uint64_t time);
void tasks_on_name(struct tasks *t, pid_t pid, pid_t tid, const char *name, uint64_t time);
/* As the threading module knows it, which has the last word. */
void tasks_on_python_name(struct tasks *t, pid_t pid, pid_t tid, const char *name);
void tasks_on_map(struct tasks *t, pid_t pid, const char *path, uint64_t start, uint64_t length,
                  uint64_t offset, const uint8_t *build_id, size_t build_id_len, uint64_t time);
void tasks_on_exit(struct tasks *t, pid_t pid, pid_t tid, uint64_t time);
/* All of its threads, announced or not. */
void tasks_on_process_end(struct tasks *t, pid_t pid, uint64_t time);
/* The kernel's count at a thread's end, one for each CPU that it may have run on. */
void tasks_on_cpu(struct tasks *t, pid_t tid, uint64_t ns);
/* What /proc says of it, to be used if the kernel does not tell. */
void tasks_on_cpu_seen(struct tasks *t, pid_t tid, uint64_t ns);
/* At the end, with the kernel's sum over all tasks: what one thread alone did not tell is what
 * is left of it. */
void tasks_settle_cpu(struct tasks *t, uint64_t sum);
void tasks_on_status(struct tasks *t, pid_t pid, int status, uint64_t max_rss, uint64_t time);

/* Notes a program that will not be seen: the kernel takes perf events off one that changes its
 * user. */
void tasks_warn_of_setuid(struct tasks *t, const char *path);

/* Writes what ended before `before` and forgets it. */
void tasks_retire(struct tasks *t, uint64_t before);
/* Calls for every live thread. */
void tasks_each_thread(struct tasks *t, void (*each)(void *context, struct thread *thread),
                       void *context);
/* Calls for every live process. */
void tasks_each_process(struct tasks *t, void (*each)(void *context, struct process *process),
                        void *context);
/* Ends every process that is no more, for when the kernel's word of it was lost. */
void tasks_sweep(struct tasks *t, uint64_t time);

#endif
