/* The model's code side: modules, functions, frames and stacks, each distinct one once. */
#include "profile/profile.h"

#include <string.h>

#include "profile/index.h"

uint32_t profile_module_add(struct profile *p, enum code_kind kind, const char *path,
                            const uint8_t *build_id, size_t build_id_len)
{
    uint32_t name = profile_string(p, path);
    if (build_id_len > sizeof p->modules.data->build_id)
        build_id_len = sizeof p->modules.data->build_id;
    for (size_t i = 0; i < p->modules.len; i++) {
        const struct profile_module *m = &p->modules.data[i];
        if (m->path == name && m->kind == kind && m->build_id_len == build_id_len &&
            (!build_id_len || !memcmp(m->build_id, build_id, build_id_len)))
            return (uint32_t)i;
    }
    struct profile_module *m = vector_push(&p->modules);
    *m = (struct profile_module){.path = name, .kind = kind, .build_id_len = (uint8_t)build_id_len};
    if (build_id_len)
        memcpy(m->build_id, build_id, build_id_len);
    return (uint32_t)p->modules.len - 1;
}

uint32_t profile_function_add(struct profile *p, const char *name, const char *linkage,
                              const char *file, uint32_t start_line, uint32_t module)
{
    struct profile_function f = {.name = profile_string(p, name),
                                 .linkage = profile_string(p, linkage),
                                 .file = profile_string(p, file),
                                 .start_line = start_line,
                                 .module = module};
    bool added;
    uint64_t *at =
        map_put(&p->function_index, (uint64_t)f.name << 32 | f.linkage,
                hash_mix((uint64_t)f.file << 32 | f.start_line, module), p->functions.len, &added);
    if (added)
        *vector_push(&p->functions) = f;
    return (uint32_t)*at;
}

uint32_t profile_frame_add(struct profile *p, uint32_t module, uint64_t address)
{
    bool added;
    uint64_t *at = map_put(&p->frame_index, module, address, p->frames.len, &added);
    if (added)
        *vector_push(&p->frames) = (struct profile_frame){.address = address, .module = module};
    return (uint32_t)*at;
}

/* Named frames share the index with addressed ones: the top bit keeps their keys apart. */
uint32_t profile_frame_named(struct profile *p, uint32_t module, uint32_t function, uint32_t line)
{
    bool added;
    uint64_t *at = map_put(&p->frame_index, module | 1ull << 63, (uint64_t)function << 32 | line,
                           p->frames.len, &added);
    uint32_t frame = (uint32_t)*at;
    if (added) {
        *vector_push(&p->frames) = (struct profile_frame){.module = module};
        profile_frame_locate(p, frame, &(struct profile_location){function, line}, 1);
    }
    return frame;
}

bool profile_frame_is_named(const struct profile *p, uint32_t frame)
{
    const struct profile_frame *f = &p->frames.data[frame];
    if (f->address || f->location_count != 1)
        return false;
    const struct profile_location *at = &p->locations.data[f->first_location];
    const uint64_t *known =
        map_get(&p->frame_index, f->module | 1ull << 63, (uint64_t)at->function << 32 | at->line);
    return known && *known == frame;
}

void profile_frame_locate(struct profile *p, uint32_t frame, const struct profile_location *at,
                          uint32_t count)
{
    struct profile_frame *f = &p->frames.data[frame];
    f->first_location = (uint32_t)p->locations.len;
    f->location_count = count;
    for (uint32_t i = 0; i < count; i++)
        *vector_push(&p->locations) = at[i];
}

uint32_t profile_stack_add(struct profile *p, uint32_t parent, uint32_t frame)
{
    struct profile_index *index = &p->stack_index;
    /* Most stacks are made right after their parents, frame by frame. Such a one is found beside
     * its parent, and so need not be in the index. */
    uint32_t next = parent + 1;
    if (next < p->stacks.len && p->stacks.data[next].parent == parent &&
        p->stacks.data[next].frame == frame)
        return next;
    if (next == p->stacks.len) {
        *vector_push(&p->stacks) = (struct profile_stack){.parent = parent, .frame = frame};
        return next;
    }
    if (profile_index_is_full(index))
        profile_index_grow(index);
    uint64_t hash = hash_mix(parent, frame);
    size_t at = profile_index_home(index, hash);
    for (uint64_t slot; (slot = index->slots[at]); at = (at + 1) & index->mask) {
        uint32_t known = profile_index_item(slot);
        if (profile_index_may_be(slot, hash) && p->stacks.data[known].parent == parent &&
            p->stacks.data[known].frame == frame)
            return known;
    }
    profile_index_fill(index, at, hash, p->stacks.len);
    *vector_push(&p->stacks) = (struct profile_stack){.parent = parent, .frame = frame};
    return (uint32_t)p->stacks.len - 1;
}

bool profile_name_is_place(const char *name)
{
    size_t len = strlen(name);
    return len > 5 && name[0] == '[' && name[len - 1] == ']' && strstr(name, "+0x");
}

const char *profile_module_name(const struct profile *p, uint32_t module)
{
    if (module >= p->modules.len)
        return "[unknown]";
    const struct profile_module *m = &p->modules.data[module];
    switch (m->kind) {
    case CODE_KERNEL:
        return "[kernel]";
    case CODE_VDSO:
        return "[vdso]";
    case CODE_JIT:
        return "[jit]";
    case CODE_UNKNOWN:
        return "[unknown]";
    case CODE_SPAN:
        return "[span]";
    default:
        break;
    }
    const char *path = profile_text(p, m->path), *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}
