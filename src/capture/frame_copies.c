/* See frame_copies.h. */
#include "capture/frame_copies.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/vector.h"
#include "capture/bpf.h"
#include "capture/bpf_ring.h"

#define THREADS_MAX 16384
#define CODES_MAX 65536
#define CODE_MASK (-4)
#define RING_BYTES (4u << 20)
#define INSTRUCTIONS_MAX 256
#define NEAR 200000ull        /* ns between a copy and its sample, either first, at most */
#define KEPT 1000000000ull    /* ns for which a copy waits for its sample */
#define KEPT_MANY (64u << 20) /* bytes of them */

struct frame_copies {
    int program;
    int threads; /* map: thread -> struct frame_plan */
    int codes;   /* map: struct code_key of code that was met before */
    int scratch; /* map: one struct frame_copy a CPU */
    struct bpf_ring ring;
    VECTOR(struct frame_copy *) waiting; /* in order of time, nearly */
    size_t first, bytes;
    struct map known; /* what is in `codes` */
};

struct code_key {
    uint64_t code, mark, pid;
};

void frame_copies_free(struct frame_copies *c)
{
    if (!c)
        return;
    for (size_t i = c->first; i < c->waiting.len; i++)
        free(c->waiting.data[i]);
    vector_release(&c->waiting);
    bpf_ring_release(&c->ring);
    map_release(&c->known);
    int fds[] = {c->program, c->threads, c->codes, c->scratch};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(c);
}

/* ---- the program */

struct program {
    struct bpf_insn code[INSTRUCTIONS_MAX];
    size_t len;
};

static void put_all(struct program *p, const struct bpf_insn *code, size_t bytes)
{
    memcpy(p->code + p->len, code, bytes);
    p->len += bytes / sizeof *code;
}

#define PUT(p, ...)                                                                                \
    put_all(p, (const struct bpf_insn[]){__VA_ARGS__},                                             \
            sizeof((const struct bpf_insn[]){__VA_ARGS__}))

/* Jumps whose end comes later. */
struct jumps {
    size_t at[8], len;
};

static void put_jump(struct program *p, struct jumps *to, uint8_t kind, int reg, int32_t value)
{
    to->at[to->len++] = p->len;
    PUT(p, OP(BPF_JMP | kind | BPF_K, reg, 0, 0, value));
}

static void land(struct program *p, const struct jumps *here)
{
    for (size_t i = 0; i < here->len; i++)
        p->code[here->at[i]].off = (int16_t)(p->len - here->at[i] - 1);
}

enum { PLAN = BPF_REG_7, COPY = BPF_REG_8, FRAME = BPF_REG_9, DONE = BPF_REG_6 };
#define IN_PLAN(field) offsetof(struct frame_plan, field)
#define IN_COPY(field) offsetof(struct frame_copy, field)
#define STRIDE ((int)sizeof(struct frame_copied))
#define FULL (FRAME_COPIES_DEPTH * STRIDE)
/* On the stack; three words from AT_CODE on are a struct code_key. */
enum { AT_TASK = AT_VALUE, AT_CONTEXT = AT_NAME, AT_CODE = -72, AT_MARK = -64, AT_PROCESS = -56 };
enum { AT_WORDS = -104 };
enum { BUSY = 1, BUSY_MORE }; /* BUSY_MORE: the next one goes on at `rest` */

/* Memory of the process at `from` to a place in the copy, as many bytes as the plan says; fails if
 * that is more than there is room for. */
static void put_read(struct program *p, struct jumps *fail, size_t size_at, int most, int from)
{
    PUT(p, LOAD(BPF_W, BPF_REG_2, PLAN, (int16_t)size_at));
    put_jump(p, fail, BPF_JGT, BPF_REG_2, most);
    PUT(p, MOVE(BPF_REG_3, from), CALL(BPF_FUNC_probe_read_user));
    put_jump(p, fail, BPF_JNE, BPF_REG_0, 0);
}

