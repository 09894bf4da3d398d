/* Hash maps with open addressing and linear probing; see map.h. */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

uint64_t hash_mix(uint64_t a, uint64_t b)
{
    /* Every bit of both counts: some callers take two equal hashes for the same thing. */
    unsigned __int128 m =
        (unsigned __int128)(a ^ 0x9e3779b97f4a7c15ull) * (b ^ 0xe7037ed1a0b428dbull);
    uint64_t h = (uint64_t)m ^ (uint64_t)(m >> 64);
    h ^= h >> 29;
    return h * 0xbf58476d1ce4e5b9ull ^ (h >> 32);
}

uint64_t hash_bytes(const void *data, size_t len)
{
    const unsigned char *p = data;
    uint64_t h = len * 0x9e3779b97f4a7c15ull;
    while (len >= 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        h = hash_mix(h, w);
        p += 8;
        len -= 8;
    }
    uint64_t last = 0;
    memcpy(&last, p, len);
    return hash_mix(h, last);
}

static size_t map_find(const struct map *m, uint64_t a, uint64_t b)
{
    size_t i = hash_mix(a, b) & m->mask;
    while (m->slots[i].used && (m->slots[i].a != a || m->slots[i].b != b))
        i = (i + 1) & m->mask;
    return i;
}

static void map_resize(struct map *m, size_t slots)
{
    struct map old = *m;
    m->slots = memory_array(slots, sizeof *m->slots);
    m->mask = slots - 1;
    for (size_t i = 0; old.slots && i <= old.mask; i++)
        if (old.slots[i].used)
            m->slots[map_find(m, old.slots[i].a, old.slots[i].b)] = old.slots[i];
    free(old.slots);
}

uint64_t *map_get(const struct map *m, uint64_t a, uint64_t b)
{
    if (!m->slots)
        return NULL;
    struct map_slot *s = &m->slots[map_find(m, a, b)];
    return s->used ? &s->value : NULL;
}

uint64_t *map_put(struct map *m, uint64_t a, uint64_t b, uint64_t fresh, bool *added)
{
    if (!m->slots)
        map_resize(m, 16);
    else if ((m->len + 1) * 4 > (m->mask + 1) * 3)
        map_resize(m, (m->mask + 1) * 2);
    struct map_slot *s = &m->slots[map_find(m, a, b)];
    if (added)
        *added = !s->used;
    if (!s->used) {
        *s = (struct map_slot){.a = a, .b = b, .value = fresh, .used = 1};
        m->len++;
    }
    return &s->value;
}

bool map_remove(struct map *m, uint64_t a, uint64_t b)
{
    if (!m->slots)
        return false;
    size_t hole = map_find(m, a, b);
    if (!m->slots[hole].used)
        return false;
    m->len--;
    for (size_t i = (hole + 1) & m->mask; m->slots[i].used; i = (i + 1) & m->mask) {
        size_t home = hash_mix(m->slots[i].a, m->slots[i].b) & m->mask;
        if (((i - home) & m->mask) >= ((i - hole) & m->mask)) {
            m->slots[hole] = m->slots[i];
            hole = i;
        }
    }
    m->slots[hole].used = 0;
    return true;
}

void map_clear(struct map *m)
{
    if (m->slots)
        memset(m->slots, 0, (m->mask + 1) * sizeof *m->slots);
    m->len = 0;
}

void map_release(struct map *m)
{
    free(m->slots);
    *m = (struct map){0};
}

static size_t names_slot(const struct names *n, uint32_t hash, const char *text, size_t len)
{
    size_t i = hash & n->mask;
    for (; n->slots[i]; i = (i + 1) & n->mask) {
        uint32_t at = n->slots[i] - 1;
        if (n->hash[at] == hash && strncmp(n->text[at], text, len) == 0 && !n->text[at][len])
            break;
    }
    return i;
}

static void names_resize(struct names *n, size_t slots)
{
    free(n->slots);
    n->slots = memory_array(slots, sizeof *n->slots);
    n->mask = slots - 1;
    for (size_t k = 0; k < n->len; k++) {
        size_t i = n->hash[k] & n->mask;
        while (n->slots[i])
            i = (i + 1) & n->mask;
        n->slots[i] = (uint32_t)k + 1;
    }
}

uint32_t names_add_len(struct names *n, const char *text, size_t len)
{
    len = strnlen(text, len);
    if (!n->slots || (n->len + 1) * 2 > n->mask + 1)
        names_resize(n, n->slots ? (n->mask + 1) * 2 : 64);
    uint32_t hash = (uint32_t)hash_bytes(text, len);
    size_t i = names_slot(n, hash, text, len);
    if (n->slots[i])
        return n->slots[i] - 1;
    if (n->len == n->cap) {
        n->cap = n->cap ? n->cap * 2 : 64;
        n->text = memory_grow(n->text, n->cap, sizeof *n->text);
        n->hash = memory_grow(n->hash, n->cap, sizeof *n->hash);
    }
    n->text[n->len] = arena_strndup(&n->arena, text, len);
    n->hash[n->len] = hash;
    n->slots[i] = (uint32_t)++n->len;
    return (uint32_t)n->len - 1;
}

uint32_t names_add(struct names *n, const char *text)
{
    return names_add_len(n, text, strlen(text));
}

uint32_t names_find(const struct names *n, const char *text)
{
    if (!n->slots)
        return NAMES_NONE;
    size_t len = strlen(text);
    size_t i = names_slot(n, (uint32_t)hash_bytes(text, len), text, len);
    return n->slots[i] ? n->slots[i] - 1 : NAMES_NONE;
}

void names_release(struct names *n)
{
    arena_release(&n->arena);
    free(n->text);
    free(n->hash);
    free(n->slots);
    *n = (struct names){0};
}
