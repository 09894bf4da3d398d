/*
 * Which module is mapped where in one process: what turns an address into rows. Readers take no
 * lock and may be signal handlers that interrupted the writer; writers are serialized by the
 * caller (the agent changes the map on dlopen, the collector on mmap records).
 */
#ifndef SONDE_UNWIND_MAP_H
#define SONDE_UNWIND_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/rows.h"

/* An executable mapping. rows is NULL where there are none (JIT code, anonymous memory): such code
 * is walked by frame pointers, and only addresses inside some entry count as code. */
struct unwind_module {
    uint64_t start, end; /* [start, end) in the process */
    uint64_t bias;       /* address in the process - vaddr in the file */
    const struct rows *rows;
};

struct unwind_table;

/* Two tables: `version` says which one holds (its lowest bit); the other is the writer's. All zero
 * is an empty map. Tables never shrink or go before release, so a late reader reads stale words but
 * never unmapped ones, sees that the version moved, and looks again. */
struct unwind_map {
    uint64_t version;
    struct unwind_table *table[2];
    struct unwind_table *retired;
};

/* Puts a mapping in; like mmap it replaces, cuts or splits what was there. The rows stay the
 * caller's and must live as long as any walk may see them: remove, then wait for walks under way
 * (or keep rows for good, as the agent does). 0 or -ENOMEM, -EINVAL (empty range). */
int unwind_map_add(struct unwind_map *map, const struct unwind_module *module);
int unwind_map_remove(struct unwind_map *map, uint64_t start, uint64_t end);
/* Replaces the whole content; `modules` in any order, the later wins where two overlap. */
int unwind_map_set(struct unwind_map *map, const struct unwind_module *modules, size_t count);
/* A copy of another map's content, as after fork. */
int unwind_map_copy(struct unwind_map *map, const struct unwind_map *from);

/* The entry around `address`, copied to *module. Signal-safe. */
bool unwind_map_find(const struct unwind_map *map, uint64_t address, struct unwind_module *module);
size_t unwind_map_count(const struct unwind_map *map);

void unwind_map_release(struct unwind_map *map); /* no reader may be left */

#endif
