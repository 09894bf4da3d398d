/* Names while it runs; see naming.h. */
#include "live/naming.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "symbol/batch.h"
#include "symbol/profile.h"

#define AGAIN 5000000000ull   /* ns after which just-in-time code is asked about again */
#define DETAIL 10000000000ull /* between two rounds through debug information */

/* A location that was found; its strings are in the arena. */
struct found {
    const char *function, *linkage, *file;
    uint32_t line, start_line, module;
};

struct answer {
    uint32_t frame, first, count;
};

struct naming {
    size_t asked;       /* frames below were asked about */
    size_t detailed;    /* of them, with lines and inlined functions */
    bool detail;        /* this round is for those */
    uint64_t detail_at; /* when the next such round may be */
    uint64_t again;     /* when just-in-time code was asked about last */
    struct symbol_batch *batch;
    struct arena arena;
    VECTOR(struct found) found;
    VECTOR(struct answer) answers;
    struct map functions; /* (linkage name, module) -> function */
    struct map replaced;  /* function -> the one that knows more */
};

struct naming *naming_new(void)
{
    return memory_alloc(sizeof(struct naming));
}

static void clear(struct naming *n)
{
    if (n->batch)
        symbol_batch_free(n->batch);
    n->batch = NULL;
    arena_release(&n->arena);
    n->found.len = n->answers.len = 0;
}

void naming_free(struct naming *n)
{
    if (!n)
        return;
    clear(n);
    vector_release(&n->found);
    vector_release(&n->answers);
    map_release(&n->functions);
    map_release(&n->replaced);
    free(n);
}

/* The requests' strings must stay while the profile's may move: copies, in the arena. */
static void gather_modules(struct naming *n, const struct profile *p)
{
    for (size_t i = 0; i < p->modules.len; i++) {
        const struct profile_module *m = &p->modules.data[i];
        bool by_path = m->kind == CODE_ELF || m->kind == CODE_JIT;
        struct symbol_request r = {.kind = symbol_kind_of(m->kind),
                                   .build_id_len = m->build_id_len};
        if (by_path)
            r.path = arena_strdup(&n->arena, profile_text(p, m->path));
        if (m->build_id_len) {
            uint8_t *id = arena_alloc(&n->arena, sizeof m->build_id);
            for (size_t k = 0; k < m->build_id_len; k++)
                id[k] = m->build_id[k];
            r.build_id = id;
        }
        symbol_batch_module(n->batch, i, &r, -1);
    }
}

/* Frames from `from` on, of which those below `fresh` only if they are just-in-time code without a
 * name. */
static void gather_frames(struct naming *n, const struct profile *p, size_t from, size_t fresh)
{
    for (size_t i = from; i < p->frames.len; i++) {
        const struct profile_frame *f = &p->frames.data[i];
        bool jit = p->modules.data[f->module].kind == CODE_JIT;
        if (!f->address || profile_frame_is_named(p, (uint32_t)i))
            continue;
        if (n->detail || (!f->location_count && (i >= fresh || jit)))
            symbol_batch_add(n->batch, f->module, f->address, (uint32_t)i);
    }
}

bool naming_gather(struct naming *n, const struct profile *p)
{
    uint64_t now = clock_now();
    bool again = now - n->again >= AGAIN;
    clear(n);
    n->batch = symbol_batch_new(p->modules.len);
    n->detail = false;
    gather_frames(n, p, again ? 0 : n->asked, n->asked);
    n->asked = p->frames.len;
    if (again)
        n->again = now;
    if (!symbol_batch_count(n->batch) && n->detailed < p->frames.len && now >= n->detail_at) {
        n->detail = true;
        gather_frames(n, p, n->detailed, n->detailed);
        n->detailed = p->frames.len;
    }
    if (!symbol_batch_count(n->batch))
        return false;
    gather_modules(n, p);
    return true;
}

static void on_answer(void *context, size_t module, uint32_t frame,
                      const struct symbol_location *at, size_t count)
{
    struct naming *n = context;
    *vector_push(&n->answers) =
        (struct answer){.frame = frame, .first = (uint32_t)n->found.len, .count = (uint32_t)count};
    for (size_t i = 0; i < count; i++)
        *vector_push(&n->found) =
            (struct found){.function = arena_strdup(&n->arena, at[i].function),
                           .linkage = arena_strdup(&n->arena, at[i].linkage),
                           .file = at[i].file ? arena_strdup(&n->arena, at[i].file) : NULL,
                           .line = at[i].line,
                           .start_line = at[i].start_line,
                           .module = (uint32_t)module};
}

void naming_run(struct naming *n)
{
    /* One child at a time: the target has the CPUs. What cannot be had stays without a name. */
    struct symbol_options options = {.workers = 1, .no_debug_info = !n->detail};
    symbol_batch_run(n->batch, &options, on_answer, n, NULL);
    if (n->detail)
        n->detail_at = clock_now() + DETAIL;
}

/* A function is one function, whether it is known from a symbol table or with its file and line:
 * what was known first becomes what is known now. */
static uint32_t function_of(struct naming *n, struct profile *p, const struct found *f)
{
    uint64_t *known = map_get(&n->functions, hash_bytes(f->linkage, strlen(f->linkage)), f->module);
    if (known && !n->detail)
        return (uint32_t)*known;
    uint32_t function =
        profile_function_add(p, f->function, f->linkage, f->file, f->start_line, f->module);
    if (known && *known != function) {
        map_put(&n->replaced, *known, 0, function, NULL);
        *known = function;
    } else if (!known) {
        map_put(&n->functions, hash_bytes(f->linkage, strlen(f->linkage)), f->module, function,
                NULL);
    }
    return function;
}

/* Frames that were named with what has been replaced. */
static void replace(struct naming *n, struct profile *p)
{
    for (uint32_t i = 0; n->replaced.len && i < p->frames.len; i++) {
        const struct profile_frame *f = &p->frames.data[i];
        if (f->location_count != 1)
            continue;
        struct profile_location at = p->locations.data[f->first_location];
        const uint64_t *to = map_get(&n->replaced, at.function, 0);
        if (!to)
            continue;
        at.function = (uint32_t)*to;
        profile_frame_locate(p, i, &at, 1);
    }
    map_clear(&n->replaced);
}

void naming_apply(struct naming *n, struct profile *p)
{
    struct profile_location at[SYMBOL_INLINE_MAX];
    for (size_t i = 0; i < n->answers.len; i++) {
        const struct answer *a = &n->answers.data[i];
        if (p->frames.data[a->frame].location_count && !n->detail)
            continue;
        for (uint32_t k = 0; k < a->count; k++) {
            const struct found *f = &n->found.data[a->first + k];
            uint32_t function = k + 1 == a->count
                                    ? function_of(n, p, f)
                                    : profile_function_add(p, f->function, f->linkage, f->file,
                                                           f->start_line, f->module);
            at[k] = (struct profile_location){function, f->line};
        }
        profile_frame_locate(p, a->frame, at, a->count);
    }
    replace(n, p);
    p->symbolized |= n->answers.len > 0;
    clear(n);
}
