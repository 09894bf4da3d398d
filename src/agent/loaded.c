/*
 * Asks the loader what is loaded. Everything that needs the module's memory (program headers, the
 * build-id note) is copied inside dl_iterate_phdr's callback, where nobody can unload it; the rows
 * are then made from the file, which cannot vanish under us.
 */
#include "agent/modules_internal.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "agent/arch.h"
#include "agent/publish.h"
#include "unwind/pack.h"

struct listing {
    struct agent_module *out;
    size_t max, used, total;
    bool unchanged, asked;
};

static uint32_t rpath_seen;
const struct rows_pack *agent_pack;

static uint32_t path_copy(char *to, const char *from)
{
    size_t len = strlen(from);
    if (len >= SEGMENT_PATH)
        return 0;
    memcpy(to, from, len + 1);
    return (uint32_t)len;
}

/* A relative name holds only where the program was when it loaded it: now, most likely. */
static uint32_t path_absolute(char *to, const char *name)
{
    char link[SEGMENT_PATH];
    if (name[0] == '/')
        return path_copy(to, name);
    long len = raw3(SYS_readlink, "/proc/self/cwd", link, sizeof link - 1);
    size_t rest = strlen(name);
    if (len <= 0 || (size_t)len + 1 + rest >= SEGMENT_PATH)
        return 0;
    memcpy(to, link, (size_t)len);
    to[len] = '/';
    memcpy(to + len + 1, name, rest + 1);
    return (uint32_t)((size_t)len + 1 + rest);
}

static void build_id_from_note(struct agent_module *m, const uint8_t *note, size_t size)
{
    while (size >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) n;
        memcpy(&n, note, sizeof n);
        size_t name = (n.n_namesz + 3u) & ~3ul, desc = (n.n_descsz + 3u) & ~3ul;
        if (name > size - sizeof n || desc > size - sizeof n - name)
            return;
        const uint8_t *at = note + sizeof n;
        if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && memcmp(at, "GNU", 4) == 0) {
            m->build_id_len = n.n_descsz < SEGMENT_BUILD_ID ? n.n_descsz : SEGMENT_BUILD_ID;
            memcpy(m->build_id, at + name, m->build_id_len);
            return;
        }
        note = at + name + desc;
        size -= sizeof n + name + desc;
    }
}

static bool has_rpath(const ElfW(Dyn) * d, size_t size)
{
    for (size_t i = 0; i < size / sizeof *d && d[i].d_tag != DT_NULL; i++)
        if (d[i].d_tag == DT_RPATH)
            return true;
    return false;
}

static void describe(struct agent_module *m, const struct dl_phdr_info *info)
{
    const char *name = info->dlpi_name ? info->dlpi_name : "";
    uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
    m->bias = info->dlpi_addr;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_NOTE && !m->build_id_len)
            build_id_from_note(m, (const uint8_t *)(m->bias + p->p_vaddr), p->p_memsz);
        if (p->p_type == PT_LOAD && vdso && p->p_offset == 0 && m->bias + p->p_vaddr == vdso)
            m->vdso = true;
    }
    if (m->vdso) {
        m->path_len = path_copy(m->path, "[vdso]");
    } else if (name[0] == 0) {
        m->self = true;
        m->path_len = path_copy(m->path, agent_settings.exe);
    } else {
        m->path_len = path_absolute(m->path, name);
    }
}