/* The word at an offset that the plan has, in a part of the copy that r3 points to. */
static void put_word(struct program *p, struct jumps *fail, size_t offset_at, int most)
{
    PUT(p, LOAD(BPF_W, BPF_REG_1, PLAN, (int16_t)offset_at));
    put_jump(p, fail, BPF_JGT, BPF_REG_1, most - 8);
    PUT(p, OP(BPF_ALU64 | BPF_ADD | BPF_X, BPF_REG_3, BPF_REG_1, 0, 0),
        LOAD(BPF_DW, FRAME, BPF_REG_3, 0));
}

/* From the thread's state to its innermost frame. */
static void put_top(struct program *p, struct jumps *fail)
{
    struct jumps direct = {0};
    PUT(p, LOAD(BPF_DW, FRAME, PLAN, IN_PLAN(state)), STORE(BPF_DW, COPY, IN_COPY(state_at), FRAME),
        MOVE(BPF_REG_1, COPY), ADD(BPF_REG_1, IN_COPY(state)));
    put_read(p, fail, IN_PLAN(state_size), FRAME_COPIES_STATE, FRAME);
    PUT(p, MOVE(BPF_REG_3, COPY), ADD(BPF_REG_3, IN_COPY(state)));
    put_word(p, fail, IN_PLAN(top), FRAME_COPIES_STATE);
    PUT(p, STORE_VALUE(BPF_DW, COPY, IN_COPY(between_at), 0),
        LOAD(BPF_W, BPF_REG_1, PLAN, IN_PLAN(between)));
    put_jump(p, &direct, BPF_JEQ, BPF_REG_1, 0);
    PUT(p, STORE(BPF_DW, COPY, IN_COPY(between_at), FRAME), MOVE(BPF_REG_1, COPY),
        ADD(BPF_REG_1, IN_COPY(between)), SET(BPF_REG_2, FRAME_COPIES_BETWEEN),
        MOVE(BPF_REG_3, FRAME), CALL(BPF_FUNC_probe_read_user));
    put_jump(p, fail, BPF_JNE, BPF_REG_0, 0);
    PUT(p, MOVE(BPF_REG_3, COPY), ADD(BPF_REG_3, IN_COPY(between)));
    put_word(p, fail, IN_PLAN(between_top), FRAME_COPIES_BETWEEN);
    land(p, &direct);
}

/* The mark of the code in AT_CODE to r1 and AT_MARK; 0 if it cannot be read. */
static void put_mark(struct program *p, struct jumps *fail)
{
    for (int i = 0; i < FRAME_COPIES_MARKS; i++)
        PUT(p, STORE_VALUE(BPF_DW, BPF_REG_10, AT_WORDS + 8 * i, 0));
    PUT(p, LOAD(BPF_W, BPF_REG_2, PLAN, IN_PLAN(mark_size)));
    put_jump(p, fail, BPF_JGT, BPF_REG_2, 8 * FRAME_COPIES_MARKS);
    PUT(p, LOAD(BPF_DW, BPF_REG_3, BPF_REG_10, AT_CODE),
        LOAD(BPF_W, BPF_REG_1, PLAN, IN_PLAN(mark)),
        OP(BPF_ALU64 | BPF_ADD | BPF_X, BPF_REG_3, BPF_REG_1, 0, 0), PLACE(BPF_REG_1, AT_WORDS),
        CALL(BPF_FUNC_probe_read_user), LOAD(BPF_DW, BPF_REG_1, BPF_REG_10, AT_WORDS));
    for (int i = 1; i < FRAME_COPIES_MARKS; i++)
        PUT(p, LOAD(BPF_DW, BPF_REG_2, BPF_REG_10, AT_WORDS + 8 * i),
            OP(BPF_ALU64 | BPF_LSH | BPF_K, BPF_REG_2, 0, 0, 8 * i),
            OP(BPF_ALU64 | BPF_XOR | BPF_X, BPF_REG_1, BPF_REG_2, 0, 0));
    PUT(p, STORE(BPF_DW, BPF_REG_10, AT_MARK, BPF_REG_1));
}

