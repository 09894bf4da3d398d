/* Bringing the agent into a running process; see inject.h. */
#include "capture/inject.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "capture/borrow.h"
#include "capture/elf_names.h"
#include "capture/proc.h"
#include "capture/session_internal.h"
#include "unwind/walk.h"

#define PATIENCE (5000 * 1000000ull) /* ns to find a safe moment, and for a call to be made */
#define ROUND 5000                   /* us between two looks */
#define DEPTH 256
#define ROOM (128u << 10) /* bytes of stack that a call may need */
#define LOADER_FLAGS 2    /* RTLD_NOW, and nobody else sees its names */

/* What an injection needs to know of the target's code. */
struct place {
    struct session *session;
    pid_t pid;
    const char *library;
    struct space *space;              /* ours */
    uint64_t loader, restorer, begin; /* dlopen, rt_sigreturn, the agent's door; 0: not there */
    uint64_t stack_low;               /* of the mapping around `sp` */
    uint64_t sp;
};

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_libc(const char *path)
{
    return !strncmp(name_of(path), "libc.so", 7) || !strncmp(name_of(path), "libc-2.", 7);
}

/* Where a thread may hold a lock that our call would want. */
static bool is_locked_code(const char *path)
{
    static const char *const starts[] = {"ld-linux",    "ld-2.",       "libjemalloc",
                                         "libtcmalloc", "libmimalloc", "libsonde"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (!strncmp(name_of(path), starts[i], strlen(starts[i])))
            return true;
    return false;
}

/* The bytes of "mov $15, %rax; syscall" in libc: its return from signal handlers. */
static uint64_t find_restorer(pid_t pid, uint64_t start, uint64_t end)
{
    static const uint8_t code[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
    uint8_t bytes[65536];
    for (uint64_t at = start; at < end; at += sizeof bytes - 16) {
        struct iovec to = {bytes, sizeof bytes};
        struct iovec from = {(void *)(uintptr_t)at,
                             end - at < sizeof bytes ? end - at : sizeof bytes};
        ssize_t n = process_vm_readv(pid, &to, 1, &from, 1, 0);
        const uint8_t *found = n > 0 ? memmem(bytes, (size_t)n, code, sizeof code) : NULL;
        if (found)
            return at + (uint64_t)(found - bytes);
    }
    return 0;
}

static uint64_t find_name(const struct module *m, uint64_t bias, const char *name)
{
    struct elf_names *names = elf_names_read(m, false);
    uint64_t address = 0, size;
    bool found = names && elf_names_find(names, name, &address, &size);
    elf_names_free(names);
    return found ? bias + address : 0;
}

static void on_mapping(void *context, const struct proc_mapping *m)
{
    struct place *p = context;
    struct session *s = p->session;
    if (!m->path[0])
        return;
    struct module *module = modules_find(&s->modules, p->pid, m->path, m->start, m->end, NULL, 0);
    struct space_mapping map = {.start = m->start,
                                .end = m->end,
                                .bias = module_bias(module, m->start, m->offset),
                                .module = module};
    space_map(p->space, &map, module_rows(&s->modules, module));
    if (is_libc(m->path) && !p->loader) {
        p->loader = find_name(module, map.bias, "dlopen");
        p->restorer = find_restorer(p->pid, m->start, m->end);
    }
    if (!strcmp(m->path, p->library) && !p->begin)
        p->begin = find_name(module, map.bias, "sonde_attach_begin");
}

static int place_look(struct place *p, struct error *err)
{
    space_drop(p->space);
    p->space = space_new();
    p->loader = p->restorer = p->begin = 0;
    int rc = proc_each_mapping(p->pid, on_mapping, p, err);
    if (!rc && (!p->loader || !p->restorer))
        return error_set(err, FAULT_SYSTEM,
                         "the heap of process %d cannot be reached: it has no glibc of 2.34 or "
                         "later in it",
                         p->pid);
    return rc;
}

static int read_word(void *context, uint64_t address, uint64_t *word)
{
    const struct place *p = context;
    struct iovec to = {word, sizeof *word}, from = {(void *)(uintptr_t)address, sizeof *word};
    return process_vm_readv(p->pid, &to, 1, &from, 1, 0) == sizeof *word ? 0 : -1;
}

/* A thread in a wait has libc's frames on top of the program's; one that runs must be in the
 * program's code all the way, up to where libc started it. */
static bool stack_is_safe(struct place *p, const struct borrowed *b)
{
    struct unwind_regs regs;
    struct unwind_end end = {0};
    uint64_t address[DEPTH];
    if (unwind_regs_from_prstatus(&regs, &b->regs, sizeof b->regs) != 0)
        return false;
    struct unwind_memory memory = {.read = read_word, .ctx = p};
    size_t count = unwind_walk(&p->space->unwind, &regs, &memory, address, DEPTH, &end);
    if (end.reason != UNWIND_COMPLETE || end.interrupted)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct range *m = space_find(p->space, address[i] - (i > 0));
        const struct module *module = m ? m->owner : NULL;
        bool outermost = i + 3 >= count;
        if (!m || is_locked_code(module->path) ||
            (borrow_runs(b) && is_libc(module->path) && (i == 0 || !outermost)))
            return false;
    }
    return count > 0;
}

/* "start-end …" lines of /proc/PID/maps: how far down the stack is mapped. */
static bool has_room(const struct borrowed *b)
{
    char path[64], line[512];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/maps", b->pid);
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        char *at;
        uint64_t low = strtoull(line, &at, 16), high = *at == '-' ? strtoull(at + 1, NULL, 16) : 0;
        if (b->regs.rsp < low || b->regs.rsp >= high)
            continue;
        found = strstr(line, "[stack]") || b->regs.rsp - low > ROOM;
        break;
    }
    if (f)
        fclose(f);
    return found;
}

