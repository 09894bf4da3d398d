/* The map of modules: a sequence lock over two tables, so that readers never wait; see map.h. */
#include "unwind/map.h"

#include <errno.h>
#include <sys/mman.h>

struct unwind_table {
    struct unwind_table *next; /* among the retired */
    uint64_t capacity, count;
    struct unwind_module module[];
};

/* The words of a table change under a reader's eyes; it must see each one whole. */
#define peek(place) __atomic_load_n(&(place), __ATOMIC_RELAXED)
#define poke(place, value) __atomic_store_n(&(place), (value), __ATOMIC_RELAXED)

static size_t table_size(uint64_t capacity)
{
    return sizeof(struct unwind_table) + capacity * sizeof(struct unwind_module);
}

/* The table the writer may fill, with room for `count`; NULL without memory. */
static struct unwind_table *spare_table(struct unwind_map *map, uint64_t count)
{
    struct unwind_table **place = &map->table[~map->version & 1];
    struct unwind_table *old = *place;
    if (old && old->capacity >= count)
        return old;
    if (count > UINT32_MAX)
        return NULL;
    uint64_t capacity = (4096 - sizeof(struct unwind_table)) / sizeof(struct unwind_module);
    while (capacity < count)
        capacity *= 2;
    struct unwind_table *fresh = mmap(NULL, table_size(capacity), PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED)
        return NULL;
    fresh->capacity = capacity;
    if (old) {
        old->next = map->retired;
        map->retired = old;
    }
    __atomic_store_n(place, fresh, __ATOMIC_RELEASE);
    return fresh;
}

static void append(struct unwind_table *t, struct unwind_module module)
{
    struct unwind_module *to = &t->module[t->count];
    if (module.start >= module.end)
        return;
    poke(to->start, module.start);
    poke(to->end, module.end);
    poke(to->bias, module.bias);
    poke(to->rows, module.rows);
    poke(t->count, t->count + 1);
}

/* Publishes what the old table holds, with [start, end) cut out of it and `module` put there. */
static int rewrite(struct unwind_map *map, uint64_t start, uint64_t end,
                   const struct unwind_module *module)
{
    const struct unwind_table *old = map->table[map->version & 1];
    uint64_t count = old ? old->count : 0;
    struct unwind_table *new = spare_table(map, count + 2);
    if (!new)
        return -ENOMEM;
    /* A reader that still holds this table must see the version moved before it sees new words. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
    poke(new->count, 0);
    bool placed = !module;
    for (uint64_t i = 0; i < count; i++) {
        struct unwind_module left = old->module[i], right = left;
        if (left.end > start)
            left.end = start > left.start ? start : left.start;
        if (right.start < end)
            right.start = end < right.end ? end : right.end;
        append(new, left);
        if (!placed && right.end > end) {
            append(new, *module);
            placed = true;
        }
        append(new, right);
    }
    if (!placed)
        append(new, *module);
    __atomic_store_n(&map->version, map->version + 1, __ATOMIC_RELEASE);
    return 0;
}

int unwind_map_add(struct unwind_map *map, const struct unwind_module *module)
{
    if (module->start >= module->end)
        return -EINVAL;
    return rewrite(map, module->start, module->end, module);
}

int unwind_map_remove(struct unwind_map *map, uint64_t start, uint64_t end)
{
    return start < end ? rewrite(map, start, end, NULL) : -EINVAL;
}

/* Fills a map that nobody reads yet. */
static int fill(struct unwind_map *map, const struct unwind_module *modules, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int rc = unwind_map_add(map, &modules[i]);
        if (rc)
            return rc;
    }
    return 0;
}

/* Publishes the content of `from` as that of `map`. */
static int publish(struct unwind_map *map, const struct unwind_map *from)
{
    const struct unwind_table *content = from->table[from->version & 1];
    uint64_t count = content ? content->count : 0;
    struct unwind_table *new = spare_table(map, count);
    if (!new)
        return -ENOMEM;
    __atomic_thread_fence(__ATOMIC_RELEASE);
    poke(new->count, 0);
    for (uint64_t i = 0; i < count; i++)
        append(new, content->module[i]);
    __atomic_store_n(&map->version, map->version + 1, __ATOMIC_RELEASE);
    return 0;
}

int unwind_map_set(struct unwind_map *map, const struct unwind_module *modules, size_t count)
{
    struct unwind_map scratch = {0};
    int rc = fill(&scratch, modules, count);
    if (!rc)
        rc = publish(map, &scratch);
    unwind_map_release(&scratch);
    return rc;
}

int unwind_map_copy(struct unwind_map *map, const struct unwind_map *from)
{
    return publish(map, from);
}

/* One look at one table; the words may be stale or torn between entries, never out of bounds. */
static bool look(const struct unwind_table *t, uint64_t address, struct unwind_module *module)
{
    uint64_t count = t ? peek(t->count) : 0;
    if (!count || count > t->capacity)
        return false;
    uint64_t low = 0;
    while (count > 1) {
        uint64_t half = count / 2;
        low += peek(t->module[low + half].start) <= address ? half : 0;
        count -= half;
    }
    const struct unwind_module *m = &t->module[low];
    module->start = peek(m->start);
    module->end = peek(m->end);
    module->bias = peek(m->bias);
    module->rows = peek(m->rows);
    return address >= module->start && address < module->end;
}

bool unwind_map_find(const struct unwind_map *map, uint64_t address, struct unwind_module *module)
{
    for (;;) {
        uint64_t version = __atomic_load_n(&map->version, __ATOMIC_ACQUIRE);
        const struct unwind_table *t = __atomic_load_n(&map->table[version & 1], __ATOMIC_ACQUIRE);
        bool found = look(t, address, module);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (peek(map->version) == version)
            return found;
    }
}

size_t unwind_map_count(const struct unwind_map *map)
{
    const struct unwind_table *t = map->table[map->version & 1];
    return t ? t->count : 0;
}

void unwind_map_release(struct unwind_map *map)
{
    for (int i = 0; i < 2; i++) {
        if (map->table[i])
            munmap(map->table[i], table_size(map->table[i]->capacity));
        map->table[i] = NULL;
    }
    while (map->retired) {
        struct unwind_table *t = map->retired;
        map->retired = t->next;
        munmap(t, table_size(t->capacity));
    }
    map->version++; /* caches made from it hold no more */
}
