/* Modules of targets; see module.h. */
#include "capture/module.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/io.h"
#include "base/memory.h"
#include "base/text.h"

#define SEGMENTS_MAX 256
#define VDSO_BYTES_MAX 8192

static char *find_cache(void)
{
    struct text t = TEXT_INIT;
    if (cache_folder("rows", &t))
        return text_take(&t);
    text_release(&t);
    return NULL;
}

static struct module *add(struct modules *all, enum code_kind kind, const char *path,
                          const uint8_t *build_id, size_t len)
{
    struct module *m = memory_alloc(sizeof *m);
    m->kind = kind;
    m->path = memory_strdup(path);
    m->fd = -1;
    m->build_id_len = (uint8_t)len;
    if (len)
        memcpy(m->build_id, build_id, len);
    m->place = all->list.len;
    m->id = writer_module(all->writer, kind, path, m->build_id, len);
    *vector_push(&all->list) = m;
    return m;
}

void modules_init(struct modules *m, struct writer *writer)
{
    *m = (struct modules){.writer = writer, .cache = find_cache(), .pack_fd = -1};
    m->kernel = add(m, CODE_KERNEL, "[kernel]", NULL, 0);
    m->unknown = add(m, CODE_UNKNOWN, "", NULL, 0);
}

void modules_release(struct modules *m)
{
    for (size_t i = 0; i < m->list.len; i++) {
        struct module *one = m->list.data[i];
        if (one->fd >= 0)
            close(one->fd);
        rows_release(&one->rows);
        vector_release(&one->segments);
        free(one->path);
        free(one->root);
        free(one->dump);
        free(one);
    }
    vector_release(&m->list);
    map_release(&m->index);
    if (m->pack) {
        munmap(m->pack, ROWS_PACK_BYTES);
        close(m->pack_fd);
    }
    free(m->cache);
}

/* Executable PT_LOAD segments of the file; nothing if it is not an ELF file. */
static void read_segments(struct module *m)
{
    Elf64_Ehdr e;
    if (io_pread(m->fd, &e, sizeof e, 0) != sizeof e || memcmp(e.e_ident, ELFMAG, SELFMAG) ||
        e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_phentsize != sizeof(Elf64_Phdr))
        return;
    for (unsigned i = 0; i < e.e_phnum && i < SEGMENTS_MAX; i++) {
        Elf64_Phdr p;
        if (io_pread(m->fd, &p, sizeof p, e.e_phoff + i * sizeof p) != sizeof p)
            return;
        if (p.p_type == PT_LOAD && (p.p_flags & PF_X))
            *vector_push(&m->segments) = (struct segment){p.p_offset, p.p_vaddr, p.p_filesz};
    }
}

static bool is_same_build(int fd, const uint8_t *build_id, size_t len)
{
    uint8_t found[ROWS_BUILD_ID_MAX];
    if (!len)
        return true;
    int n = rows_read_build_id(fd, found);
    return n == (int)len && !memcmp(found, build_id, len);
}

static int open_regular(const char *path, const uint8_t *build_id, size_t len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && is_same_build(fd, build_id, len))
        return fd;
    close(fd);
    return -1;
}

/* The rows of a file that no sample has led to yet. */
static void share_file(struct modules *m, const char *path)
{
    uint8_t id[ROWS_BUILD_ID_MAX];
    struct rows rows;
    int fd = open_regular(path, NULL, 0);
    int len = fd >= 0 ? rows_read_build_id(fd, id) : 0;
    if (len > 0 && rows_open(fd, m->cache, &rows) == 0) {
        rows_pack_add(m->pack, id, (size_t)len, &rows);
        rows_release(&rows);
    }
    if (fd >= 0)
        close(fd);
}

void modules_share(struct modules *m, const char *library)
{
    const void *const everywhere[] = {(const void *)(uintptr_t)getpid,
                                      (const void *)getauxval(AT_BASE)};
    if (!m->pack)
        m->pack_fd = rows_pack_make(&m->pack);
    if (m->pack_fd < 0 || !library)
        return;
    share_file(m, library);
    for (size_t i = 0; i < sizeof everywhere / sizeof *everywhere; i++) {
        Dl_info info;
        if (dladdr(everywhere[i], &info) && info.dli_fname)
            share_file(m, info.dli_fname);
    }
}

static bool lives_elsewhere(pid_t pid)
{
    char path[64];
    struct stat ours, theirs;
    snprintf(path, sizeof path, "/proc/%d/root/", pid);
    return stat(path, &theirs) == 0 && stat("/", &ours) == 0 &&
           (ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino);
}

/* The file as it is mapped if the kernel lets us, else as the target's root shows it, else ours. */
static void open_file(struct module *m, pid_t pid, uint64_t start, uint64_t end)
{
    struct text t = TEXT_INIT;
    text_format(&t, "/proc/%d/map_files/%llx-%llx", pid, (unsigned long long)start,
                (unsigned long long)end);
    m->fd = open_regular(t.data, m->build_id, m->build_id_len);
    if (lives_elsewhere(pid)) {
        text_clear(&t);
        text_format(&t, "/proc/%d/root", pid);
        m->root = memory_strdup(t.data);
        text_add(&t, m->path);
        if (m->fd < 0)
            m->fd = open_regular(t.data, m->build_id, m->build_id_len);
    }
    if (m->fd < 0)
        m->fd = open_regular(m->path, m->build_id, m->build_id_len);
    text_release(&t);
}