/* Whether the code of the frame that DONE stands for is known; the lowest bits of the word are of
 * another meaning from 3.14 on. */
static void put_code(struct program *p, struct jumps *fail, int codes)
{
    struct jumps known = {0};
    PUT(p, LOAD(BPF_W, BPF_REG_1, PLAN, IN_PLAN(code)));
    put_jump(p, fail, BPF_JGT, BPF_REG_1, FRAME_COPIES_FRAME - 8);
    PUT(p, MOVE(BPF_REG_3, COPY), OP(BPF_ALU64 | BPF_ADD | BPF_X, BPF_REG_3, DONE, 0, 0),
        OP(BPF_ALU64 | BPF_ADD | BPF_X, BPF_REG_3, BPF_REG_1, 0, 0),
        LOAD(BPF_DW, BPF_REG_1, BPF_REG_3, IN_COPY(frame[0].bytes)),
        OP(BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_1, 0, 0, CODE_MASK),
        STORE(BPF_DW, BPF_REG_10, AT_CODE, BPF_REG_1));
    put_mark(p, fail);
    PUT(p, MOVE(BPF_REG_3, COPY), OP(BPF_ALU64 | BPF_ADD | BPF_X, BPF_REG_3, DONE, 0, 0),
        STORE(BPF_DW, BPF_REG_3, IN_COPY(frame[0].mark), BPF_REG_1), MAP(BPF_REG_1, codes),
        PLACE(BPF_REG_2, AT_CODE), CALL(BPF_FUNC_map_lookup_elem));
    put_jump(p, &known, BPF_JNE, BPF_REG_0, 0);
    PUT(p, STORE_VALUE(BPF_W, COPY, IN_COPY(news), 1));
    land(p, &known);
}

/* Frame after frame, until there is none, or no room, or one cannot be read. */
static void put_frames(struct program *p, int codes)
{
    struct jumps done = {0};
    PUT(p, SET(DONE, 0));
    size_t again = p->len;
    put_jump(p, &done, BPF_JEQ, FRAME, 0);
    put_jump(p, &done, BPF_JGE, DONE, FULL);
    PUT(p, MOVE(BPF_REG_1, COPY), OP(BPF_ALU64 | BPF_ADD | BPF_X, BPF_REG_1, DONE, 0, 0),
        STORE(BPF_DW, BPF_REG_1, IN_COPY(frame), FRAME), ADD(BPF_REG_1, IN_COPY(frame[0].bytes)));
    put_read(p, &done, IN_PLAN(frame_size), FRAME_COPIES_FRAME, FRAME);
    PUT(p, MOVE(BPF_REG_3, COPY), OP(BPF_ALU64 | BPF_ADD | BPF_X, BPF_REG_3, DONE, 0, 0),
        ADD(BPF_REG_3, IN_COPY(frame[0].bytes)));
    put_word(p, &done, IN_PLAN(back), FRAME_COPIES_FRAME);
    put_code(p, &done, codes);
    PUT(p, ADD(DONE, STRIDE));
    PUT(p, OP(BPF_JMP | BPF_JA, 0, 0, (int16_t)((int)again - (int)p->len - 1), 0));
    land(p, &done);
}

/* Which tasks run; if it cannot be seen, tasks_at is 0. */
static void put_tasks(struct program *p)
{
    struct jumps none = {0}, seen = {0}, unseen = {0};
    PUT(p, LOAD(BPF_DW, BPF_REG_3, PLAN, IN_PLAN(tasks)),
        STORE(BPF_DW, COPY, IN_COPY(tasks_at), BPF_REG_3));
    put_jump(p, &none, BPF_JEQ, BPF_REG_3, 0);
    PUT(p, MOVE(BPF_REG_1, COPY), ADD(BPF_REG_1, IN_COPY(tasks)), SET(BPF_REG_2, 8),
        CALL(BPF_FUNC_probe_read_user));
    put_jump(p, &unseen, BPF_JNE, BPF_REG_0, 0);
    PUT(p, LOAD(BPF_DW, BPF_REG_3, COPY, IN_COPY(tasks)), MOVE(BPF_REG_1, COPY),
        ADD(BPF_REG_1, IN_COPY(table)), SET(BPF_REG_2, FRAME_COPIES_TABLE),
        CALL(BPF_FUNC_probe_read_user));
    put_jump(p, &seen, BPF_JEQ, BPF_REG_0, 0);
    land(p, &unseen);
    PUT(p, STORE_VALUE(BPF_DW, COPY, IN_COPY(tasks_at), 0));
    land(p, &seen);
    land(p, &none);
}

