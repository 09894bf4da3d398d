/*
 * Python's frames, copied by the kernel at the very instant of a sample: a BPF program goes along
 * the chain of frames of a thread whose state is known, and puts their bytes into a ring. The
 * thread is in the kernel meanwhile, so nothing that is read can move; nobody is woken, and nothing
 * is put into the process. Whoever reads the ring later walks the copies instead of the process.
 */
#ifndef SONDE_FRAME_COPIES_H
#define SONDE_FRAME_COPIES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FRAME_COPIES_STATE 512 /* bytes of a thread's state, of a frame, at most */
#define FRAME_COPIES_FRAME 128
#define FRAME_COPIES_BETWEEN 24 /* of a _PyCFrame */
#define FRAME_COPIES_MARKS 4    /* words of code */
#define FRAME_COPIES_TABLE 256  /* of a dict's table */
#define FRAME_COPIES_DEPTH 160  /* frames at a time, and how often */
#define FRAME_COPIES_PARTS 26   /* a program may go on with another 33 times */

/* Where a thread's frames are found: sizes in bytes, offsets from the start of each structure. */
struct frame_plan {
    uint64_t state;       /* its address */
    uint32_t state_size;  /* up to FRAME_COPIES_STATE */
    uint32_t top;         /* in the state: the innermost frame, or what has it ... */
    uint32_t between;     /* ... in a structure in between, if there is one: ... */
    uint32_t between_top; /* ... where in that */
    uint32_t frame_size;  /* up to FRAME_COPIES_FRAME */
    uint32_t back, code;  /* in a frame: its caller's, and the code that it runs */
    uint32_t mark;        /* in the code: words that tell it from what lay there before ... */
    uint32_t mark_size;   /* ... up to four of them, in bytes */
    uint64_t tasks;       /* address of the word that leads to asyncio's running tasks; 0: none */
};

/* What the program writes. */
struct frame_copy {
    uint64_t time; /* near the sample's own: which is first differs from kernel to kernel */
    uint32_t tid, pid;
    uint32_t busy;  /* the program's own */
    uint32_t news;  /* it is to be read at once: there is new code, or it is long */
    uint32_t part;  /* frames beyond FRAME_COPIES_DEPTH come with the same time in further parts */
    uint32_t bytes; /* of `frame` that were filled in */
    uint64_t rest;  /* the frame at which it stopped; 0: these are all */
    uint64_t state_at, between_at;
    uint64_t tasks_at, tasks;          /* the plan's word, or 0, and what stood there ... */
    uint8_t table[FRAME_COPIES_TABLE]; /* ... and what that leads to */
    uint8_t between[FRAME_COPIES_BETWEEN];
    uint8_t state[FRAME_COPIES_STATE];
    struct frame_copied {
        uint64_t address;
        uint64_t mark; /* of its code: see frame_mark */
        uint8_t bytes[FRAME_COPIES_FRAME];
    } frame[];
};

/* What the words of a plan's mark are summed up to; the program does the same. */
static inline uint64_t frame_mark(const uint64_t words[FRAME_COPIES_MARKS])
{
    return words[0] ^ words[1] << 8 ^ words[2] << 16 ^ words[3] << 24;
}

struct frame_copies;

/* Loads the program and puts it into the map `programs`, for those of events to go on with: it says
 * 1, take the sample. NULL if this kernel does not take it. Where it has no plan for a thread, or
 * that does not hold, it writes to the ring `bell`; where there are tasks or code that was not in a
 * copy before, it does both: what they are called is in no copy, and they may soon be gone. */
struct frame_copies *frame_copies_new(int bell, int programs);
void frame_copies_free(struct frame_copies *c); /* NULL-safe */

/* From now on the thread's frames are copied. */
void frame_copies_plan(struct frame_copies *c, pid_t tid, const struct frame_plan *plan);
/* The code of these frames has been read. */
void frame_copies_know(struct frame_copies *c, const struct frame_copy *k,
                       const struct frame_plan *plan);
/* The copy that was taken for the sample of the thread at `time`, in one piece, or NULL; free() it.
 */
struct frame_copy *frame_copies_take(struct frame_copies *c, pid_t tid, uint64_t time);

#endif
