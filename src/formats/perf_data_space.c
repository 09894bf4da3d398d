/*
 * The code of processes: what is mapped where, which file it is and how its stacks are unwound.
 * Paths come from the file and are hostile: only regular files are opened, read with
 * pread and bounds, and used only if their build-id is the one that was recorded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/kernel.h"
#include "base/memory.h"
#include "formats/maps.h"
#include "formats/perf_data_internal.h"
#include "unwind/walk.h"

#define VDSO_BYTES_MAX 8192
#define MAPPINGS_MAX 65536 /* of one process */

struct perf_space *perf_space_of(struct perf_data *d, uint32_t process)
{
    uint64_t *known = map_put(&d->spaces, process, 0, d->all_spaces.len, NULL);
    if (*known == d->all_spaces.len)
        *vector_push(&d->all_spaces) = memory_alloc(sizeof(struct perf_space));
    return d->all_spaces.data[*known];
}

/* What is mapped changes: what was known of the last stack holds no more. */
static void forget_last(struct perf_data *d)
{
    d->last_len = 0;
    d->version++;
}

static void space_empty(struct perf_space *s)
{
    s->maps.all.len = 0;
    unwind_map_release(&s->unwind);
    s->unwind = (struct unwind_map){0};
}

void perf_space_forget(struct perf_data *d, uint32_t process)
{
    forget_last(d);
    space_empty(perf_space_of(d, process));
}

void perf_space_copy(struct perf_data *d, uint32_t from, uint32_t to)
{
    struct perf_space *t = perf_space_of(d, to), *f = perf_space_of(d, from);
    forget_last(d);
    space_empty(t);
    ranges_copy(&t->maps, &f->maps);
    if (d->stacks_copied)
        unwind_map_copy(&t->unwind, &f->unwind);
}

/* The file behind a module of the profile, looked at once. */
static struct perf_module *file_of(struct perf_data *d, uint32_t module)
{
    uint64_t *known = map_put(&d->modules, module, 0, d->files.len, NULL);
    if (*known < d->files.len)
        return d->files.data[*known];
    struct perf_module *f = memory_alloc(sizeof *f);
    const struct profile_module *m = &d->im.profile->modules.data[module];
    *vector_push(&d->files) = f;
    f->module = module;
    const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
    if (m->kind == CODE_VDSO && vdso && d->stacks_copied)
        rows_read_memory(vdso, VDSO_BYTES_MAX, &f->rows);
    if (m->kind != CODE_ELF)
        return f;
    int fd = maps_open(profile_text(d->im.profile, m->path), m->build_id, m->build_id_len);
    f->readable = fd >= 0;
    if (f->readable && d->stacks_copied)
        rows_open(fd, NULL, &f->rows);
    if (f->readable)
        close(fd);
    return f;
}

/* What to take off an address to get one of the file, for a mapping of that file offset. */
static uint64_t bias_of(struct perf_data *d, struct perf_module *f, uint64_t start, uint64_t offset)
{
    const struct profile_module *m = &d->im.profile->modules.data[f->module];
    uint64_t bias = start - offset;
    if (m->kind == CODE_JIT || m->kind == CODE_UNKNOWN)
        return 0;
    uint64_t *known = map_get(&d->biases, f->module, offset);
    if (known)
        return start + *known;
    if (f->readable)
        bias = maps_bias(profile_text(d->im.profile, m->path), m->build_id, m->build_id_len, start,
                         offset);
    map_put(&d->biases, f->module, offset, bias - start, NULL);
    return bias;
}

static bool is_file(const char *path)
{
    return path[0] == '/' && path[1] != '/' && !text_starts(path, "/dev/zero") &&
           !text_starts(path, "/memfd:") && !text_starts(path, "/SYSV") &&
           !text_starts(path, "/anon_hugepage");
}

