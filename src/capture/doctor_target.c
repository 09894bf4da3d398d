/* One program's state, from its ELF file, and one process's; see doctor.h. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/text.h"
#include "capture/doctor_internal.h"
#include "capture/launch.h"
#include "capture/proc.h"
#include "symbol/symbol.h"

#define HEADERS_MAX 4096
#define NAMES_MAX ((size_t)1 << 20)

/* What the file's tables tell. */
struct program {
    bool interpreted, dynamic, has_unwind, has_symbols, has_debug, has_debug_link;
    char build_id[48]; /* in hexadecimal */
};

static bool take_notes(int fd, const Elf64_Phdr *h, struct program *p)
{
    uint8_t bytes[1024];
    size_t size = h->p_filesz < sizeof bytes ? h->p_filesz : sizeof bytes;
    if (io_pread(fd, bytes, size, h->p_offset) != (ssize_t)size)
        return false;
    for (size_t at = 0; at + 12 <= size;) {
        uint32_t n[3];
        memcpy(n, bytes + at, sizeof n);
        size_t name = at + 12, data = name + ((n[0] + 3u) & ~3u);
        if (n[0] > size || n[1] > size || data + n[1] > size)
            break;
        if (n[2] == NT_GNU_BUILD_ID && n[0] == 4 && !memcmp(bytes + name, "GNU", 4))
            for (size_t i = 0; i < n[1] && i < 20; i++)
                snprintf(p->build_id + 2 * i, 3, "%02x", bytes[data + i]);
        at = data + ((n[1] + 3u) & ~3u);
    }
    return true;
}

static void take_segments(int fd, const Elf64_Ehdr *e, struct program *p)
{
    for (unsigned i = 0; i < e->e_phnum && i < HEADERS_MAX; i++) {
        Elf64_Phdr h;
        if (io_pread(fd, &h, sizeof h, e->e_phoff + (uint64_t)i * sizeof h) != (ssize_t)sizeof h)
            return;
        p->interpreted |= h.p_type == PT_INTERP;
        p->dynamic |= h.p_type == PT_DYNAMIC;
        p->has_unwind |= h.p_type == PT_GNU_EH_FRAME;
        if (h.p_type == PT_NOTE)
            take_notes(fd, &h, p);
    }
}

static void take_sections(int fd, const Elf64_Ehdr *e, struct program *p)
{
    Elf64_Shdr names, h;
    uint64_t at = e->e_shoff + (uint64_t)e->e_shstrndx * sizeof names;
    if (!e->e_shoff || io_pread(fd, &names, sizeof names, at) != (ssize_t)sizeof names ||
        names.sh_size > NAMES_MAX)
        return;
    char *text = memory_alloc(names.sh_size + 1);
    if (io_pread(fd, text, names.sh_size, names.sh_offset) == (ssize_t)names.sh_size)
        for (unsigned i = 0; i < e->e_shnum && i < HEADERS_MAX; i++) {
            if (io_pread(fd, &h, sizeof h, e->e_shoff + (uint64_t)i * sizeof h) !=
                    (ssize_t)sizeof h ||
                h.sh_name >= names.sh_size)
                break;
            const char *name = text + h.sh_name;
            p->has_symbols |= !strcmp(name, ".symtab");
            p->has_debug |= !strcmp(name, ".debug_info") || !strcmp(name, ".zdebug_info");
            p->has_debug_link |= !strcmp(name, ".gnu_debuglink");
            p->has_unwind |= !strcmp(name, ".eh_frame");
        }
    free(text);
}

static int read_program(const char *path, struct program *p, struct stat *st, struct error *err)
{
    Elf64_Ehdr e;
    *p = (struct program){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, st) < 0) {
        int rc = error_errno(err, errno == ENOENT ? FAULT_MISSING : FAULT_SYSTEM, "cannot open %s",
                             path);
        if (fd >= 0)
            close(fd);
        return rc;
    }
    int rc = 0;
    if (!S_ISREG(st->st_mode))
        rc = error_set(err, FAULT_INPUT, "%s is not a file", path);
    else if (io_pread(fd, &e, sizeof e, 0) != (ssize_t)sizeof e ||
             memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || e.e_ident[EI_CLASS] != ELFCLASS64 ||
             e.e_phentsize != sizeof(Elf64_Phdr) ||
             (e.e_shnum && e.e_shentsize != sizeof(Elf64_Shdr)))
        rc = error_set(err, FAULT_INPUT,
                       "%s is not a program of 64 bits (a script? then ask about its interpreter)",
                       path);
    if (!rc) {
        take_segments(fd, &e, p);
        take_sections(fd, &e, p);
    }
    close(fd);
    return rc;
}

/* The separate file where distributions put it. */
static bool has_debug_file(const struct program *p)
{
    char path[160];
    snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%.2s/%s.debug", p->build_id,
             strlen(p->build_id) > 2 ? p->build_id + 2 : "");
    return *p->build_id && access(path, R_OK) == 0;
}

