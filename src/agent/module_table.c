/*
 * The list of modules and its copy in the segment's table. Only the holder of modules_lock writes
 * here; a handler that finds it taken leaves word.
 */
#include <string.h>

#include "agent/modules.h"
#include "agent/modules_internal.h"

enum { ASKED_WRITE = 1, ASKED_LOOK = 2 };

struct agent_module module_list[AGENT_MODULES];
uint32_t module_count;
struct unwind_map agent_map;

static bool lock_try(void)
{
    return __atomic_exchange_n(&agent_process->modules_lock, 1, __ATOMIC_SEQ_CST) == 0;
}

static void unlock(void)
{
    __atomic_store_n(&agent_process->modules_lock, 0, __ATOMIC_SEQ_CST);
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
    for (uint32_t i = 0; i < module_count; i++) {
        if (i < h->modules_used && !entry_differs(&table[i], &module_list[i]))
            continue;
        entry_write(&table[i], &module_list[i]);
        changed = true;
    }
    __atomic_store_n(&h->modules_used, module_count, __ATOMIC_RELEASE);
    if (changed)
        __atomic_fetch_add(&h->modules_version, 1, __ATOMIC_RELEASE);
}

/* Who holds the lock works until nobody has asked for more; who does not hold it, asks and goes. A
 * handler that holds it cannot look; what was asked of it then waits for the next who can. */
void module_table_work(void (*look)(void))
{
    struct agent_process *p = agent_process;
    uint32_t can = look ? ASKED_LOOK | ASKED_WRITE : ASKED_WRITE;
    __atomic_fetch_or(&p->modules_asked, can, __ATOMIC_SEQ_CST);
    while ((__atomic_load_n(&p->modules_asked, __ATOMIC_SEQ_CST) & can) && lock_try()) {
        uint32_t asked = __atomic_fetch_and(&p->modules_asked, ~can, __ATOMIC_SEQ_CST);
        if (asked & can & ASKED_LOOK)
            look();
        table_write();
        unlock();
    }
}

void modules_show(void)
{
    module_table_work(NULL);
}