/* Into the ring. How much there is, is read back: else the kernel's check of the program would go
 * on from here for each number that it could be. */
static void put_output(struct program *p, struct jumps *fail, int ring)
{
    PUT(p, STORE(BPF_W, COPY, IN_COPY(bytes), DONE), STORE(BPF_DW, COPY, IN_COPY(rest), FRAME),
        LOAD(BPF_W, DONE, COPY, IN_COPY(bytes)));
    put_jump(p, fail, BPF_JGT, DONE, FULL);
    PUT(p, MAP(BPF_REG_1, ring), MOVE(BPF_REG_2, COPY), MOVE(BPF_REG_3, DONE),
        ADD(BPF_REG_3, IN_COPY(frame)), SET(BPF_REG_4, BPF_RB_NO_WAKEUP),
        CALL(BPF_FUNC_ringbuf_output));
}

/* Where there are more frames than a part has room for, the program begins once more. */
static void put_again(struct program *p, int itself)
{
    struct jumps all = {0};
    put_jump(p, &all, BPF_JEQ, FRAME, 0);
    put_jump(p, &all, BPF_JNE, DONE, FULL);
    PUT(p, LOAD(BPF_W, BPF_REG_1, COPY, IN_COPY(part)), ADD(BPF_REG_1, 1));
    put_jump(p, &all, BPF_JGE, BPF_REG_1, FRAME_COPIES_PARTS);
    PUT(p, STORE(BPF_W, COPY, IN_COPY(part), BPF_REG_1),
        STORE_VALUE(BPF_W, COPY, IN_COPY(news), 1), /* it would fill the ring before we look */
        STORE_VALUE(BPF_W, COPY, IN_COPY(busy), BUSY_MORE),
        LOAD(BPF_DW, BPF_REG_1, BPF_REG_10, AT_CONTEXT), MAP(BPF_REG_2, itself), SET(BPF_REG_3, 0),
        CALL(BPF_FUNC_tail_call));
    land(p, &all);
}

/* The plan of the running thread and room for a copy. */
static void put_start(struct program *p, const struct frame_copies *c, struct jumps *ring)
{
    PUT(p, STORE(BPF_DW, BPF_REG_10, AT_CONTEXT, BPF_REG_1), CALL(BPF_FUNC_get_current_pid_tgid),
        STORE(BPF_DW, BPF_REG_10, AT_TASK, BPF_REG_0), SHIFT_RIGHT(BPF_REG_0, 32),
        STORE(BPF_DW, BPF_REG_10, AT_PROCESS, BPF_REG_0), MAP(BPF_REG_1, c->threads),
        PLACE(BPF_REG_2, AT_TASK), CALL(BPF_FUNC_map_lookup_elem));
    put_jump(p, ring, BPF_JEQ, BPF_REG_0, 0);
    PUT(p, MOVE(PLAN, BPF_REG_0), STORE_VALUE(BPF_W, BPF_REG_10, AT_PID, 0),
        MAP(BPF_REG_1, c->scratch), PLACE(BPF_REG_2, AT_PID), CALL(BPF_FUNC_map_lookup_elem));
    put_jump(p, ring, BPF_JEQ, BPF_REG_0, 0);
    PUT(p, MOVE(COPY, BPF_REG_0));
}

