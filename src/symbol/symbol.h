/*
 * Addresses to names: for a module and a sorted list of addresses, the functions
 * (innermost inlined call first), source files and lines. Files are looked for, checked
 * against the build-id that ran, and read as hostile input. Callers use
 * symbol_resolve_isolated, which reads in child processes with limits; symbol_resolve is the
 * same work in this process, for tests and for files that are trusted.
 */
#ifndef SONDE_SYMBOL_H
#define SONDE_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum symbol_kind {
    SYMBOL_ELF,      /* a program or library on disk; addresses are ELF virtual addresses */
    SYMBOL_VDSO,     /* the kernel's vdso, taken from this process; ELF virtual addresses */
    SYMBOL_KERNEL,   /* /proc/kallsyms; absolute addresses */
    SYMBOL_PERF_MAP, /* perf-PID.map of a just-in-time compiler; absolute addresses */
    SYMBOL_JITDUMP,  /* jit-PID.dump of a just-in-time compiler; absolute addresses */
    SYMBOL_OTHER,    /* anonymous memory, stacks, devices: nothing to find */
};

/* Bytes of any one string handed out, with its NUL. */
#define SYMBOL_TEXT_MAX 4096
/* Locations at one address; of deeper chains the innermost and the outermost are kept. */
#define SYMBOL_INLINE_MAX 128

/*
 * One module and what is asked of it. Everything pointed to stays the caller's.
 *
 * `path` is the name as the target saw it (/proc/PID/maps; a " (deleted)" at the end is
 * understood). `root` is put before it and before the debug folders: a sysroot, /proc/PID/root, or
 * NULL; links inside it are followed inside it. SYMBOL_KERNEL takes another kallsyms file, and
 * SYMBOL_PERF_MAP another map file, when `path` is not NULL; otherwise the perf map of `pid` is
 * looked for in /tmp, in the process's own /tmp and under its pid inside its container.
 *
 * With a build_id, a file that carries another one (or none) is not used. Without, the file is
 * believed.
 *
 * `address` is ascending; doubles are fine. For a return address the caller has subtracted 1.
 */
struct symbol_request {
    enum symbol_kind kind;
    const char *path;
    const char *root;
    const uint8_t *build_id;
    size_t build_id_len;
    pid_t pid; /* 0: not known */
    const uint64_t *address;
    size_t count;
};

/* All zero is the default of each. */
struct symbol_options {
    bool no_debug_info;          /* names only: symbol tables, no DWARF */
    bool no_demangle;            /* function is the linkage name */
    bool debuginfod;             /* may ask servers; never otherwise */
    const char *debuginfod_urls; /* separated by spaces; NULL: $DEBUGINFOD_URLS */
    uint64_t debuginfod_max;     /* bytes of one download; 0: 1 GiB */
    unsigned debuginfod_seconds; /* for one download; 0: 90 */
    unsigned workers;            /* children at once; 0: one a CPU, at most 4 */
    uint64_t memory_max;         /* address space of a child beyond this process's; 0: 4 GiB */
    unsigned cpu_seconds;        /* of a child; 0: 60 */
    unsigned wall_seconds;       /* of a child, downloads not counted; 0: 120 */
    /* Called by symbol_profile as answers come in, or NULL. */
    void (*progress)(void *context, uint64_t done, uint64_t all);
    void *context;
};

/* One function at an address. Strings hold only during the call of emit. */
struct symbol_location {
    const char *function; /* demangled; never NULL */
    const char *linkage;  /* as the linker knows it; never NULL, equal to function if not mangled */
    const char *file;     /* full path if known, NULL if not */
    const char *module;   /* a kernel module's name without brackets; NULL otherwise */
    uint32_t line;        /* of the address, or of the call for all but the innermost; 0: unknown */
    uint32_t start_line;  /* where the function is declared; 0: unknown */
    uint64_t start;       /* where its code begins; an inlined body's own beginning; 0: unknown */
};

/*
 * Gets the answers: `module` is the request's index, `index` the address's. Called at most once
 * an address, from the thread that called resolve, never for an address without a name. Within a
 * module indices ascend, except after a child has died (status SYMBOL_FELL_BACK). n >= 1;
 * location[0] is the innermost.
 */
struct symbol_sink {
    void (*emit)(void *context, size_t module, size_t index, const struct symbol_location *location,
                 size_t n);
    void *context;
};

enum symbol_status {
    SYMBOL_FULL,      /* debug information: lines and inlined functions */
    SYMBOL_NAMES,     /* names, no inlined functions and mostly no lines: no debug information */
    SYMBOL_STRIPPED,  /* only exported names, or none */
    SYMBOL_FELL_BACK, /* the debug information could not be read safely: names only */
    SYMBOL_NOT_FOUND, /* no file at that path */
    SYMBOL_MISMATCH,  /* the file there is not the one that ran */
    SYMBOL_DENIED,    /* there, but hidden from this user */
    SYMBOL_DAMAGED,   /* there, but not readable as what it should be */
    SYMBOL_NONE,      /* this kind of module has no names */
};

struct symbol_result {
    enum symbol_status status;
    size_t resolved;   /* addresses that were emitted with names, */
    size_t placed;     /* and with the place of their function alone */
    size_t with_lines; /* of these, with file and line */
    char note[240];    /* one sentence for the user; empty for FULL and NONE */
    char source[240];  /* the file that most answers came from; empty if none */
};

/* How many of a program's functions (of all, or of some from all over it) begin by setting the
 * frame pointer; `functions` is 0 if that cannot be told. */
size_t symbol_frame_pointers(const char *path, size_t *functions);

/* A word for a status, for tables and JSON ("full", "names", "not-found", ...). */
const char *symbol_status_name(enum symbol_status status);

/*
 * Resolves one request in this process; result is always filled. 0 unless the request itself is
 * wrong (addresses not ascending): missing or broken files are a status. A file made to break
 * libdw can crash or hang the caller. Not to be called by two threads at once.
 */
int symbol_resolve(const struct symbol_request *request, const struct symbol_options *options,
                   const struct symbol_sink *sink, struct symbol_result *result, struct error *err);

/*
 * Resolves `n` requests in child processes, several at once; result[n] is always filled. A child
 * that crashes, hangs or lies costs that module its lines: it is read again by our own bounded
 * reader, status SYMBOL_FELL_BACK. `options` may be NULL.
 */
int symbol_resolve_isolated(const struct symbol_request *request, size_t n,
                            const struct symbol_options *options, const struct symbol_sink *sink,
                            struct symbol_result *result, struct error *err);

/*
 * A linkage name as people write it (C++, Rust legacy and v0, D), into `out`; false and a plain
 * copy if it is not mangled or cannot be read. Longer results are cut and end in "...".
 */
bool symbol_demangle(const char *linkage, char out[SYMBOL_TEXT_MAX]);

/* The build-id of an ELF file below `root` (may be NULL); its length, 0 if there is none, or a
 * negative fault. */
int symbol_build_id(const char *root, const char *path, uint8_t *id, size_t max, struct error *err);

#endif
