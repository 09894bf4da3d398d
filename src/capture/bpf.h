/*
 * Small BPF programs, written out as instructions so that no compiler for them is needed: the
 * instructions that ours use, and how the kernel is asked to take them.
 */
#ifndef SONDE_BPF_H
#define SONDE_BPF_H

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

/* Offsets from the stack's end, where the programs keep what helpers are to read or fill in. */
enum { AT_PID = -4, AT_TGID = -8, AT_VALUE = -16, AT_NAME = -32, AT_NEW_NAME = -48 };
#define NAME_BYTES 16 /* of a task */

#define OP(c, dst, src, o, i)                                                                      \
    {                                                                                              \
        .code = (c), .dst_reg = (dst), .src_reg = (src), .off = (o), .imm = (i)                    \
    }
#define MOVE(dst, src) OP(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0)
#define SET(dst, value) OP(BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, value)
#define ADD(dst, value) OP(BPF_ALU64 | BPF_ADD | BPF_K, dst, 0, 0, value)
#define SUBTRACT(dst, src) OP(BPF_ALU64 | BPF_SUB | BPF_X, dst, src, 0, 0)
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
#define SKIP_IF_AT_MOST(dst, value, n) OP(BPF_JMP | BPF_JLE | BPF_K, dst, 0, n, value)
#define SKIP_IF_NONE(dst, n) OP(BPF_JMP | BPF_JEQ | BPF_K, dst, 0, n, 0)
#define SKIP_IF_OTHER(dst, value, n) OP(BPF_JMP | BPF_JNE | BPF_K, dst, 0, n, value)
#define RETURN OP(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
#define END SET(BPF_REG_0, 0), RETURN
/* The address of a place on the stack. */
#define PLACE(dst, at) MOVE(dst, BPF_REG_10), ADD(dst, at)
/* A field of the structure in a register to a place on the stack. */
#define READ_FIELD(at, bytes, structure, offset)                                                   \
    PLACE(BPF_REG_1, at), SET(BPF_REG_2, bytes), MOVE(BPF_REG_3, structure),                       \
        ADD(BPF_REG_3, offset), CALL(BPF_FUNC_probe_read_kernel)
/* From the structure in a register to the one that a field of it points to. */
#define FOLLOW(structure, offset)                                                                  \
    READ_FIELD(AT_VALUE, 8, structure, offset), LOAD(BPF_DW, structure, BPF_REG_10, AT_VALUE)
/* A text, up to its end, to a place on the stack. */
#define READ_TEXT(at, bytes, structure, offset)                                                    \
    PLACE(BPF_REG_1, at), SET(BPF_REG_2, bytes), MOVE(BPF_REG_3, structure),                       \
        ADD(BPF_REG_3, offset), CALL(BPF_FUNC_probe_read_kernel_str)
/* The running process's entry in the map to r0. */
#define FIND_CURRENT(map)                                                                          \
    CALL(BPF_FUNC_get_current_pid_tgid), SHIFT_RIGHT(BPF_REG_0, 32),                               \
        STORE(BPF_W, BPF_REG_10, AT_PID, BPF_REG_0), MAP(BPF_REG_1, map),                          \
        PLACE(BPF_REG_2, AT_PID), CALL(BPF_FUNC_map_lookup_elem)
/* Ends unless the task in r6 is a process, not a thread more of one; its number is at AT_PID. */
#define ONLY_PROCESSES(pid, tgid)                                                                  \
    READ_FIELD(AT_PID, 4, BPF_REG_6, pid), READ_FIELD(AT_TGID, 4, BPF_REG_6, tgid),                \
        LOAD(BPF_W, BPF_REG_1, BPF_REG_10, AT_PID), LOAD(BPF_W, BPF_REG_2, BPF_REG_10, AT_TGID),   \
        END_IF_OTHER(BPF_REG_1, BPF_REG_2)

/* A word into a ring, whose reader wakes when this interrupt is over and the sample is there. */
#define BPF_RING_BELL(ring)                                                                        \
    STORE_VALUE(BPF_DW, BPF_REG_10, AT_VALUE, 1), MAP(BPF_REG_1, ring),                            \
        PLACE(BPF_REG_2, AT_VALUE), SET(BPF_REG_3, 8), SET(BPF_REG_4, 0),                          \
        CALL(BPF_FUNC_ringbuf_output)
#define BPF_RING_BELL_LENGTH 8 /* instructions */

int bpf_call(enum bpf_cmd command, union bpf_attr *attr);
/* Descriptors, or -1 with errno. */
int bpf_map(enum bpf_map_type type, uint32_t key, uint32_t value, uint32_t entries, uint32_t flags);
int bpf_load(enum bpf_prog_type type, struct bpf_insn *code, size_t bytes);
/* A program on a tracepoint; it goes when the descriptor is closed. */
int bpf_place_on(const char *tracepoint, struct bpf_insn *code, size_t bytes);

#endif
