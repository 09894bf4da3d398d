/*
 * The list of modules, kept current. Entries are never removed: one that was unloaded keeps its
 * rows for when the same file comes back, and because a sample may still be walking through them.
 */
#include "agent/modules.h"

#include <string.h>

#include "agent/modules_internal.h"
#include "agent/publish.h"

static struct agent_module found[AGENT_MODULES];
static struct unwind_module mapped[AGENT_MODULES];

static bool same_file(const struct agent_module *a, const struct agent_module *b)
{
    return a->path_len == b->path_len && a->build_id_len == b->build_id_len &&
           a->end - a->start == b->end - b->start && a->offset == b->offset &&
           memcmp(a->build_id, b->build_id, a->build_id_len) == 0 &&
           memcmp(a->path, b->path, a->path_len) == 0 &&
           memcmp(a->file_id, b->file_id, sizeof a->file_id) == 0;
}

static struct agent_module *find_alive(const struct agent_module *m)
{
    for (uint32_t i = 0; i < module_count; i++)
        if (module_list[i].alive && module_list[i].start == m->start &&
            module_list[i].bias == m->bias && module_list[i].path_len == m->path_len &&
            memcmp(module_list[i].path, m->path, m->path_len) == 0)
            return &module_list[i];
    return NULL;
}

/* An entry for a module that was not there before: its own from last time, or a new one. */
static struct agent_module *take_entry(const struct agent_module *m)
{
    for (uint32_t i = 0; i < module_count; i++)
        if (!module_list[i].alive && same_file(&module_list[i], m))
            return &module_list[i];
    if (module_count == AGENT_MODULES) {
        agent_declare(SEGMENT_MODULES_FULL);
        return NULL;
    }
    module_list[module_count] = *m;
    module_list[module_count].rows_tried = false;
    return &module_list[module_count++];
}

static void module_add(struct agent_module *m, uint64_t now)
{
    if (!m->build_id_len)
        loaded_file_id(m, m->file_id);
    struct agent_module *entry = take_entry(m);
    if (!entry)
        return;
    entry->start = m->start;
    entry->end = m->end;
    entry->bias = m->bias;
    entry->since = now;
    entry->seen = 1;
    loaded_rows(entry);
    entry->alive = 1;
}

static void map_rebuild(void)
{
    size_t n = 0;
    for (uint32_t i = 0; i < module_count; i++) {
        const struct agent_module *m = &module_list[i];
        if (m->alive)
            mapped[n++] = (struct unwind_module){.start = m->start,
                                                 .end = m->end,
                                                 .bias = m->bias,
                                                 .rows = m->rows.count ? &m->rows : NULL};
    }
    unwind_map_set(&agent_map, mapped, n);
}

static void list_update(void)
{
    size_t total;
    int n = loaded_list(found, AGENT_MODULES, &total);
    if (n < 0)
        return;
    if (total > (size_t)n)
        agent_declare(SEGMENT_MODULES_FULL);
    uint64_t now = agent_now();
    for (uint32_t i = 0; i < module_count; i++)
        module_list[i].seen = 0;
    /* What stayed first: a module that went may have left its place to one that came. */
    for (int i = 0; i < n; i++) {
        struct agent_module *m = find_alive(&found[i]);
        found[i].seen = m != NULL;
        if (m)
            m->seen = 1;
    }
    for (uint32_t i = 0; i < module_count; i++)
        module_list[i].alive = module_list[i].seen;
    for (int i = 0; i < n; i++)
        if (!found[i].seen)
            module_add(&found[i], now);
    map_rebuild();
}

void modules_refresh(void)
{
    if (agent_process && agent_phase() != AGENT_OFF)
        module_table_work(list_update);
}

bool modules_have_rpath(void)
{
    return loaded_has_rpath();
}
