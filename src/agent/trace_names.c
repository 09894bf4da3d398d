/*
 * Names of what is traced: an open-addressed table from keys to ids, read without a lock, and the
 * segment's names area, which the collector follows. A forked child starts with neither.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "agent/publish.h"
#include "agent/trace.h"

#define FULL (TRACE_TABLE / 4 * 3)

struct trace_table *trace_table;

bool trace_names_init(void)
{
    if (!trace_table)
        trace_table = publish_map_wiped((sizeof *trace_table + 4095) & ~4095ul);
    return trace_table != NULL;
}

void trace_names_forget(void)
{
    memset(trace_table, 0, sizeof *trace_table);
}

/* Threads outside the interpreter's lock may name spans: short, and never held by a handler. */
static void lock(void)
{
    while (__atomic_exchange_n(&trace_table->lock, 1, __ATOMIC_ACQUIRE))
        raw0(SYS_sched_yield);
}

static void unlock(void)
{
    __atomic_store_n(&trace_table->lock, 0, __ATOMIC_RELEASE);
}

static uint16_t bounded(size_t len)
{
    return (uint16_t)(len < TRACE_TEXT_MAX ? len : TRACE_TEXT_MAX);
}

bool trace_say(uint32_t id, const struct trace_text *text)
{
    struct trace_process *p = trace_process;
    struct trace_header *h = p->segment;
    struct trace_name entry = {.id = id,
                               .kind = text->kind,
                               .line = text->line,
                               .address = text->address,
                               .count = text->count,
                               .name = bounded(text->name_len),
                               .path = bounded(text->path_len)};
    entry.size = (uint32_t)((sizeof entry + entry.name + entry.path + 7) & ~7u);
    if (entry.size > TRACE_NAMES - h->names_used) {
        trace_declare(TRACE_NAMES_FULL);
        return false;
    }
    char *to = (char *)h + p->layout.names + h->names_used;
    memcpy(to, &entry, sizeof entry);
    if (entry.name)
        memcpy(to + sizeof entry, text->name, entry.name);
    if (entry.path)
        memcpy(to + sizeof entry + entry.name, text->path, entry.path);
    __atomic_store_n(&h->names_used, h->names_used + entry.size, __ATOMIC_RELEASE);
    return true;
}

/* Where a new key goes: the first place that is free. */
static struct trace_entry *place_for(uint64_t key)
{
    for (uint32_t at = trace_place(key);; at = (at + 1) & (TRACE_TABLE - 1)) {
        struct trace_entry *e = &trace_table->entry[at];
        if (!e->key)
            return e;
    }
}

static struct trace_entry *add(uint64_t key, const struct trace_text *text)
{
    struct trace_entry *e = trace_find(key);
    if (e)
        return e;
    if (trace_table->used >= FULL || trace_table->next + 1 >= TRACE_IDS ||
        !trace_say(trace_table->next + 1, text)) {
        trace_declare(TRACE_NAMES_FULL);
        return &trace_table->other;
    }
    e = place_for(key);
    trace_table->used++;
    e->id = ++trace_table->next;
    e->hidden = e->decorates = 0;
    e->chosen = 0;
    __atomic_store_n(&e->key, key, __ATOMIC_RELEASE);
    return e;
}

struct trace_entry *trace_name(uint64_t key, const struct trace_text *text)
{
    lock();
    struct trace_entry *e = add(key, text);
    unlock();
    return e;
}

/* One pattern, `plen` bytes of it, against all of the name. */
static bool glob(const char *p, size_t plen, const char *s, size_t len)
{
    size_t i = 0, k = 0, star = SIZE_MAX, mark = 0;
    while (k < len) {
        if (i < plen && (p[i] == '?' || p[i] == s[k]) && p[i] != '*') {
            i++;
            k++;
        } else if (i < plen && p[i] == '*') {
            star = i++;
            mark = k;
        } else if (star != SIZE_MAX) {
            i = star + 1;
            k = ++mark;
        } else {
            return false;
        }
    }
    while (i < plen && p[i] == '*')
        i++;
    return i == plen;
}

bool trace_matches(const char *patterns, const char *name, size_t len)
{
    while (*patterns) {
        const char *end = strchr(patterns, ':');
        size_t plen = end ? (size_t)(end - patterns) : strlen(patterns);
        if (plen && glob(patterns, plen, name, len))
            return true;
        patterns += plen + (end != NULL);
    }
    return false;
}
