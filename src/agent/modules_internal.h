/* What module_table.c keeps, modules.c updates and loaded.c finds. */
#ifndef SONDE_AGENT_MODULES_INTERNAL_H
#define SONDE_AGENT_MODULES_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "unwind/rows.h"

/* One executable segment of one loaded file. */
struct agent_module {
    uint64_t start, end, bias, offset;
    uint64_t since;
    uint32_t alive;
    uint32_t seen; /* in the refresh under way */
    uint32_t path_len, build_id_len;
    uint8_t build_id[SEGMENT_BUILD_ID];
    bool vdso, self; /* the kernel's; the program's own file */
    bool rows_tried;
    uint64_t file_id[4]; /* device, inode, size and time of a file without a build-id */
    struct rows rows;
    char path[SEGMENT_PATH];
};

/* In order of first sight; entries stay. Written by whoever module_table_work runs. */
extern struct agent_module module_list[AGENT_MODULES];
extern uint32_t module_count;

/* Runs `look` (which may change the list), then brings the segment's table up to date; or, if
 * another thread is at it, has that one do so. NULL: only the table, signal-safe. */
void module_table_work(void (*look)(void));

/* What is loaded now, at most `max` entries without rows; *total tells how many there are. Returns
 * how many were written, or -1 when nothing was loaded or unloaded since the call before. */
int loaded_list(struct agent_module *out, size_t max, size_t *total);

/* Whether any object in the last list has a DT_RPATH. */
bool loaded_has_rpath(void);

/* Compiles or loads the rows of a module, once. */
void loaded_rows(struct agent_module *m);

/* Device, inode, size and time of the module's file; all 0 if it cannot be had. */
void loaded_file_id(const struct agent_module *m, uint64_t id[4]);

#endif
