/*
 * The programs, written out as instructions so that no compiler for them is needed; see
 * tree_filter.h. They read two fields of the kernel's task_struct at offsets that the kernel tells.
 */
#include "capture/tree_filter.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "capture/btf.h"

#define PROCESSES_MAX 65536
#define FIRST_PID_NAMESPACE 0xEFFFFFFCu /* the inode that the kernel gives it */
/* Helpers that read kernel memory are for such programs only. */
#define LICENSE "Dual BSD/GPL"

struct tree_filter {
    int tree;       /* map: process -> 1 */
    int missed;     /* map of one number */
    int pass;       /* program for events */
    int fork, free; /* tracepoints that keep the map; -1 for none */
};

/* Offsets from the stack's end, where the programs keep what helpers are to read or fill in. */
enum { AT_PID = -4, AT_TGID = -8, AT_ONE = -16 };

#define OP(c, dst, src, o, i)                                                                      \
    {                                                                                              \
        .code = (c), .dst_reg = (dst), .src_reg = (src), .off = (o), .imm = (i)                    \
    }
#define MOVE(dst, src) OP(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0)
#define SET(dst, value) OP(BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, value)
#define ADD(dst, value) OP(BPF_ALU64 | BPF_ADD | BPF_K, dst, 0, 0, value)
#define SHIFT_RIGHT(dst, value) OP(BPF_ALU64 | BPF_RSH | BPF_K, dst, 0, 0, value)
#define LOAD(size, dst, src, off) OP(BPF_LDX | BPF_MEM | (size), dst, src, off, 0)
#define STORE(size, dst, off, src) OP(BPF_STX | BPF_MEM | (size), dst, src, off, 0)
#define STORE_VALUE(size, dst, off, value) OP(BPF_ST | BPF_MEM | (size), dst, 0, off, value)
#define MAP(dst, fd) OP(BPF_LD | BPF_DW | BPF_IMM, dst, BPF_PSEUDO_MAP_FD, 0, fd), OP(0, 0, 0, 0, 0)
#define CALL(helper) OP(BPF_JMP | BPF_CALL, 0, 0, 0, helper)
/* A jump to the last two instructions, which every program ends with: how far is filled in by load.
 */
#define TO_END INT16_MAX
#define END_IF_NONE(dst) OP(BPF_JMP | BPF_JEQ | BPF_K, dst, 0, TO_END, 0)
#define END_IF_OTHER(dst, src) OP(BPF_JMP | BPF_JNE | BPF_X, dst, src, TO_END, 0)
#define RETURN OP(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
#define END SET(BPF_REG_0, 0), RETURN
/* The address of a place on the stack. */
#define PLACE(dst, at) MOVE(dst, BPF_REG_10), ADD(dst, at)
/* A field of the task in r6 to a place on the stack. */
#define READ_FIELD(at, offset)                                                                     \
    PLACE(BPF_REG_1, at), SET(BPF_REG_2, 4), MOVE(BPF_REG_3, BPF_REG_6), ADD(BPF_REG_3, offset),   \
        CALL(BPF_FUNC_probe_read_kernel)
/* The running process's entry in the map to r0. */
#define FIND_CURRENT(map)                                                                          \
    CALL(BPF_FUNC_get_current_pid_tgid), SHIFT_RIGHT(BPF_REG_0, 32),                               \
        STORE(BPF_W, BPF_REG_10, AT_PID, BPF_REG_0), MAP(BPF_REG_1, map),                          \
        PLACE(BPF_REG_2, AT_PID), CALL(BPF_FUNC_map_lookup_elem)
/* Ends unless the task in r6 is a process, not a thread more of one; its number is at AT_PID. */
#define ONLY_PROCESSES(pid, tgid)                                                                  \
    READ_FIELD(AT_PID, pid), READ_FIELD(AT_TGID, tgid),                                            \
        LOAD(BPF_W, BPF_REG_1, BPF_REG_10, AT_PID), LOAD(BPF_W, BPF_REG_2, BPF_REG_10, AT_TGID),   \
        END_IF_OTHER(BPF_REG_1, BPF_REG_2)

static int call_bpf(enum bpf_cmd command, union bpf_attr *attr)
{
    return (int)syscall(SYS_bpf, command, attr, sizeof *attr);
}

static int make_map(enum bpf_map_type type, uint32_t value, uint32_t entries, uint32_t flags)
{
    union bpf_attr a = {.map_type = type,
                        .key_size = 4,
                        .value_size = value,
                        .max_entries = entries,
                        .map_flags = flags};
    return call_bpf(BPF_MAP_CREATE, &a);
}

static int load(enum bpf_prog_type type, struct bpf_insn *code, size_t bytes)
{
    size_t n = bytes / sizeof *code;
    for (size_t i = 0; i < n; i++)
        if (BPF_CLASS(code[i].code) == BPF_JMP && code[i].off == TO_END)
            code[i].off = (int16_t)(n - 2 - (i + 1));
    union bpf_attr a = {.prog_type = type,
                        .insns = (uint64_t)(uintptr_t)code,
                        .insn_cnt = (uint32_t)n,
                        .license = (uint64_t)(uintptr_t)LICENSE};
    return call_bpf(BPF_PROG_LOAD, &a);
}