static void look_at_names(struct doctor *d, const struct program *p)
{
    if (p->has_debug || has_debug_file(p))
        doctor_add(d, "debug information", DOCTOR_WELL, "", "", "%s",
                   p->has_debug ? "in the file: lines and inlined functions are known"
                                : "in a file of its own");
    else
        doctor_add(d, "debug information", DOCTOR_LIMITED,
                   p->has_symbols ? "functions by name, without lines"
                                  : "exported functions by name, others by address",
                   "compile with -g, install the package's -dbgsym, or --debuginfod",
                   p->has_symbols ? "none" : "none, and the symbol table is stripped");
    if (*p->build_id)
        doctor_add(d, "build-id", DOCTOR_WELL, "", "", "%s", p->build_id);
    else
        doctor_add(d, "build-id", DOCTOR_LIMITED, "finds debug files by path only",
                   "link with -Wl,--build-id", "none");
    if (p->has_unwind)
        doctor_add(d, "stacks", DOCTOR_WELL, "", "",
                   "unwind tables are there: stacks are whole, with frame pointers or without");
    else
        doctor_add(d, "stacks", DOCTOR_LIMITED, "follows frame pointers, where there are some",
                   "compile with -fasynchronous-unwind-tables or -fno-omit-frame-pointer",
                   "no unwind tables");
}

/* sonde does without them; others do not, and frame pointers are what BPF tools follow. */
static void look_at_frame_pointers(struct doctor *d, const struct program *p, const char *path)
{
    size_t functions, with = symbol_frame_pointers(path, &functions);
    if (!functions)
        doctor_add(d, "frame pointers", DOCTOR_LIMITED, "tries them where nothing else is there",
                   "", "the program does not tell where its functions begin");
    else if (2 * with > functions)
        doctor_add(d, "frame pointers", DOCTOR_WELL, "", "", "%zu of %zu functions set them", with,
                   functions);
    else
        doctor_add(d, "frame pointers", p->has_unwind ? DOCTOR_WELL : DOCTOR_LIMITED, "", "",
                   "%zu of %zu functions set them%s", with, functions,
                   p->has_unwind ? ": not needed, the unwind tables are used" : "");
}

static int examine_file(struct doctor *d, const char *name, char *path, size_t size,
                        struct error *err)
{
    struct program p;
    struct stat st;
    snprintf(path, size, "%s", name);
    if (!strchr(name, '/') && access(name, F_OK) && !launch_find(name, path, size))
        return error_set(err, FAULT_MISSING, "there is no program '%s'", name);
    int rc = read_program(path, &p, &st, err);
    if (rc)
        return rc;
    doctor_add(d, "program", DOCTOR_WELL, "", "", "%s", path);
    look_at_names(d, &p);
    look_at_frame_pointers(d, &p, path);
    if (p.interpreted || p.dynamic)
        doctor_add(d, "linking", DOCTOR_WELL, "", "", "dynamic: heap and traces can be recorded");
    else
        doctor_add(d, "linking", DOCTOR_LIMITED,
                   "CPU and blocked time all the same; neither heap nor traces",
                   "link it dynamically", "static: no library can be put into it");
    if (st.st_mode & (S_ISUID | S_ISGID))
        doctor_add(d, "setuid", DOCTOR_LIMITED,
                   "the loader drops the agent: time only, and only for root",
                   "run it as its owner, or attach as root", "it changes its user");
    else
        doctor_add(d, "setuid", DOCTOR_WELL, "", "", "no");
    return 0;
}

int doctor_binary(struct doctor *d, const char *name, struct error *err)
{
    char path[4096];
    int rc = examine_file(d, name, path, sizeof path, err);
    if (!rc && !doctor_python_file(d, path) && launch_is_python(path))
        doctor_add(d, "Python", DOCTOR_WELL, "", "",
                   "its interpreter is in a library: `sonde doctor PID` tells its version");
    return rc;
}

int doctor_process(struct doctor *d, pid_t pid, struct error *err)
{
    char exe[64], path[4096], file[4096], arguments[512];
    char state = proc_state(pid);
    if (!state || state == 'Z' || state == 'X')
        return error_set(err, FAULT_MISSING, "there is no process %d%s", pid,
                         state ? " any more: it waits for its parent (a zombie)" : "");
    if (!proc_arguments(pid, arguments, sizeof arguments))
        snprintf(arguments, sizeof arguments, "a kernel thread, or hidden from this user");
    doctor_add(d, "process", DOCTOR_WELL, "", "", "%d: %s", pid, arguments);
    pid_t tracer = proc_tracer(pid);
    if (tracer)
        doctor_add(d, "traced", DOCTOR_LIMITED, "samples it all the same", "end the debugger",
                   "process %d traces it", tracer);
    if (state == 'T' || state == 't')
        doctor_add(d, "running", DOCTOR_LIMITED, "records nothing until it goes on",
                   "kill -CONT it", "it is stopped");
    if (!proc_exe(pid, path, sizeof path)) {
        doctor_add(d, "its files", DOCTOR_MISSING, "counts and samples what the kernel shows",
                   "run as root, or as its user", "this user may not look at the process");
        return 0;
    }
    snprintf(exe, sizeof exe, "/proc/%d/exe", pid);
    int rc = examine_file(d, text_ends(path, " (deleted)") ? exe : path, file, sizeof file, err);
    if (!rc)
        doctor_python_process(d, pid);
    return rc;
}