/* The module of a mapping: a file, the vdso, or what a just-in-time compiler made. */
static uint32_t module_of(struct perf_data *d, int32_t pid, const char *path, const uint8_t *id,
                          size_t id_len)
{
    char jit[64];
    bool vdso = !strcmp(path, "[vdso]"), file = is_file(path);
    snprintf(jit, sizeof jit, "/tmp/perf-%d.map", pid);
    uint32_t module = import_module(&d->im, file || vdso ? path : jit);
    if (module == PROFILE_NONE || !file)
        return module;
    struct profile_module *m = &d->im.profile->modules.data[module];
    m->kind = CODE_ELF; /* whatever its name looks like, it is mapped for execution */
    const uint64_t *known = map_get(&d->build_ids, m->path, 0);
    if (!id_len && known) {
        id = d->known_ids.data[*known].bytes;
        id_len = d->known_ids.data[*known].len;
    }
    if (id_len && !m->build_id_len) {
        memcpy(m->build_id, id, id_len);
        m->build_id_len = (uint8_t)id_len;
    }
    return module;
}

int perf_space_map(struct perf_data *d, uint32_t process, uint64_t start, uint64_t len,
                   uint64_t offset, const char *path, const uint8_t *build_id, size_t id_len,
                   struct error *err)
{
    struct perf_space *s = perf_space_of(d, process);
    struct range m = {.start = start};
    if (!len || __builtin_add_overflow(start, len, &m.end) || s->maps.all.len >= MAPPINGS_MAX)
        return 0;
    m.number = module_of(d, d->im.profile->processes.data[process].pid, path, build_id, id_len);
    if (m.number == PROFILE_NONE)
        return import_too_many(&d->im, "modules", IMPORT_MODULES_MAX, err);
    struct perf_module *f = file_of(d, m.number);
    m.bias = bias_of(d, f, start, offset);
    forget_last(d);
    ranges_put(&s->maps, &m);
    if (d->stacks_copied)
        unwind_map_add(&s->unwind,
                       &(struct unwind_module){.start = m.start,
                                               .end = m.end,
                                               .bias = m.bias,
                                               .rows = f->rows.count ? &f->rows : NULL});
    return 0;
}

static uint32_t find_frame(struct perf_data *d, const struct perf_space *s, uint64_t address)
{
    const struct range *m = ranges_find(&s->maps, address);
    if (!m)
        return profile_frame_add(d->im.profile, d->unknown, address);
    return profile_frame_add(d->im.profile, m->number, address - m->bias);
}

uint32_t perf_space_frame(struct perf_data *d, const struct perf_space *s, uint64_t address)
{
    struct perf_met *m = &d->met[hash_mix(address, 0) % PERF_MET];
    if (m->space != s || m->address != address || m->version != d->version)
        *m = (struct perf_met){s, address, find_frame(d, s, address), d->version};
    return m->frame;
}

/* Stacks of one space that begin alike (the last of `address`) have the same nodes there. */
static size_t known_part(struct perf_data *d, const struct perf_item *item, const uint64_t *address,
                         uint32_t root)
{
    size_t n = item->count, same = 0, most = d->last_len < n ? d->last_len : n;
    if (d->last_space == item->space && d->last_root == root && !item->interrupted)
        while (same < most && d->last_address[same] == address[n - 1 - same])
            same++;
    d->last_space = item->space;
    d->last_root = root;
    /* The innermost address is exact, all others are where a call returns to: a node that was the
     * innermost does not serve another stack as its middle, nor the other way round. */
    while (same && (same == n || same == d->last_len))
        same--;
    return same;
}

