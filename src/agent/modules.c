/*
 * The list of modules, kept current. Entries are never removed: one that was unloaded keeps its
 * rows for when the same file comes back, and because a sample may still be walking through them.
 */
#include "agent/modules.h"

#include <string.h>

#include "agent/modules_internal.h"
#include "agent/publish.h"

/* Only the holder of modules_lock writes here; handlers see the map and the segment. */
static struct agent_module list[AGENT_MODULES];
static uint32_t used;
static struct agent_module found[AGENT_MODULES];
static struct unwind_module mapped[AGENT_MODULES];
struct unwind_map agent_map;

static bool lock_try(void)
{
    return __atomic_exchange_n(&agent_process->modules_lock, 1, __ATOMIC_SEQ_CST) == 0;
}

static void unlock(void)
{
    __atomic_store_n(&agent_process->modules_lock, 0, __ATOMIC_SEQ_CST);
}

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
    for (uint32_t i = 0; i < used; i++)
        if (list[i].alive && list[i].start == m->start && list[i].bias == m->bias &&
            list[i].path_len == m->path_len && memcmp(list[i].path, m->path, m->path_len) == 0)
            return &list[i];
    return NULL;
}

/* An entry for a module that was not there before: its own from last time, or a new one. */
static struct agent_module *take_entry(const struct agent_module *m)
{
    for (uint32_t i = 0; i < used; i++)
        if (!list[i].alive && same_file(&list[i], m))
            return &list[i];
    if (used == AGENT_MODULES) {
        agent_declare(SEGMENT_MODULES_FULL);
        return NULL;
    }
    list[used] = *m;
    list[used].rows_tried = false;
    return &list[used++];
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
    for (uint32_t i = 0; i < used; i++) {
        const struct agent_module *m = &list[i];
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
    for (uint32_t i = 0; i < used; i++)
        list[i].seen = 0;
    /* What stayed first: a module that went may have left its place to one that came. */
    for (int i = 0; i < n; i++) {
        struct agent_module *m = find_alive(&found[i]);
        found[i].seen = m != NULL;
        if (m)
            m->seen = 1;
    }
    for (uint32_t i = 0; i < used; i++)
        list[i].alive = list[i].seen;
    for (int i = 0; i < n; i++)
        if (!found[i].seen)
            module_add(&found[i], now);
    map_rebuild();
}

static bool entry_differs(const struct segment_module *to, const struct agent_module *m)
{
    return to->alive != m->alive || to->start != m->start || to->end != m->end ||
           to->bias != m->bias || to->since != m->since || to->path_len != m->path_len;
}

static void entry_write(struct segment_module *to, const struct agent_module *m)
{
    uint32_t sequence = to->sequence;
    __atomic_store_n(&to->sequence, sequence | 1, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    to->alive = m->alive;
    to->start = m->start;
    to->end = m->end;
    to->bias = m->bias;
    to->offset = m->offset;
    to->since = m->since;
    to->path_len = m->path_len;
    to->build_id_len = m->build_id_len;
    memcpy(to->build_id, m->build_id, sizeof to->build_id);
    memcpy(to->path, m->path, sizeof to->path);
    __atomic_store_n(&to->sequence, (sequence | 1) + 1, __ATOMIC_RELEASE);
}

/* The lock is held. */
static void table_write(void)
{
    struct agent_process *p = agent_process;
    if (__atomic_load_n(&p->phase, __ATOMIC_ACQUIRE) != AGENT_RUNNING)
        return;
    struct segment_header *h = p->segment;
    struct segment_module *table = (struct segment_module *)((char *)h + p->layout.modules);
    bool changed = false;
    for (uint32_t i = 0; i < used; i++) {
        if (i < h->modules_used && !entry_differs(&table[i], &list[i]))
            continue;
        entry_write(&table[i], &list[i]);
        changed = true;
    }
    __atomic_store_n(&h->modules_used, used, __ATOMIC_RELEASE);
    if (changed)
        __atomic_fetch_add(&h->modules_version, 1, __ATOMIC_RELEASE);
}

/* Who holds the lock works until nobody has asked for more; who does not hold it, asks and goes. */
static void work(bool look)
{
    struct agent_process *p = agent_process;
    __atomic_fetch_or(&p->modules_dirty, look ? 3 : 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&p->modules_dirty, __ATOMIC_SEQ_CST) && lock_try()) {
        uint32_t asked = __atomic_exchange_n(&p->modules_dirty, 0, __ATOMIC_SEQ_CST);
        if ((asked & 2) && look)
            list_update();
        else if (asked & 2)
            __atomic_fetch_or(&p->modules_dirty, 2, __ATOMIC_SEQ_CST);
        if (asked)
            table_write();
        unlock();
        if ((asked & 2) && !look)
            return;
    }
}

void modules_refresh(void)
{
    if (agent_process && agent_phase() != AGENT_OFF)
        work(true);
}

bool modules_have_rpath(void)
{
    return loaded_has_rpath();
}

void modules_forget(void)
{
    loaded_forget();
}

void modules_show(void)
{
    work(false);
}
