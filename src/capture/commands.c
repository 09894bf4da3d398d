/* A program at every start of a program, and the ring that it writes to; see commands.h. */
#include "capture/commands.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/vector.h"
#include "capture/bpf.h"
#include "capture/bpf_ring.h"

#define RING_BYTES (1u << 20)
#define FORGET_AFTER (2 * 1000000000ull)

/* As the program writes it. */
struct told {
    uint64_t time;
    uint32_t pid, len;
    char arguments[COMMANDS_ARGUMENTS];
};

struct command {
    pid_t pid;
    uint64_t time;
    char *text;
};

struct commands {
    int on_exec;
    struct bpf_ring ring;
    VECTOR(struct command) waiting;
};

#define LETTERS(a, b, c, d) ((a) | (b) << 8 | (c) << 16 | (d) << 24)

/* The first argument is the task, the third what its program is loaded by. What cannot be read of
 * the file's name is no Python's. Then r8 holds where its arguments start, r9 how long they are. */
static int watch_starts(const struct commands *c, int tree, const struct commands_places *p,
                        int python)
{
    const int32_t memory = (int32_t)p->memory;
    const int32_t start = (int32_t)p->arguments[0], end = (int32_t)p->arguments[1];
    const int32_t file = (int32_t)p->file, entry = (int32_t)p->entry, name = (int32_t)p->name;
    struct bpf_insn code[] = {
        LOAD(BPF_DW, BPF_REG_6, BPF_REG_1, 0),
        LOAD(BPF_DW, BPF_REG_7, BPF_REG_1, 16),
        FIND_CURRENT(tree),
        END_IF_NONE(BPF_REG_0),
        MOVE(BPF_REG_8, BPF_REG_0),
        STORE_VALUE(BPF_DW, BPF_REG_8, 0, TREE_SAMPLED), /* not muted any more */
        FOLLOW(BPF_REG_7, file),
        FOLLOW(BPF_REG_7, entry),
        FOLLOW(BPF_REG_7, name),
        STORE_VALUE(BPF_DW, BPF_REG_10, AT_NAME, 0),
        READ_TEXT(AT_NAME, sizeof "python", BPF_REG_7, 0),
        LOAD(BPF_W, BPF_REG_1, BPF_REG_10, AT_NAME),
        LOAD(BPF_H, BPF_REG_2, BPF_REG_10, AT_NAME + 4),
        SKIP_IF_OTHER(BPF_REG_1, LETTERS('p', 'y', 't', 'h'), 2),
        SKIP_IF_OTHER(BPF_REG_2, LETTERS('o', 'n', 0, 0), 1),
        STORE_VALUE(BPF_DW, BPF_REG_8, 0, python),
        FOLLOW(BPF_REG_6, memory),
        MOVE(BPF_REG_7, BPF_REG_6),
        READ_FIELD(AT_VALUE, 8, BPF_REG_7, start),
        LOAD(BPF_DW, BPF_REG_8, BPF_REG_10, AT_VALUE),
        READ_FIELD(AT_VALUE, 8, BPF_REG_7, end),
        LOAD(BPF_DW, BPF_REG_9, BPF_REG_10, AT_VALUE),
        SUBTRACT(BPF_REG_9, BPF_REG_8),
        SKIP_IF_AT_MOST(BPF_REG_9, COMMANDS_ARGUMENTS, 1),
        SET(BPF_REG_9, COMMANDS_ARGUMENTS),
        MAP(BPF_REG_1, c->ring.fd),
        SET(BPF_REG_2, sizeof(struct told)),
        SET(BPF_REG_3, 0),
        CALL(BPF_FUNC_ringbuf_reserve),
        END_IF_NONE(BPF_REG_0),
        MOVE(BPF_REG_7, BPF_REG_0),
        CALL(BPF_FUNC_ktime_get_ns),
        STORE(BPF_DW, BPF_REG_7, offsetof(struct told, time), BPF_REG_0),
        LOAD(BPF_W, BPF_REG_1, BPF_REG_10, AT_PID),
        STORE(BPF_W, BPF_REG_7, offsetof(struct told, pid), BPF_REG_1),
        STORE(BPF_W, BPF_REG_7, offsetof(struct told, len), BPF_REG_9),
        MOVE(BPF_REG_1, BPF_REG_7),
        ADD(BPF_REG_1, offsetof(struct told, arguments)),
        MOVE(BPF_REG_2, BPF_REG_9),
        MOVE(BPF_REG_3, BPF_REG_8),
        CALL(BPF_FUNC_probe_read_user),
        SKIP_IF_NONE(BPF_REG_0, 1),
        STORE_VALUE(BPF_W, BPF_REG_7, offsetof(struct told, len), 0),
        MOVE(BPF_REG_1, BPF_REG_7),
        SET(BPF_REG_2, BPF_RB_NO_WAKEUP),
        CALL(BPF_FUNC_ringbuf_submit),
        END,
    };
    return bpf_place_on("sched_process_exec", code, sizeof code);
}

struct commands *commands_new(int tree, const struct commands_places *places, int python)
{
    struct commands *c = memory_alloc(sizeof *c);
    c->on_exec = -1;
    if (bpf_ring_open(&c->ring, RING_BYTES) == 0)
        c->on_exec = watch_starts(c, tree, places, python);
    if (c->on_exec < 0) {
        commands_free(c);
        return NULL;
    }
    return c;
}

static void keep(void *context, const void *record)
{
    struct commands *c = context;
    const struct told *t = record;
    size_t len = t->len > COMMANDS_ARGUMENTS ? COMMANDS_ARGUMENTS : t->len;
    while (len && !t->arguments[len - 1])
        len--;
    if (!len)
        return;
    char *text = memory_alloc(len + 1);
    for (size_t i = 0; i < len; i++)
        text[i] = t->arguments[i] ? t->arguments[i] : ' ';
    *vector_push(&c->waiting) = (struct command){(pid_t)t->pid, t->time, text};
}

static void forget_old(struct commands *c, uint64_t before)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->waiting.len; i++) {
        if (c->waiting.data[i].time >= before)
            c->waiting.data[kept++] = c->waiting.data[i];
        else
            free(c->waiting.data[i].text);
    }
    c->waiting.len = kept;
}

void commands_refresh(struct commands *c)
{
    bpf_ring_each(&c->ring, keep, c);
    forget_old(c, clock_now() - FORGET_AFTER);
}

bool commands_take(struct commands *c, pid_t pid, uint64_t time, char *out, size_t size)
{
    for (size_t i = 0; i < c->waiting.len; i++) {
        struct command *one = &c->waiting.data[i];
        if (one->pid != pid || one->time < time)
            continue;
        size_t len = strlen(one->text);
        len = len < size ? len : size - 1;
        memcpy(out, one->text, len);
        out[len] = 0;
        free(one->text);
        memmove(one, one + 1, (c->waiting.len - i - 1) * sizeof *one);
        c->waiting.len--;
        return true;
    }
    return false;
}

void commands_free(struct commands *c)
{
    if (!c)
        return;
    forget_old(c, UINT64_MAX);
    vector_release(&c->waiting);
    bpf_ring_release(&c->ring);
    if (c->on_exec >= 0)
        close(c->on_exec);
    free(c);
}