/* Tries the threads in turn until one is where it can be borrowed. *only: that one, if not 0. */
static int call(struct place *p, uint64_t function, const char *text, uint64_t second, pid_t *only,
                struct error *err)
{
    uint64_t end = clock_now() + PATIENCE;
    do {
        struct pids threads = {0};
        proc_threads(p->pid, &threads);
        for (size_t i = 0; i < threads.len; i++) {
            struct borrowed b;
            if ((*only && threads.data[i] != *only) ||
                !borrow_stop(&b, p->pid, threads.data[i], err))
                continue;
            if ((borrow_waits(&b) || borrow_runs(&b)) && stack_is_safe(p, &b) && has_room(&b)) {
                *only = b.tid;
                vector_release(&threads);
                return borrow_call(&b, function, text, second, p->restorer, err);
            }
            borrow_release(&b);
        }
        vector_release(&threads);
        if (err->fault)
            return err->fault;
        usleep(ROUND);
    } while (clock_now() < end && proc_state(p->pid));
    return error_set(
        err, FAULT_SYSTEM,
        "no thread of process %d was in a place where it can be made to load the "
        "agent: all were inside libc, the loader, an allocator, or code without unwind "
        "tables; try again, or start it with `sonde run --heap`",
        p->pid);
}

static uint64_t status_field(pid_t pid, const char *name)
{
    char path[64], text[8192];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *at = strstr(text, name);
    return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

/* The library must be the same file for both of us. */
static bool sees_library(pid_t pid, const char *library)
{
    char path[PATH_MAX + 64];
    struct stat ours, theirs;
    snprintf(path, sizeof path, "/proc/%d/root%s", pid, library);
    return stat(library, &ours) == 0 && stat(path, &theirs) == 0 && ours.st_ino == theirs.st_ino &&
           ours.st_dev == theirs.st_dev;
}

static int check(pid_t pid, const char *library, struct error *err)
{
    char state = proc_state(pid);
    pid_t tracer = proc_tracer(pid);
    if (tracer)
        return error_set(err, FAULT_SYSTEM,
                         "the heap of process %d cannot be reached: process %d traces it", pid,
                         tracer);
    if (state == 'T' || state == 't')
        return error_set(
            err, FAULT_SYSTEM,
            "the heap of process %d cannot be reached while it is stopped; 'kill -CONT "
            "%d' lets it go on",
            pid, pid);
    if (status_field(pid, "\nSeccomp:"))
        return error_set(err, FAULT_SYSTEM,
                         "the heap of process %d cannot be reached: it lives under a seccomp "
                         "filter, which may end it for what the agent does",
                         pid);
    if (!sees_library(pid, library))
        return error_set(err, FAULT_SYSTEM,
                         "the heap of process %d cannot be reached: it does not see %s (another "
                         "root folder, or a container)",
                         pid, library);
    return 0;
}

int inject_agent(struct session *s, pid_t pid, const char *library, const char *settings,
                 struct error *err)
{
    struct place p = {.session = s, .pid = pid, .library = library};
    pid_t tid = 0;
    int rc = check(pid, library, err);
    if (!rc)
        rc = place_look(&p, err);
    if (!rc && !p.begin) {
        rc = call(&p, p.loader, library, LOADER_FLAGS, &tid, err);
        for (uint64_t end = clock_now() + PATIENCE; !rc && !p.begin && clock_now() < end;) {
            usleep(ROUND);
            rc = place_look(&p, err);
        }
        if (!rc && !p.begin)
            rc = error_set(err, FAULT_SYSTEM, "process %d did not load %s", pid, library);
    }
    /* The same thread: it is safe again only when it has come back from the loader. */
    if (!rc)
        rc = call(&p, p.begin, settings, 0, &tid, err);
    space_drop(p.space);
    return rc;
}
