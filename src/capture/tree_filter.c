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
#include "capture/bpf_ring.h"
#include "capture/btf.h"

#define PROCESSES_MAX 65536
#define FIRST_PID_NAMESPACE 0xEFFFFFFCu /* the inode that the kernel gives it */

struct tree_filter {
    int tree;       /* map: process -> see commands.h */
    int missed;     /* map of one number */
    int pass, ring; /* programs for events; -1 for none */
    int copier;     /* map of one program, or none: that of `copies` */
    int fork, free; /* tracepoints that keep the map; -1 for none */
    int rename;     /* the one that ends muting; -1: only an exec does */
    struct bpf_ring bell;
    struct frame_copies *copies;
    bool tried_copies;
    struct commands *commands;
};

#define BELL_BYTES 4096
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
    struct bpf_insn ringing[] = {
        MOVE(BPF_REG_6, BPF_REG_1),
        FIND_CURRENT(f->tree),
        END_IF_NONE(BPF_REG_0),
        LOAD(BPF_DW, BPF_REG_7, BPF_REG_0, 0),
        SKIP_IF_AT_MOST(BPF_REG_7, TREE_SAMPLED, 5 + BPF_RING_BELL_LENGTH),
        /* The program that copies frames, once it is there: it does not come back. */
        MOVE(BPF_REG_1, BPF_REG_6),
        MAP(BPF_REG_2, f->copier),
        SET(BPF_REG_3, 0),
        CALL(BPF_FUNC_tail_call),
        BPF_RING_BELL(f->bell.fd),
        MOVE(BPF_REG_0, BPF_REG_7),
        RETURN,
        END,
    };
    return f->bell.fd < 0 ? bpf_load(BPF_PROG_TYPE_PERF_EVENT, code, sizeof code)
                          : bpf_load(BPF_PROG_TYPE_PERF_EVENT, ringing, sizeof ringing);
}

/* Takes every sample. */
static int load_ring(const struct tree_filter *f)
{
    struct bpf_insn code[] = {
        FIND_CURRENT(f->tree),
        SKIP_IF_NONE(BPF_REG_0, BPF_RING_BELL_LENGTH + 2),
        LOAD(BPF_DW, BPF_REG_6, BPF_REG_0, 0),
        OP(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_6, 0, BPF_RING_BELL_LENGTH, TREE_SAMPLED),
        BPF_RING_BELL(f->bell.fd),
        SET(BPF_REG_0, 1),
        RETURN,
    };
    return f->bell.fd < 0 ? -1 : bpf_load(BPF_PROG_TYPE_PERF_EVENT, code, sizeof code);
}

/* A task was made, the second argument: if it is a process, of one in the tree, it joins, and rings
 * if that does. */
static int follow_forks(const struct tree_filter *f, int32_t pid, int32_t tgid)
{
    struct bpf_insn code[] = {
        LOAD(BPF_DW, BPF_REG_6, BPF_REG_1, 8),
        FIND_CURRENT(f->tree),
        END_IF_NONE(BPF_REG_0),
        LOAD(BPF_DW, BPF_REG_7, BPF_REG_0, 0),
        ONLY_PROCESSES(pid, tgid),
        SKIP_IF_OTHER(BPF_REG_7, TREE_MUTED, 1),
        SET(BPF_REG_7, TREE_SAMPLED),
        STORE(BPF_DW, BPF_REG_10, AT_VALUE, BPF_REG_7),
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

static int open_all(struct tree_filter *f, bool follow, bool bell)
{
    static const char *const task[] = {"pid", "tgid", "mm", "comm", NULL};
    static const char *const memory[] = {"arg_start", "arg_end", NULL};
    uint32_t at[4];
    static const char *const program[] = {"file", NULL}, *const file[] = {"f_path", NULL};
    static const char *const path[] = {"dentry", NULL}, *const entry[] = {"d_name", NULL};
    static const char *const name[] = {"name", NULL};
    uint32_t in_file, in_entry;
    struct commands_places places;
    const struct btf_wanted wanted[] = {{"task_struct", task, at, false},
                                        {"mm_struct", memory, places.arguments, false},
                                        {"linux_binprm", program, &places.file, true},
                                        {"file", file, &in_file, true},
                                        {"path", path, &places.entry, true},
                                        {"dentry", entry, &in_entry, true},
                                        {"qstr", name, &places.name, true},
                                        {0}};
    f->tree = bpf_map(BPF_MAP_TYPE_HASH, 4, 8, PROCESSES_MAX, BPF_F_NO_PREALLOC);
    f->missed = f->tree < 0 ? -1 : bpf_map(BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0);
    if (bell && bpf_ring_open(&f->bell, BELL_BYTES))
        bpf_ring_release(&f->bell);
    f->copier = f->bell.fd < 0 ? -1 : bpf_map(BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 1, 0);
    f->pass = f->missed < 0 ? -1 : load_pass(f);
    f->ring = load_ring(f);
    if (f->pass < 0 || btf_kernel_offsets(wanted))
        return -1;
    f->free = forget_ended(f, (int32_t)at[0], (int32_t)at[1]);
    if (f->free < 0)
        return -1;
    places.memory = at[2];
    places.entry += in_file;
    places.name += in_entry;
    f->commands = commands_new(f->tree, &places, f->bell.fd < 0 ? TREE_SAMPLED : TREE_TOLD);
    f->rename = follow_names(f, (int32_t)at[3]);
    if (!follow)
        return 0;
    f->fork = follow_forks(f, (int32_t)at[0], (int32_t)at[1]);
    return f->fork;
}

struct tree_filter *tree_filter_new(bool follow, bool bell)
{
    if (!in_first_namespace())
        return NULL;
    struct tree_filter *f = memory_alloc(sizeof *f);
    *f = (struct tree_filter){-1, -1, -1, -1, -1, -1, -1, -1, {.fd = -1}, NULL, false, NULL};
    if (open_all(f, follow, bell) < 0) {
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
    return put(f, pid, TREE_SAMPLED, BPF_ANY);
}

void tree_filter_mute(struct tree_filter *f, pid_t pid, bool mute)
{
    if (f->commands) /* which ends it at the next exec */
        put(f, pid, mute ? TREE_MUTED : f->bell.fd < 0 ? TREE_SAMPLED : TREE_TOLD, BPF_EXIST);
}

void tree_filter_tell(struct tree_filter *f, pid_t pid)
{
    if (f->bell.fd >= 0)
        put(f, pid, TREE_TOLD, BPF_EXIST);
}

int tree_filter_apply(const struct tree_filter *f, int event_fd)
{
    return ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, f->pass);
}

int tree_filter_ring(const struct tree_filter *f, int event_fd)
{
    return f->ring < 0 ? -1 : ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, f->ring);
}

int tree_filter_bell(const struct tree_filter *f)
{
    return f->bell.fd;
}

void tree_filter_hush(struct tree_filter *f)
{
    if (f->bell.fd >= 0)
        bpf_ring_clear(&f->bell);
}

struct frame_copies *tree_filter_copies(struct tree_filter *f)
{
    if (f->tried_copies || f->copier < 0)
        return f->copies;
    f->tried_copies = true;
    f->copies = frame_copies_new(f->bell.fd, f->copier);
    return f->copies;
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
    frame_copies_free(f->copies);
    bpf_ring_release(&f->bell);
    int fds[] = {f->fork, f->free, f->rename, f->pass, f->ring, f->copier, f->missed, f->tree};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(f);
}