/* The kernel names a file by its path, a loader as it was asked for: /usr/lib/… and /lib/… . */
static struct module *same_file(const struct modules *all, const struct module *probe)
{
    struct stat st, other;
    if (probe->fd < 0 || fstat(probe->fd, &st) != 0)
        return NULL;
    for (size_t i = 0; i < all->list.len; i++) {
        struct module *m = all->list.data[i];
        if (m->fd >= 0 && m->build_id_len == probe->build_id_len &&
            !memcmp(m->build_id, probe->build_id, m->build_id_len) && fstat(m->fd, &other) == 0 &&
            st.st_dev == other.st_dev && st.st_ino == other.st_ino)
            return m;
    }
    return NULL;
}

static struct module *add_file(struct modules *all, pid_t pid, const char *path, uint64_t start,
                               uint64_t end, const uint8_t *build_id, size_t len)
{
    struct module probe = {.path = (char *)path, .fd = -1, .build_id_len = (uint8_t)len};
    if (len)
        memcpy(probe.build_id, build_id, len);
    open_file(&probe, pid, start, end);
    uint8_t own[ROWS_BUILD_ID_MAX];
    int n = !len && probe.fd >= 0 ? rows_read_build_id(probe.fd, own) : 0;
    if (n > 0 && n <= (int)sizeof probe.build_id) {
        memcpy(probe.build_id, own, (size_t)n);
        probe.build_id_len = (uint8_t)n;
    }
    struct module *m = same_file(all, &probe);
    if (m) {
        close(probe.fd);
        free(probe.root);
        return m;
    }
    m = add(all, CODE_ELF, path, probe.build_id, probe.build_id_len);
    m->fd = probe.fd;
    m->root = probe.root;
    if (m->fd >= 0)
        read_segments(m);
    return m;
}

/* Anonymous memory that is executed: a just-in-time compiler's code, one module a process. */
static struct module *add_jit(struct modules *all, pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", pid);
    struct module *m = add(all, CODE_JIT, path, NULL, 0);
    m->pid = pid;
    return m;
}

/* A just-in-time compiler maps its jitdump file to tell where it is; no code runs from there. */
static bool is_jitdump(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && text_starts(slash, "/jit-") && text_ends(path, ".dump");
}

struct module *modules_find(struct modules *all, pid_t pid, const char *path, uint64_t start,
                            uint64_t end, const uint8_t *build_id, size_t len)
{
    if (is_jitdump(path)) {
        struct module *jit = modules_find(all, pid, "", start, end, NULL, 0);
        free(jit->dump);
        jit->dump = memory_strdup(path);
        return jit;
    }
    bool vdso = !strcmp(path, "[vdso]");
    bool file = path[0] == '/' && path[1] != '/' && !text_starts(path, "/dev/zero") &&
                !text_starts(path, "/memfd:") && !text_starts(path, "/SYSV");
    if (len > 20)
        len = 0;
    uint64_t a = vdso ? 1 : file ? hash_bytes(path, strlen(path)) | 2 : 3;
    uint64_t b = file ? (len ? hash_bytes(build_id, len) : 0) : vdso ? 0 : (uint64_t)pid;
    uint64_t *known = map_get(&all->index, a, b);
    if (known)
        return all->list.data[*known];
    struct module *m = vdso   ? add(all, CODE_VDSO, "[vdso]", NULL, 0)
                       : file ? add_file(all, pid, path, start, end, build_id, len)
                              : add_jit(all, pid);
    map_put(&all->index, a, b, m->place, NULL);
    return m;
}

uint64_t module_bias(const struct module *m, uint64_t start, uint64_t offset)
{
    if (m->kind == CODE_JIT || m->kind == CODE_UNKNOWN)
        return 0;
    for (size_t i = 0; i < m->segments.len; i++) {
        const struct segment *s = &m->segments.data[i];
        /* Mappings begin on a page, segments anywhere in it. */
        uint64_t page = s->offset & ~(uint64_t)4095;
        if (offset >= page && offset < s->offset + s->size)
            return start - (offset - s->offset + s->vaddr);
    }
    return start - offset;
}

const struct rows *module_rows(struct modules *all, struct module *m)
{
    if (!m->rows_tried) {
        m->rows_tried = true;
        const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
        if (m->kind == CODE_VDSO && vdso)
            rows_read_memory(vdso, VDSO_BYTES_MAX, &m->rows);
        else if (m->kind == CODE_ELF && m->fd >= 0)
            rows_open(m->fd, all->cache, &m->rows);
        if (all->pack && m->build_id_len)
            rows_pack_add(all->pack, m->build_id, m->build_id_len, &m->rows);
    }
    return m->rows.count ? &m->rows : NULL;
}
