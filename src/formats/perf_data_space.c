/*
 * The code of processes: what is mapped where, which file it is and how its stacks are unwound.
 * Paths come from the file and are hostile: only regular files are opened, read with
 * pread and bounds, and used only if their build-id is the one that was recorded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/utsname.h>
#include <unistd.h>

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
    memset(d->met, 0, sizeof d->met);
}

static void space_empty(struct perf_space *s)
{
    s->maps.len = 0;
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
    vector_reserve(&t->maps, f->maps.len);
    if (f->maps.len)
        memcpy(t->maps.data, f->maps.data, f->maps.len * sizeof *f->maps.data);
    t->maps.len = f->maps.len;
    if (d->stacks_copied)
        unwind_map_copy(&t->unwind, &f->unwind);
}

/* Index of the first mapping that ends after `address`. */
static size_t first_after(const struct perf_space *s, uint64_t address)
{
    size_t low = 0, high = s->maps.len;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (s->maps.data[mid].end <= address)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void insert(struct perf_space *s, size_t at, const struct perf_mapping *m)
{
    vector_reserve(&s->maps, s->maps.len + 1);
    memmove(s->maps.data + at + 1, s->maps.data + at, (s->maps.len - at) * sizeof *s->maps.data);
    s->maps.data[at] = *m;
    s->maps.len++;
}

/* As mmap: replaces, cuts or splits what was there. */
static void place(struct perf_space *s, const struct perf_mapping *m)
{
    size_t at = first_after(s, m->start);
    if (at < s->maps.len && s->maps.data[at].start < m->start) {
        struct perf_mapping tail = s->maps.data[at];
        s->maps.data[at++].end = m->start;
        if (tail.end > m->end) {
            tail.start = m->end;
            insert(s, at, &tail);
        }
    }
    size_t gone = at;
    while (gone < s->maps.len && s->maps.data[gone].end <= m->end)
        gone++;
    if (gone < s->maps.len && s->maps.data[gone].start < m->end)
        s->maps.data[gone].start = m->end;
    if (gone > at)
        memmove(s->maps.data + at, s->maps.data + gone,
                (s->maps.len - gone) * sizeof *s->maps.data);
    s->maps.len -= gone - at;
    insert(s, at, m);
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
    struct perf_mapping m = {.start = start};
    if (!len || __builtin_add_overflow(start, len, &m.end) || s->maps.len >= MAPPINGS_MAX)
        return 0;
    m.module = module_of(d, d->im.profile->processes.data[process].pid, path, build_id, id_len);
    if (m.module == PROFILE_NONE)
        return import_too_many(&d->im, "modules", IMPORT_MODULES_MAX, err);
    struct perf_module *f = file_of(d, m.module);
    m.bias = bias_of(d, f, start, offset);
    forget_last(d);
    place(s, &m);
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
    size_t at = first_after(s, address);
    if (at >= s->maps.len || s->maps.data[at].start > address)
        return profile_frame_add(d->im.profile, d->unknown, address);
    const struct perf_mapping *m = &s->maps.data[at];
    return profile_frame_add(d->im.profile, m->module, address - m->bias);
}

uint32_t perf_space_frame(struct perf_data *d, const struct perf_space *s, uint64_t address)
{
    struct perf_met *m = &d->met[hash_mix(address, 0) % PERF_MET];
    if (m->space != s || m->address != address)
        *m = (struct perf_met){s, address, find_frame(d, s, address)};
    return m->frame;
}

/* The end of a copied stack, fetched when a walk gets that far. */
struct rest {
    struct perf_data *d;
    const struct perf_sample *sample;
    uint64_t sp;
    size_t len;
    bool tried;
};

static int read_rest(void *context, uint64_t address, uint64_t *word)
{
    struct rest *r = context;
    const struct perf_sample *s = r->sample;
    if (!r->tried) {
        r->tried = true;
        /* Behind the bytes stands how many of them are the stack's. */
        size_t len = s->rest_len < sizeof r->d->rest - 8 ? s->rest_len : sizeof r->d->rest - 8;
        if (source_at(r->d->im.source, s->rest_offset, r->d->rest, len + 8)) {
            uint64_t used = perf_u64(r->d->rest + len);
            r->len = used < len ? (size_t)used : len;
        }
    }
    uint64_t at = address - r->sp;
    if (address < r->sp || at > r->len || r->len - at < 8)
        return -1;
    memcpy(word, r->d->rest + at, 8);
    return 0;
}

/* Stacks of one space that begin alike (the last of `address`) have the same nodes there. */
static size_t known_part(struct perf_data *d, const struct perf_space *s, uint32_t root, size_t n)
{
    size_t same = 0, most = d->last_len < n ? d->last_len : n;
    if (d->last_space == s && d->last_root == root)
        while (same < most && d->last_address[same] == d->address[n - 1 - same])
            same++;
    d->last_space = s;
    d->last_root = root;
    return same;
}

static int push_addresses(struct perf_data *d, const struct perf_space *s, size_t n,
                          size_t interrupted, uint32_t *stack, struct error *err)
{
    size_t same = interrupted ? 0 : known_part(d, s, *stack, n);
    /* The innermost address is exact, all others are where a call returns to: a node that was the
     * innermost does not serve another stack as its middle, nor the other way round. */
    while (same && (same == n || same == d->last_len))
        same--;
    if (same)
        *stack = d->last_stack[same - 1];
    for (size_t i = same; i < n; i++) {
        size_t from_leaf = n - 1 - i;
        bool is_return = from_leaf && (!interrupted || from_leaf != interrupted);
        uint32_t frame = perf_space_frame(d, s, d->address[from_leaf] - is_return);
        int rc = import_push(&d->im, stack, frame, err);
        if (rc)
            return rc;
        d->last_address[i] = d->address[from_leaf];
        d->last_stack[i] = *stack;
    }
    d->last_len = interrupted ? 0 : n;
    return 0;
}

int perf_space_unwind(struct perf_data *d, const struct perf_space *s, const struct perf_attr *a,
                      const struct perf_sample *sample, uint32_t *stack, struct error *err)
{
    struct unwind_regs regs;
    struct unwind_end end = {0};
    uint64_t values[64];
    size_t count = sample->regs_len < 64 ? sample->regs_len : 64;
    memcpy(values, sample->regs, count * 8);
    unwind_regs_from_perf(&regs, a->regs_user, values, count);
    struct unwind_memory memory = {
        .start = regs.value[UNWIND_SP], .data = sample->stack, .size = sample->stack_len};
    struct rest rest = {.d = d, .sample = sample, .sp = memory.start};
    if (sample->rest_offset) {
        memory.read = read_rest;
        memory.ctx = &rest;
    }
    size_t n = unwind_walk(&s->unwind, &regs, &memory, d->address, PERF_CHAIN_MAX, &end);
    bool whole = end.reason == UNWIND_COMPLETE;
    struct profile_cost *cost = &d->im.profile->cost;
    *(whole ? &cost->stacks_whole : &cost->stacks_cut) += 1;
    int rc = !whole && n ? import_push(&d->im, stack, d->cut_frame, err) : 0;
    return rc ? rc : push_addresses(d, s, n, end.interrupted, stack, err);
}

/* Where the running kernel stands, 0 if it does not say. */
static uint64_t own_kernel_text(void)
{
    FILE *f = fopen("/proc/kallsyms", "re");
    char line[256];
    uint64_t found = 0;
    for (int i = 0; f && i < 5000 && !found && fgets(line, sizeof line, f); i++)
        if (strstr(line, " _text\n") || strstr(line, " _stext\n"))
            found = strtoull(line, NULL, 16);
    if (f)
        fclose(f);
    return found;
}

/* Kernel addresses mean something only under the kernel, and the boot, that they come from. */
static bool is_this_kernel(const struct perf_data *d)
{
    struct utsname u;
    if (uname(&u) || strcmp(u.release, d->release.data ? d->release.data : "") ||
        strcmp(u.nodename, d->host.data ? d->host.data : ""))
        return false;
    return !d->kernel_text || d->kernel_text == own_kernel_text();
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
        vector_release(&d->all_spaces.data[i]->maps);
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
