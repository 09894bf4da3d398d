/* Which Python a program or process is, and whether its frames can be read; see doctor.h. */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/text.h"
#include "capture/doctor_internal.h"
#include "capture/elf_names.h"
#include "cpython/cpython.h"

#define MAPS_MAX ((size_t)16 << 20)
#define SEGMENTS_MAX 64

/* An ELF file: names, and what its segments hold at the addresses that it is linked for. */
struct file {
    int fd;
    struct elf_names *names;
    uint64_t bias; /* where the process has it */
    Elf64_Phdr segment[SEGMENTS_MAX];
    size_t segments;
    bool fixed; /* is where it is linked for */
};

static bool file_open(struct file *f, const char *path)
{
    Elf64_Ehdr e;
    *f = (struct file){.fd = open(path, O_RDONLY | O_CLOEXEC)};
    if (f->fd < 0)
        return false;
    if (io_pread(f->fd, &e, sizeof e, 0) != (ssize_t)sizeof e ||
        memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || e.e_phentsize != sizeof *f->segment)
        return false;
    f->fixed = e.e_type == ET_EXEC;
    for (; f->segments < SEGMENTS_MAX && f->segments < e.e_phnum; f->segments++)
        if (io_pread(f->fd, &f->segment[f->segments], sizeof *f->segment,
                     e.e_phoff + f->segments * sizeof *f->segment) != sizeof *f->segment)
            break;
    f->names = elf_names_read(&(struct module){.path = (char *)(uintptr_t)path, .fd = f->fd}, true);
    return f->names != NULL;
}

static void file_close(struct file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    elf_names_free(f->names);
}

/* As if the program were loaded: for versions, which stand in constant data. */
static size_t read_file(void *context, const struct cpython_piece *piece, size_t count)
{
    const struct file *f = context;
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        for (; k < f->segments; k++) {
            const Elf64_Phdr *p = &f->segment[k];
            if (p->p_type == PT_LOAD && piece[i].address >= p->p_vaddr &&
                piece[i].address - p->p_vaddr < p->p_filesz &&
                p->p_filesz - (piece[i].address - p->p_vaddr) >= piece[i].size)
                break;
        }
        if (k == f->segments ||
            io_pread(f->fd, piece[i].to, piece[i].size,
                     f->segment[k].p_offset + (piece[i].address - f->segment[k].p_vaddr)) !=
                (ssize_t)piece[i].size)
            return i;
    }
    return count;
}

static bool symbol(void *context, const char *name, uint64_t *address)
{
    const struct file *f = context;
    uint64_t size;
    if (!elf_names_find(f->names, name, address, &size))
        return false;
    *address += f->bias;
    return true;
}

static void tell(struct doctor *d, const struct cpython *py, int fault)
{
    char micro[8] = "";
    if (fault) {
        doctor_add(d, "Python", DOCTOR_LIMITED,
                   "shows the interpreter's own functions in the place of Python's",
                   "a CPython from 3.6 to 3.13, with its symbols", "its interpreter %s",
                   cpython_fault_text(fault));
        return;
    }
    if (py->micro != 255)
        snprintf(micro, sizeof micro, ".%u", py->micro);
    doctor_add(d, "Python", DOCTOR_WELL, "", "",
               "CPython %u.%u%s, with the layout of 3.%u.%u: Python functions and lines take the "
               "place of the interpreter's",
               py->major, py->minor, micro, py->layout.minor, py->layout.micro);
}

bool doctor_python_file(struct doctor *d, const char *path)
{
    struct file f;
    struct cpython py;
    int fault = CPYTHON_NOT_PYTHON;
    if (file_open(&f, path)) {
        struct cpython_memory memory = {.read = read_file, .ctx = &f};
        struct cpython_module module = {.path = path, .symbol = symbol, .ctx = &f};
        fault = cpython_open(&py, &module, &memory);
    }
    file_close(&f);
    if (fault != CPYTHON_NOT_PYTHON)
        tell(d, &py, fault);
    return fault != CPYTHON_NOT_PYTHON;
}

/* One file that the process has mapped at `base`. */
static bool look_at_mapping(struct doctor *d, pid_t pid, const char *path, uint64_t base)
{
    struct file f;
    struct cpython py;
    struct cpython_memory memory;
    char rooted[4200];
    int fault = CPYTHON_NOT_PYTHON;
    snprintf(rooted, sizeof rooted, "/proc/%d/root%s", pid, path);
    if (file_open(&f, rooted)) {
        struct cpython_module module = {.path = path, .symbol = symbol, .ctx = &f};
        f.bias = f.fixed ? 0 : base;
        cpython_memory_remote(&memory, pid, NULL);
        fault = cpython_open(&py, &module, &memory);
    }
    file_close(&f);
    if (fault != CPYTHON_NOT_PYTHON)
        tell(d, &py, fault);
    return fault != CPYTHON_NOT_PYTHON;
}

/* "55d0...-55d1... r--p 00000000 08:01 123   /usr/bin/python3.11": those at offset 0. */
bool doctor_python_process(struct doctor *d, pid_t pid)
{
    char path[64], *text, *rest;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    if (io_slurp(path, MAPS_MAX, &text, NULL, NULL))
        return false;
    rest = text;
    for (char *line; !found && (line = strsep(&rest, "\n"));) {
        uint64_t base = strtoull(line, NULL, 16);
        const char *file = strchr(line, '/'), *offset = strstr(line, " 00000000 ");
        if (!file || !offset || offset > file)
            continue;
        const char *name = strrchr(file, '/') + 1;
        if (text_starts(name, "python") || text_starts(name, "libpython"))
            found = look_at_mapping(d, pid, file, base);
    }
    free(text);
    return found;
}
