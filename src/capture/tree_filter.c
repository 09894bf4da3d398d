/* The programs, which read two fields of the kernel's task_struct where it says they are; see
 * tree_filter.h. */
#include "capture/tree_filter.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "capture/bpf.h"
#include "capture/btf.h"

#define PROCESSES_MAX 65536
#define FIRST_PID_NAMESPACE 0xEFFFFFFCu /* the inode that the kernel gives it */

struct tree_filter {
    int tree;       /* map: process -> 1, or 0 if it is muted */
    int missed;     /* map of one number */
    int pass;       /* program for events */
    int fork, free; /* tracepoints that keep the map; -1 for none */
    int rename;     /* the one that ends muting; -1: only an exec does */
    struct commands *commands;
};

/* Says 1, take the sample, if the running process is in the tree and not muted. */
static int load_pass(const struct tree_filter *f)
{
    struct bpf_insn code[] = {
        FIND_CURRENT(f->tree),
        END_IF_NONE(BPF_REG_0),
        LOAD(BPF_DW, BPF_REG_0, BPF_REG_0, 0),
        RETURN,
        END,
    };
    return bpf_load(BPF_PROG_TYPE_PERF_EVENT, code, sizeof code);
}

/* A task was made, the second argument: if it is a process, of one in the tree, it joins. */
static int follow_forks(const struct tree_filter *f, int32_t pid, int32_t tgid)
{
    struct bpf_insn code[] = {
        LOAD(BPF_DW, BPF_REG_6, BPF_REG_1, 8),
        FIND_CURRENT(f->tree),
        END_IF_NONE(BPF_REG_0),
        ONLY_PROCESSES(pid, tgid),
        STORE_VALUE(BPF_DW, BPF_REG_10, AT_VALUE, 1),
        MAP(BPF_REG_1, f->tree),
        PLACE(BPF_REG_2, AT_PID),
        PLACE(BPF_REG_3, AT_VALUE),
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
    return bpf_place_on("sched_process_fork", code, sizeof code);
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
    return bpf_place_on("sched_process_free", code, sizeof code);
}

/* A task is renamed, the first argument, to what it is called already: it is about to exec, and who
 * sampled it inside does so no more (see agent/clock.c). */
static int follow_names(const struct tree_filter *f, int32_t name)
{
    struct bpf_insn code[] = {
        LOAD(BPF_DW, BPF_REG_6, BPF_REG_1, 0),
        LOAD(BPF_DW, BPF_REG_7, BPF_REG_1, 8),
        FIND_CURRENT(f->tree),
        END_IF_NONE(BPF_REG_0),
        MOVE(BPF_REG_8, BPF_REG_0),
        STORE_VALUE(BPF_DW, BPF_REG_10, AT_NAME, 0),
        STORE_VALUE(BPF_DW, BPF_REG_10, AT_NAME + 8, 0),
        STORE_VALUE(BPF_DW, BPF_REG_10, AT_NEW_NAME, 0),
        STORE_VALUE(BPF_DW, BPF_REG_10, AT_NEW_NAME + 8, 0),
        READ_TEXT(AT_NAME, NAME_BYTES, BPF_REG_6, name),
        READ_TEXT(AT_NEW_NAME, NAME_BYTES, BPF_REG_7, 0),
        LOAD(BPF_DW, BPF_REG_1, BPF_REG_10, AT_NAME),
        LOAD(BPF_DW, BPF_REG_2, BPF_REG_10, AT_NEW_NAME),
        END_IF_OTHER(BPF_REG_1, BPF_REG_2),
        LOAD(BPF_DW, BPF_REG_1, BPF_REG_10, AT_NAME + 8),
        LOAD(BPF_DW, BPF_REG_2, BPF_REG_10, AT_NEW_NAME + 8),
        END_IF_OTHER(BPF_REG_1, BPF_REG_2),
        STORE_VALUE(BPF_DW, BPF_REG_8, 0, 1),
        END,
    };
    return bpf_place_on("task_rename", code, sizeof code);
}

/* The programs know tasks by their numbers in the first namespace; perf tells us those in ours. */
static bool in_first_namespace(void)
{
    struct stat s;
    return stat("/proc/self/ns/pid", &s) == 0 && s.st_ino == FIRST_PID_NAMESPACE;
}

static int open_all(struct tree_filter *f, bool follow)
{
    static const char *const task[] = {"pid", "tgid", "mm", "comm", NULL};
    static const char *const memory[] = {"arg_start", "arg_end", NULL};
    uint32_t at[4];
    struct commands_places places;
    const struct btf_wanted wanted[] = {
        {"task_struct", task, at}, {"mm_struct", memory, places.arguments}, {0}};
    f->tree = bpf_map(BPF_MAP_TYPE_HASH, 4, 8, PROCESSES_MAX, BPF_F_NO_PREALLOC);
    f->missed = f->tree < 0 ? -1 : bpf_map(BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0);
    f->pass = f->missed < 0 ? -1 : load_pass(f);
    if (f->pass < 0 || btf_kernel_offsets(wanted))
        return -1;
    f->free = forget_ended(f, (int32_t)at[0], (int32_t)at[1]);
    if (f->free < 0)
        return -1;
    places.memory = at[2];
    f->commands = commands_new(f->tree, &places);
    f->rename = follow_names(f, (int32_t)at[3]);
    if (!follow)
        return 0;
    f->fork = follow_forks(f, (int32_t)at[0], (int32_t)at[1]);
    return f->fork;
}

struct tree_filter *tree_filter_new(bool follow)
{
    if (!in_first_namespace())
        return NULL;
    struct tree_filter *f = memory_alloc(sizeof *f);
    *f = (struct tree_filter){-1, -1, -1, -1, -1, -1, NULL};
    if (open_all(f, follow) < 0) {
        tree_filter_free(f);
        return NULL;
    }
    return f;
}

static int put(struct tree_filter *f, pid_t pid, uint64_t value, uint64_t flags)
{
    uint32_t key = (uint32_t)pid;
    union bpf_attr a = {.map_fd = (uint32_t)f->tree,
                        .key = (uint64_t)(uintptr_t)&key,
                        .value = (uint64_t)(uintptr_t)&value,
                        .flags = flags};
    return bpf_call(BPF_MAP_UPDATE_ELEM, &a);
}

int tree_filter_add(struct tree_filter *f, pid_t pid)
{
    return put(f, pid, 1, BPF_ANY);
}

void tree_filter_mute(struct tree_filter *f, pid_t pid, bool mute)
{
    if (f->commands) /* which ends it at the next exec */
        put(f, pid, !mute, BPF_EXIST);
}

int tree_filter_apply(const struct tree_filter *f, int event_fd)
{
    return ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, f->pass);
}

struct commands *tree_filter_commands(struct tree_filter *f)
{
    return f->commands;
}

uint64_t tree_filter_missed(const struct tree_filter *f)
{
    uint32_t key = 0;
    uint64_t n = 0;
    union bpf_attr a = {.map_fd = (uint32_t)f->missed,
                        .key = (uint64_t)(uintptr_t)&key,
                        .value = (uint64_t)(uintptr_t)&n};
    return bpf_call(BPF_MAP_LOOKUP_ELEM, &a) ? 0 : n;
}

void tree_filter_free(struct tree_filter *f)
{
    if (!f)
        return;
    commands_free(f->commands);
    int fds[] = {f->fork, f->free, f->rename, f->pass, f->missed, f->tree};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(f);
}