/* All but the frames. */
static void put_head(struct program *p, struct jumps *ring, struct jumps *fail)
{
    put_jump(p, ring, BPF_JNE, BPF_REG_1, 0); /* another event came upon this one */
    PUT(p, STORE_VALUE(BPF_W, COPY, IN_COPY(busy), BUSY),
        STORE_VALUE(BPF_W, COPY, IN_COPY(part), 0), STORE_VALUE(BPF_W, COPY, IN_COPY(news), 0),
        CALL(BPF_FUNC_ktime_get_ns), STORE(BPF_DW, COPY, IN_COPY(time), BPF_REG_0),
        LOAD(BPF_DW, BPF_REG_1, BPF_REG_10, AT_TASK), STORE(BPF_DW, COPY, IN_COPY(tid), BPF_REG_1));
    put_top(p, fail);
    put_tasks(p);
}

static int load(const struct frame_copies *c, int bell, int itself)
{
    struct program p = {.len = 0};
    struct jumps take = {0}, ring = {0}, fail = {0}, more = {0}, frames = {0};
    put_start(&p, c, &ring);
    PUT(&p, LOAD(BPF_W, BPF_REG_1, COPY, IN_COPY(busy)));
    put_jump(&p, &more, BPF_JEQ, BPF_REG_1, BUSY_MORE);
    put_head(&p, &ring, &fail);
    put_jump(&p, &frames, BPF_JA, 0, 0);
    land(&p, &more);
    PUT(&p, STORE_VALUE(BPF_W, COPY, IN_COPY(busy), BUSY),
        LOAD(BPF_DW, FRAME, COPY, IN_COPY(rest)));
    land(&p, &frames);
    put_frames(&p, c->codes);
    put_output(&p, &fail, c->ring.fd);
    put_again(&p, itself);
    PUT(&p, STORE_VALUE(BPF_W, COPY, IN_COPY(busy), 0),
        LOAD(BPF_DW, BPF_REG_1, PLAN, IN_PLAN(tasks)));
    put_jump(&p, &ring, BPF_JNE, BPF_REG_1, 0);
    PUT(&p, LOAD(BPF_W, BPF_REG_1, COPY, IN_COPY(news)));
    put_jump(&p, &ring, BPF_JNE, BPF_REG_1, 0);
    put_jump(&p, &take, BPF_JA, 0, 0);
    land(&p, &fail);
    PUT(&p, STORE_VALUE(BPF_W, COPY, IN_COPY(busy), 0));
    land(&p, &ring);
    PUT(&p, BPF_RING_BELL(bell));
    land(&p, &take);
    PUT(&p, SET(BPF_REG_0, 1), RETURN);
    return bpf_load(BPF_PROG_TYPE_PERF_EVENT, p.code, p.len * sizeof *p.code);
}

/* Into the map through which others, and it itself, come to it. */
static int publish(int map, int program)
{
    uint32_t key = 0, value = (uint32_t)program;
    union bpf_attr a = {.map_fd = (uint32_t)map,
                        .key = (uint64_t)(uintptr_t)&key,
                        .value = (uint64_t)(uintptr_t)&value};
    return bpf_call(BPF_MAP_UPDATE_ELEM, &a);
}

struct frame_copies *frame_copies_new(int bell, int programs)
{
    struct frame_copies *c = memory_alloc(sizeof *c);
    c->program = -1;
    c->threads = bpf_map(BPF_MAP_TYPE_LRU_HASH, 4, sizeof(struct frame_plan), THREADS_MAX, 0);
    c->codes = bpf_map(BPF_MAP_TYPE_HASH, sizeof(struct code_key), 4, CODES_MAX, BPF_F_NO_PREALLOC);
    c->scratch =
        bpf_map(BPF_MAP_TYPE_PERCPU_ARRAY, 4, (uint32_t)sizeof(struct frame_copy) + FULL, 1, 0);
    if (!bpf_ring_open(&c->ring, RING_BYTES) && c->threads >= 0 && c->codes >= 0 && c->scratch >= 0)
        c->program = load(c, bell, programs);
    if (c->program < 0 || publish(programs, c->program)) {
        frame_copies_free(c);
        return NULL;
    }
    return c;
}

/* ---- its ring */

