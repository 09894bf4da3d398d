/*
 * A module's call frame information (.eh_frame) compiled into rows: sorted by address, 16 bytes
 * each, to be searched without locks and without any further decoding. Made once per build-id and
 * kept on disk. Used by the collector on copied stacks and by the agent inside its target; so it
 * takes memory from mmap only, and trusts no byte of its input.
 *
 * Results are 0 or a negative errno: -ENOEXEC not an ELF file of this machine, -ENODATA no frame
 * information (or no cache entry), -EBADMSG damaged beyond use, -ENOMEM, -EFBIG, or what pread and
 * open said.
 */
#ifndef SONDE_UNWIND_ROWS_H
#define SONDE_UNWIND_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/arch.h"

enum row_kind {
    ROW_NONE,  /* no information from here to the next row */
    ROW_FRAME, /* CFA = cfa_reg + cfa_offset, return address at the place the ABI gives it */
    ROW_WIDE,  /* anything else: rule number cfa_offset of rows.wide */
    ROW_END,   /* outermost function (_start, a thread's first): there is no caller */
};

#define ROW_SLOT_SAME 0   /* the register still has the caller's value */
#define ROW_SLOT_LOST 255 /* the caller's value cannot be recovered */

/* In force from `pc` up to the next row's. */
struct row {
    uint32_t pc; /* vaddr - rows.base */
    int32_t cfa_offset;
    uint8_t kind;
    uint8_t cfa_reg;
    uint8_t slot[UNWIND_SLOTS]; /* saved n words below the CFA; see unwind_slot_reg */
};

enum rule_kind {
    RULE_SAME,       /* value unchanged (also: not mentioned at all) */
    RULE_UNDEFINED,  /* value lost; for the return address: outermost frame */
    RULE_OFFSET,     /* saved at CFA + value */
    RULE_VAL_OFFSET, /* is CFA + value */
    RULE_REGISTER,   /* is what register `reg` holds; for the CFA: reg + value */
    RULE_EXPR,       /* saved at the address the expression gives; for the CFA: is the result */
    RULE_VAL_EXPR,   /* is the expression's result */
};

struct rule {
    uint8_t kind;
    uint8_t reg;
    uint16_t size; /* RULE_*EXPR: bytes of the expression, at rows.expr + value */
    int32_t value;
};

/* The rare frames: PLT stubs, signal frames, realigned stacks, hand-written code. */
struct wide {
    struct rule cfa;
    struct rule reg[UNWIND_REGS];
    uint32_t signal; /* 1: a signal frame, the "return address" is where it interrupted */
    uint32_t spare;
};

/* Read-only once made; any number of threads and signal handlers may search it. */
struct rows {
    const struct row *row;
    const struct wide *wide;
    const uint8_t *expr; /* DWARF expressions of the wide rules */
    uint64_t base;       /* lowest vaddr of the module's segments: where row.pc counts from */
    uint32_t count, wide_count, expr_size;
    uint32_t dropped; /* entries of the input that made no sense */
    void *mapping;    /* everything above in one piece */
    size_t mapping_size;
};

/* The input of the compiler: sections in memory with the addresses they were linked at. */
struct rows_image {
    const uint8_t *frame; /* .eh_frame, or .debug_frame */
    size_t frame_size;
    uint64_t frame_vaddr;
    uint64_t text_vaddr, hdr_vaddr; /* bases of textrel and datarel pointers, or 0 */
    uint64_t low, high;             /* vaddrs of the module: its lowest page, past its end */
    bool debug_frame;               /* the section is .debug_frame */
    bool exact_size; /* frame_size is the section's own: a zero entry is padding, not the end */
};

/* Compiles one section. On success the caller owns *out and gives it to rows_release. What is
 * damaged is left out (counted in out->dropped); time and memory are linear in frame_size. */
int rows_compile(const struct rows_image *image, struct rows *out);

/* From an ELF file, with or without section headers; read by pread, never mapped, so a file that
 * shrinks meanwhile is an error and not a SIGBUS. The descriptor's position is not used. */
int rows_read_elf(int fd, struct rows *out);

/* From a whole ELF file in memory, such as the vdso at AT_SYSINFO_EHDR. */
int rows_read_memory(const void *elf, size_t size, struct rows *out);

/* From a module loaded into this process, by the program headers dl_iterate_phdr shows
 * (`phdr` is a const ElfW(Phdr) *). Touches nothing but the module's readable segments. */
int rows_read_loaded(uint64_t bias, const void *phdr, size_t phnum, struct rows *out);

/* The bias of a file that is mapped at `start` from file offset `offset` (as in /proc/pid/maps or a
 * perf mmap record): address - vaddr. -ENODATA if no segment of the file can be mapped so. */
int rows_read_bias(int fd, uint64_t start, uint64_t offset, uint64_t *bias);

#define ROWS_BUILD_ID_MAX 64

/* The GNU build-id of an ELF file: its length (at most ROWS_BUILD_ID_MAX), or a negative errno. */
int rows_read_build_id(int fd, uint8_t id[ROWS_BUILD_ID_MAX]);

/* The cache: dir/ab/cdef….rows, named by build-id in hex. Loading takes a regular file that
 * belongs to this user or root and is writable by no other, checks magic, version, checksum and
 * every index in it, and copies it to memory: what was checked can change no more.
 * Storing makes missing folders (0700; dir's parent must exist), writes a temporary file (0600)
 * and renames it. An entry without rows is not stored (-ENODATA). */
int rows_cache_load(const char *dir, const uint8_t *build_id, size_t len, struct rows *out);
int rows_cache_store(const char *dir, const uint8_t *build_id, size_t len, const struct rows *rows);

/* The three above in their usual order: from the cache if it is there, else compiled from the file
 * and stored. dir may be NULL: no cache. Failing to store is no failure. */
int rows_open(int fd, const char *dir, struct rows *out);

/* The row in force at `vaddr` (an address of the file, bias taken off), or NULL. Signal-safe. */
const struct row *rows_find(const struct rows *rows, uint64_t vaddr);

void rows_release(struct rows *rows); /* NULL-safe; *rows is empty afterwards */

#endif