static int on_loaded(struct dl_phdr_info *info, size_t size, void *context)
{
    struct listing *l = context;
    if (!l->asked && size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs) {
        /* Kept where a fork wipes it: the list may have been half written when that came. */
        struct agent_process *p = agent_process;
        l->asked = true;
        l->unchanged = info->dlpi_adds == p->loads && info->dlpi_subs == p->unloads;
        p->loads = info->dlpi_adds;
        p->unloads = info->dlpi_subs;
        if (l->unchanged)
            return 1;
    }
    struct agent_module *first = NULL;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_DYNAMIC &&
            has_rpath((const ElfW(Dyn) *)(info->dlpi_addr + p->p_vaddr), p->p_memsz))
            rpath_seen = 1;
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
            continue;
        l->total++;
        if (l->used == l->max)
            continue;
        struct agent_module *m = &l->out[l->used++];
        if (first) {
            *m = *first;
        } else {
            memset(m, 0, sizeof *m);
            describe(m, info);
            first = m;
        }
        uint64_t low = p->p_vaddr & ~4095ull;
        m->start = m->bias + low;
        m->end = (m->bias + p->p_vaddr + p->p_memsz + 4095) & ~4095ull;
        m->offset = p->p_offset & ~4095ull;
    }
    return 0;
}

bool loaded_has_rpath(void)
{
    return rpath_seen;
}

int loaded_list(struct agent_module *out, size_t max, size_t *total)
{
    struct listing l = {.out = out, .max = max};
    dl_iterate_phdr(on_loaded, &l);
    *total = l.total;
    return l.unchanged ? -1 : (int)l.used;
}

static int open_file(const struct agent_module *m)
{
    const char *path = m->self ? "/proc/self/exe" : m->path;
    return (int)raw4(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
}

/* The file may have been replaced since it was loaded; then its rows are another program's. */
static bool same_build(const struct agent_module *m, int fd)
{
    uint8_t id[ROWS_BUILD_ID_MAX];
    int len = rows_read_build_id(fd, id);
    if (!m->build_id_len)
        return len <= 0;
    return len >= (int)m->build_id_len && memcmp(id, m->build_id, m->build_id_len) == 0;
}

static bool is_unlimited(int resource)
{
    struct rlimit limit;
    return raw4(SYS_prlimit64, 0, resource, NULL, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY;
}

/* The collector's rows, mapped at the first look and kept: children of a fork have them too. NULL
 * where they are out of reach. */
static const struct rows_pack *pack_of_session(void)
{
    static bool tried;
    if (tried || !agent_settings.pack[0] || !is_unlimited(RLIMIT_AS))
        return agent_pack; /* where addresses are few, they are the program's */
    tried = true;
    void *at = publish_map_sealed(agent_settings.pack, ROWS_PACK_BYTES, PROT_READ);
    if (at && rows_pack_is(at)) {
        raw3(SYS_madvise, at, ROWS_PACK_BYTES, MADV_DONTDUMP);
        agent_pack = at;
    }
    return agent_pack;
}

void loaded_rows(struct agent_module *m)
{
    if (m->rows_tried)
        return;
    m->rows_tried = true;
    if (m->vdso) {
        rows_read_memory((const void *)m->start, m->end - m->start, &m->rows);
        return;
    }
    const struct rows_pack *pack = pack_of_session();
    if (pack && m->build_id_len &&
        rows_pack_find(pack, m->build_id, m->build_id_len, &m->rows) == 0)
        return;
    const char *cache = agent_settings.rows[0] ? agent_settings.rows : NULL;
    if (cache && m->build_id_len &&
        rows_cache_load(cache, m->build_id, m->build_id_len, &m->rows) == 0)
        return; /* the usual case, without a look at the file */
    int fd = m->path_len || m->self ? open_file(m) : -1;
    if (fd < 0)
        return;
    /* Writing past RLIMIT_FSIZE raises SIGXFSZ, which is the program's death. */
    if (same_build(m, fd))
        rows_open(fd, is_unlimited(RLIMIT_FSIZE) ? cache : NULL, &m->rows);
    raw1(SYS_close, fd);
}

void loaded_file_id(const struct agent_module *m, uint64_t id[4])
{
    struct stat st;
    memset(id, 0, 4 * sizeof *id);
    int fd = m->path_len && !m->vdso ? open_file(m) : -1;
    if (fd < 0)
        return;
    if (raw2(SYS_fstat, fd, &st) == 0) {
        id[0] = st.st_dev;
        id[1] = st.st_ino;
        id[2] = (uint64_t)st.st_size;
        id[3] = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
    }
    raw1(SYS_close, fd);
}