/* A program on a tracepoint; it goes when the descriptor is closed. */
static int place_on(const char *tracepoint, struct bpf_insn *code, size_t bytes)
{
    int program = load(BPF_PROG_TYPE_RAW_TRACEPOINT, code, bytes);
    if (program < 0)
        return -1;
    union bpf_attr a = {
        .raw_tracepoint = {.name = (uint64_t)(uintptr_t)tracepoint, .prog_fd = (uint32_t)program}};
    int fd = call_bpf(BPF_RAW_TRACEPOINT_OPEN, &a);
    close(program);
    return fd;
}

/* Says 1, take the sample, if the running process is in the tree. */
static int load_pass(const struct tree_filter *f)
{
    struct bpf_insn code[] = {
        FIND_CURRENT(f->tree), END_IF_NONE(BPF_REG_0), SET(BPF_REG_0, 1), RETURN, END,
    };
    return load(BPF_PROG_TYPE_PERF_EVENT, code, sizeof code);
}

/* A task was made, the second argument: if it is a process, of one in the tree, it joins. */
static int follow_forks(const struct tree_filter *f, int32_t pid, int32_t tgid)
{
    struct bpf_insn code[] = {
        LOAD(BPF_DW, BPF_REG_6, BPF_REG_1, 8),
        FIND_CURRENT(f->tree),
        END_IF_NONE(BPF_REG_0),
        ONLY_PROCESSES(pid, tgid),
        STORE_VALUE(BPF_DW, BPF_REG_10, AT_ONE, 1),
        MAP(BPF_REG_1, f->tree),
        PLACE(BPF_REG_2, AT_PID),
        PLACE(BPF_REG_3, AT_ONE),
        SET(BPF_REG_4, BPF_ANY),
        CALL(BPF_FUNC_map_update_elem),
        END_IF_NONE(BPF_REG_0),
        STORE_VALUE(BPF_W, BPF_REG_10, AT_PID, 0),
        MAP(BPF_REG_1, f->missed),
        PLACE(BPF_REG_2, AT_PID),
        CALL(BPF_FUNC_map_lookup_elem),
        END_IF_NONE(BPF_REG_0),
        SET(BPF_REG_1, 1),
        OP(BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_0, BPF_REG_1, 0, BPF_ADD),
        END,
    };
    return place_on("sched_process_fork", code, sizeof code);
}

/* A task is no more, the first argument: its number may be another's soon. */
static int forget_ended(const struct tree_filter *f, int32_t pid, int32_t tgid)
{
    struct bpf_insn code[] = {
        LOAD(BPF_DW, BPF_REG_6, BPF_REG_1, 0),
        ONLY_PROCESSES(pid, tgid),
        MAP(BPF_REG_1, f->tree),
        PLACE(BPF_REG_2, AT_PID),
        CALL(BPF_FUNC_map_delete_elem),
        END,
    };
    return place_on("sched_process_free", code, sizeof code);
}

/* The programs know tasks by their numbers in the first namespace; perf tells us those in ours. */
static bool in_first_namespace(void)
{
    struct stat s;
    return stat("/proc/self/ns/pid", &s) == 0 && s.st_ino == FIRST_PID_NAMESPACE;
}

static int open_all(struct tree_filter *f, bool follow)
{
    static const char *const fields[] = {"pid", "tgid", NULL};
    uint32_t at[2];
    f->tree = make_map(BPF_MAP_TYPE_HASH, 8, PROCESSES_MAX, BPF_F_NO_PREALLOC);
    f->missed = f->tree < 0 ? -1 : make_map(BPF_MAP_TYPE_ARRAY, 8, 1, 0);
    f->pass = f->missed < 0 ? -1 : load_pass(f);
    if (f->pass < 0 || btf_kernel_offsets("task_struct", fields, at))
        return -1;
    f->free = forget_ended(f, (int32_t)at[0], (int32_t)at[1]);
    if (f->free < 0 || !follow)
        return f->free;
    f->fork = follow_forks(f, (int32_t)at[0], (int32_t)at[1]);
    return f->fork;
}

struct tree_filter *tree_filter_new(bool follow)
{
    if (!in_first_namespace())
        return NULL;
    struct tree_filter *f = memory_alloc(sizeof *f);
    *f = (struct tree_filter){-1, -1, -1, -1, -1};
    if (open_all(f, follow) < 0) {
        tree_filter_free(f);
        return NULL;
    }
    return f;
}

int tree_filter_add(struct tree_filter *f, pid_t pid)
{
    uint32_t key = (uint32_t)pid;
    uint64_t one = 1;
    union bpf_attr a = {.map_fd = (uint32_t)f->tree,
                        .key = (uint64_t)(uintptr_t)&key,
                        .value = (uint64_t)(uintptr_t)&one,
                        .flags = BPF_ANY};
    return call_bpf(BPF_MAP_UPDATE_ELEM, &a);
}

int tree_filter_apply(const struct tree_filter *f, int event_fd)
{
    return ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, f->pass);
}

uint64_t tree_filter_missed(const struct tree_filter *f)
{
    uint32_t key = 0;
    uint64_t n = 0;
    union bpf_attr a = {.map_fd = (uint32_t)f->missed,
                        .key = (uint64_t)(uintptr_t)&key,
                        .value = (uint64_t)(uintptr_t)&n};
    return call_bpf(BPF_MAP_LOOKUP_ELEM, &a) ? 0 : n;
}

void tree_filter_free(struct tree_filter *f)
{
    if (!f)
        return;
    int fds[] = {f->fork, f->free, f->pass, f->missed, f->tree};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(f);
}
