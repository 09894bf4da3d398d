/*
 * The agent's own state, and who may touch it when. Two kinds of memory:
 *
 *   settings   written by the constructor, then read-only; a fork's child has the same
 *   process    in pages that the kernel wipes at fork (MADV_WIPEONFORK): a child, however it was
 *              made, finds zeros, so it holds no lock, has no segment and believes in no thread of
 *              its parent. vfork's child shares them and is told apart by its thread id.
 *
 * The segment's mapping is not inherited (MADV_DONTFORK) and no descriptor stays open, so nothing
 * here can reach what belongs to another process or to the program.
 */
#ifndef SONDE_AGENT_H
#define SONDE_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/clock.h"
#include "unwind/walk.h"
#include "wire/segment.h"
#include "wire/session.h"

#define AGENT_SLOTS 8192 /* threads alive at once that can be observed */
#define AGENT_MODULES 2048
#define AGENT_BLOCK 64          /* threads whose private memory is mapped together */
#define AGENT_STACK_COPY 16384  /* bytes of a foreign stack that are looked at */
#define AGENT_STACK_WINDOW 2048 /* and where it leads on to another one */

struct agent_settings {
    bool active;         /* the constructor found a session and everything it needs */
    bool python_only;    /* other processes are observed from outside */
    bool pymalloc;       /* each object of Python's is an allocation */
    bool python_awaited; /* inert until an interpreter is loaded */
    bool single;         /* forked children are not observed */
    int signal;
    uint64_t interval; /* ns of CPU between two samples; 0: no samples */
    uint32_t ring_bytes;
    uint64_t main_stack_end;   /* the initial thread's stack ends here */
    uint64_t main_stack_size;  /* and can be this large */
    uint64_t other_stack_size; /* what pthread_create gives by default */
    uint32_t flags;            /* enum segment_flag known from the start */
    char address[108];         /* of the session, as in the environment */
    char rows[SEGMENT_PATH];   /* folder of compiled rows, or "" */
    char pack[64];             /* file of the collector's rows, or "" */
    char exe[SEGMENT_PATH];
};

enum agent_phase {
    AGENT_ABSENT = 0, /* inert; or a child that nothing told us of */
    AGENT_WAITING,    /* timers run, the segment is made at the first sample */
    AGENT_MAKING,     /* one thread is making it */
    AGENT_RUNNING,
    AGENT_OFF, /* no collector, or no means: for good */
};

struct agent_process {
    uint32_t phase;
    uint32_t tries; /* how often the segment could not be handed over */
    uint32_t modules_lock, modules_asked;
    uint32_t threads_refused; /* before there was a segment */
    uint32_t claims_failed;
    uint32_t flags; /* the same */
    int32_t pid;
    uint64_t loads, unloads; /* by the loader, as of the last look */
    uint64_t start;          /* 0: when the segment is made */
    struct segment_header *segment;
    struct segment_layout layout;
    uint32_t slots;
    uint8_t claimed[AGENT_SLOTS];
};

/* A thread's private half; the public one is its slot of the segment. */
struct agent_thread {
    uint32_t index;
    uint32_t generation; /* of the private half: tells a signal of the thread before */
    uint32_t alive;      /* set last when it starts, cleared first when it ends */
    int32_t tid;
    int32_t timer;                 /* its number + 1; 0: none, also after the wipe of a fork */
    uint64_t interval;             /* of its timer or clock, CPU ns */
    uint32_t rounds;               /* of its key's destructor */
    bool hidden;                   /* what agent_self.hidden starts as */
    uint64_t stack_low, stack_end; /* 0, 0: unknown */
    uint64_t missed, missed_value; /* samples from before the segment */
    uint64_t taking, taking_at;    /* what the sample under way stands for, and where; or 0 */
    struct clock_state clock;
    struct python_thread *python; /* see python.h, or NULL */
    struct segment_thread *slot;
    uint64_t *ring;
    void *(*start)(void *);
    void *argument;
    uint64_t window_at, window_size; /* what `window` holds */
    uint64_t address[SEGMENT_DEPTH];
    uint8_t window[AGENT_STACK_WINDOW];
    uint8_t stack[AGENT_STACK_COPY];
    struct unwind_cache cache;
};

/* Initial-exec: reading it calls nothing. */
struct agent_self {
    struct agent_thread *thread;
    uint64_t stack_low, stack_end; /* as the thread's; a forked child starts with these */
    int32_t tid;
    bool hidden;     /* the program believes that it blocks our signal */
    uint8_t handled; /* of interrupt.c, while our handler runs */
    uint32_t gate;   /* enum heap_gate */
    struct heap_thread *heap;
    struct trace_thread *trace;
};

_Static_assert(sizeof(struct agent_self) <= 64, "static TLS is scarce");

extern struct agent_settings agent_settings;
extern struct agent_process *agent_process; /* NULL until the constructor is done */
extern struct unwind_map agent_map;
extern const struct rows_pack *agent_pack; /* the collector's rows, or NULL */
/* A seccomp filter is in force: make no system call any more. Children have the same filter. */
extern uint32_t agent_quiet;
extern __thread struct agent_self agent_self __attribute__((tls_model("initial-exec")));

uint64_t agent_now(void); /* CLOCK_MONOTONIC; signal-safe */

/* The phase, ABSENT while the agent is inert. Signal-safe. */
static inline uint32_t agent_phase(void)
{
    return agent_process ? __atomic_load_n(&agent_process->phase, __ATOMIC_ACQUIRE) : AGENT_ABSENT;
}

/* The constructor's work for a process that ran before us, with these for its environment. */
bool agent_attach(char **variables);

/* Something was loaded: modules and an interpreter are looked for. In start.c; not for handlers. */
void agent_after_load(void *handle);

/* A process that was to stay as it is has something to say after all; whether the agent runs. */
bool agent_begin_late(void);
/* The program asks for a session that the environment names; in start.c. False: there is none. */
bool agent_join(void);
void agent_leave(void); /* no sample and no word until the next one */

/* Sets a bit for the collector to tell the user of. Signal-safe. */
void agent_declare(uint32_t flag);

#endif
