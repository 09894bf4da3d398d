/*
 * The code that targets run: each distinct file (by path and build-id) once, with its
 * unwind rows, its segments and the number it has in the recording.
 */
#ifndef SONDE_MODULE_H
#define SONDE_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/map.h"
#include "base/vector.h"
#include "recording/writer.h"
#include "unwind/pack.h"

struct segment {
    uint64_t offset, vaddr, size;
};

struct module {
    enum code_kind kind;
    uint32_t id;  /* in the recording */
    size_t place; /* in the list */
    char *path;   /* as the target saw it */
    char *root;   /* /proc/PID/root when the target lives in another root, else NULL */
    pid_t pid;    /* CODE_JIT: whose */
    char *dump;   /* CODE_JIT: its jitdump file, or NULL */
    int fd;       /* the file itself while it can be had, else -1 */
    uint8_t build_id[20];
    uint8_t build_id_len;
    bool rows_tried;
    struct rows rows;
    VECTOR(struct segment) segments; /* executable ones */
};

struct modules {
    struct writer *writer;
    char *cache;            /* folder of compiled rows, NULL for none */
    struct rows_pack *pack; /* what agents read, NULL for none */
    int pack_fd;
    VECTOR(struct module *) list;
    struct map index;
    struct module *kernel, *unknown;
};

void modules_init(struct modules *m, struct writer *writer);
void modules_release(struct modules *m);

/* From now on agents can have the rows that are used here; at once, unless it is NULL, those of
 * `library` and of what every program has. Without memory for that they read their own. */
void modules_share(struct modules *m, const char *library);

/* The module behind a mapping [start, end) of `pid`: a file, the vdso, or code without a file. */
struct module *modules_find(struct modules *m, pid_t pid, const char *path, uint64_t start,
                            uint64_t end, const uint8_t *build_id, size_t build_id_len);

/* What to take off an address in a mapping at `start` of file offset `offset` to get the
 * address in the file. */
uint64_t module_bias(const struct module *m, uint64_t start, uint64_t offset);

/* The rows, made or loaded on first use; NULL if the module has none. */
const struct rows *module_rows(struct modules *all, struct module *m);

#endif