int perf_space_push(struct perf_data *d, const struct perf_item *item, const uint64_t *address,
                    uint32_t *stack, struct error *err)
{
    struct profile_cost *cost = &d->im.profile->cost;
    size_t n = item->count;
    *(item->whole ? &cost->stacks_whole : &cost->stacks_cut) += 1;
    int rc = !item->whole && n ? import_push(&d->im, stack, d->cut_frame, err) : 0;
    size_t same = known_part(d, item, address, *stack);
    if (same)
        *stack = d->last_stack[same - 1];
    for (size_t i = same; i < n && !rc; i++) {
        size_t from_leaf = n - 1 - i;
        bool is_return = from_leaf && (!item->interrupted || from_leaf != item->interrupted);
        uint32_t frame = perf_space_frame(d, item->space, address[from_leaf] - is_return);
        rc = import_push(&d->im, stack, frame, err);
        d->last_address[i] = address[from_leaf];
        d->last_stack[i] = *stack;
    }
    d->last_len = item->interrupted ? 0 : n;
    return rc;
}

/* A word of a stack whose front alone was read. */
static int read_far(void *context, uint64_t address, uint64_t *word)
{
    const struct unwind_memory *far = context;
    uint64_t offset = address - far->start;
    if (far->size < sizeof *word || address < far->start || offset > far->size - sizeof *word)
        return -1;
    memcpy(word, (const char *)far->data + offset, sizeof *word);
    return 0;
}

void perf_space_walk(struct perf_item *item, uint64_t *address)
{
    const struct perf_sample *sample = &item->sample;
    struct unwind_regs regs;
    struct unwind_end end = {0};
    uint64_t values[64];
    size_t count = sample->regs_len < 64 ? sample->regs_len : 64;
    memcpy(values, sample->regs, count * 8);
    unwind_regs_from_perf(&regs, item->regs_mask, values, count);
    struct unwind_memory memory = {
        .start = regs.value[UNWIND_SP], .data = sample->stack, .size = sample->stack_len};
    struct unwind_memory far = {
        .start = memory.start, .data = sample->far_stack, .size = sample->far_stack_len};
    if (sample->far_stack) {
        memory.read = read_far;
        memory.ctx = &far;
    }
    item->count = unwind_walk(&item->space->unwind, &regs, &memory, address, PERF_CHAIN_MAX, &end);
    item->interrupted = end.interrupted;
    item->whole = end.reason == UNWIND_COMPLETE;
}

/* Kernel addresses mean something only under the kernel, and the boot, that they come from. */
static bool is_this_kernel(const struct perf_data *d)
{
    return kernel_is(d->release.data, d->host.data) &&
           (!d->kernel_text || d->kernel_text == kernel_text());
}

void perf_space_finish(struct perf_data *d)
{
    struct profile *p = d->im.profile;
    struct profile_module *kernel = &p->modules.data[d->kernel];
    size_t missing = 0;
    for (size_t i = 0; i < d->files.len; i++) {
        struct profile_module *m = &p->modules.data[d->files.data[i]->module];
        const uint64_t *known = map_get(&d->build_ids, m->path, 0);
        missing += m->kind == CODE_ELF && !d->files.data[i]->readable;
        if (known && !m->build_id_len) {
            m->build_id_len = d->known_ids.data[*known].len;
            memcpy(m->build_id, d->known_ids.data[*known].bytes, m->build_id_len);
        }
    }
    if (!is_this_kernel(d)) {
        kernel->kind = CODE_UNKNOWN;
        kernel->note = profile_string(p, "recorded under another kernel or before a reboot");
    }
    if (missing && d->stacks_copied)
        import_note(&d->im, NOTE_WARNING,
                    "%zu of the programs and libraries are not here, or are other builds: stacks "
                    "through them could be walked by frame pointers only",
                    missing);
}

void perf_space_release(struct perf_data *d)
{
    for (size_t i = 0; i < d->all_spaces.len; i++) {
        unwind_map_release(&d->all_spaces.data[i]->unwind);
        ranges_release(&d->all_spaces.data[i]->maps);
        free(d->all_spaces.data[i]);
    }
    for (size_t i = 0; i < d->files.len; i++) {
        rows_release(&d->files.data[i]->rows);
        free(d->files.data[i]);
    }
    vector_release(&d->all_spaces);
    vector_release(&d->files);
    map_release(&d->modules);
    map_release(&d->biases);
    map_release(&d->spaces);
}
