/*
 * The code a process has mapped, shared between a parent and its forked children until
 * one of them changes it.
 */
#ifndef SONDE_SPACE_H
#define SONDE_SPACE_H

#include <stdint.h>

#include "base/ranges.h"
#include "capture/module.h"
#include "unwind/map.h"

struct space_mapping {
    uint64_t start, end, bias;
    struct module *module;
};

struct space {
    unsigned users;
    struct ranges maps; /* owned by modules */
    struct unwind_map unwind;
};

struct space *space_new(void);
struct space *space_share(struct space *s);
void space_drop(struct space *s); /* NULL-safe */
/* A space that only the caller has, with the same content; `s` is dropped. */
struct space *space_own(struct space *s);
/* As mmap: replaces what was there. `s` must be the caller's own. */
void space_map(struct space *s, const struct space_mapping *m, const struct rows *rows);
/* The caller's own space with `m` mapped at [start, end), from `offset` of its file; `s` is
 * dropped. */
struct space *space_with(struct space *s, struct module *m, uint64_t start, uint64_t end,
                         uint64_t offset, const struct rows *rows);
/* Its owner is a struct module; NULL if nothing is mapped there. */
const struct range *space_find(const struct space *s, uint64_t address);

#endif