void frame_copies_plan(struct frame_copies *c, pid_t tid, const struct frame_plan *plan)
{
    uint32_t key = (uint32_t)tid;
    union bpf_attr a = {.map_fd = (uint32_t)c->threads,
                        .key = (uint64_t)(uintptr_t)&key,
                        .value = (uint64_t)(uintptr_t)plan};
    bpf_call(BPF_MAP_UPDATE_ELEM, &a);
}

void frame_copies_know(struct frame_copies *c, const struct frame_copy *k,
                       const struct frame_plan *plan)
{
    for (size_t i = 0; k->news && i < k->bytes / sizeof *k->frame; i++) {
        struct code_key key = {.mark = k->frame[i].mark, .pid = k->pid};
        uint32_t value = 0;
        bool added;
        memcpy(&key.code, k->frame[i].bytes + plan->code, sizeof key.code);
        key.code &= (uint64_t)CODE_MASK;
        if (c->known.len == CODES_MAX)
            return; /* what is new from here on rings each time */
        map_put(&c->known, key.code ^ key.pid * 0x9e3779b97f4a7c15ull, key.mark, 0, &added);
        union bpf_attr a = {.map_fd = (uint32_t)c->codes,
                            .key = (uint64_t)(uintptr_t)&key,
                            .value = (uint64_t)(uintptr_t)&value};
        if (added)
            bpf_call(BPF_MAP_UPDATE_ELEM, &a);
    }
}

static size_t size_of(const struct frame_copy *k)
{
    return offsetof(struct frame_copy, frame) + k->bytes;
}

/* A further part, to the one it goes on from. */
static void append(struct frame_copies *c, const struct frame_copy *more)
{
    for (size_t i = c->waiting.len; i > c->first; i--) {
        struct frame_copy **at = &c->waiting.data[i - 1], *k = *at;
        if (!k || k->tid != more->tid || k->time != more->time || k->part + 1 != more->part)
            continue;
        *at = k = memory_grow(k, size_of(k) + more->bytes, 1);
        memcpy((uint8_t *)k->frame + k->bytes, more->frame, more->bytes);
        k->bytes += more->bytes;
        k->part = more->part;
        k->rest = more->rest;
        c->bytes += more->bytes;
        return;
    }
}

static void on_copy(void *context, const void *record)
{
    struct frame_copies *c = context;
    const struct frame_copy *k = record;
    if (k->part) {
        append(c, k);
        return;
    }
    struct frame_copy *kept = memory_alloc(size_of(k));
    memcpy(kept, k, size_of(k));
    *vector_push(&c->waiting) = kept;
    c->bytes += size_of(k);
}

/* Those whose sample does not come any more, or was lost. */
static void forget_old(struct frame_copies *c, uint64_t time)
{
    while (c->first < c->waiting.len) {
        struct frame_copy *k = c->waiting.data[c->first];
        if (k && k->time + KEPT > time && c->bytes < KEPT_MANY)
            break;
        c->bytes -= k ? size_of(k) : 0;
        free(k);
        c->first++;
    }
    if (c->first > 1024 && c->first > c->waiting.len / 2) {
        c->waiting.len -= c->first;
        memmove(c->waiting.data, c->waiting.data + c->first,
                c->waiting.len * sizeof *c->waiting.data);
        c->first = 0;
    }
}

struct frame_copy *frame_copies_take(struct frame_copies *c, pid_t tid, uint64_t time)
{
    struct frame_copy **best = NULL;
    uint64_t least = NEAR;
    bpf_ring_each(&c->ring, on_copy, c);
    forget_old(c, time);
    for (size_t i = c->first; i < c->waiting.len; i++) {
        struct frame_copy *k = c->waiting.data[i];
        uint64_t far = !k ? NEAR : k->time < time ? time - k->time : k->time - time;
        if (far < least && k->tid == (uint32_t)tid) {
            best = &c->waiting.data[i];
            least = far;
        }
    }
    if (!best)
        return NULL;
    struct frame_copy *found = *best;
    *best = NULL;
    c->bytes -= size_of(found);
    return found;
}
