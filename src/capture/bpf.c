/* Asking the kernel to take BPF programs; see bpf.h. */
#include "capture/bpf.h"

#include <sys/syscall.h>
#include <unistd.h>

/* Helpers that read kernel memory are for such programs only. */
#define LICENSE "Dual BSD/GPL"

int bpf_call(enum bpf_cmd command, union bpf_attr *attr)
{
    return (int)syscall(SYS_bpf, command, attr, sizeof *attr);
}

int bpf_map(enum bpf_map_type type, uint32_t key, uint32_t value, uint32_t entries, uint32_t flags)
{
    union bpf_attr a = {.map_type = type,
                        .key_size = key,
                        .value_size = value,
                        .max_entries = entries,
                        .map_flags = flags};
    return bpf_call(BPF_MAP_CREATE, &a);
}

int bpf_load(enum bpf_prog_type type, struct bpf_insn *code, size_t bytes)
{
    size_t n = bytes / sizeof *code;
    for (size_t i = 0; i < n; i++)
        if (BPF_CLASS(code[i].code) == BPF_JMP && code[i].off == TO_END)
            code[i].off = (int16_t)(n - 2 - (i + 1));
    union bpf_attr a = {.prog_type = type,
                        .insns = (uint64_t)(uintptr_t)code,
                        .insn_cnt = (uint32_t)n,
                        .license = (uint64_t)(uintptr_t)LICENSE};
    return bpf_call(BPF_PROG_LOAD, &a);
}

int bpf_place_on(const char *tracepoint, struct bpf_insn *code, size_t bytes)
{
    int program = bpf_load(BPF_PROG_TYPE_RAW_TRACEPOINT, code, bytes);
    if (program < 0)
        return -1;
    union bpf_attr a = {
        .raw_tracepoint = {.name = (uint64_t)(uintptr_t)tracepoint, .prog_fd = (uint32_t)program}};
    int fd = bpf_call(BPF_RAW_TRACEPOINT_OPEN, &a);
    close(program);
    return fd;
}
