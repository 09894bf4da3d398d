/* Starting, stopping and walking other processes; see process.h. */
#include "process.h"

#include <assert.h>
#include <dirent.h>
#include <elf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t process_start(const char *const argv[])
{
    pid_t pid = fork();
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(null, 1);
    dup2(null, 2);
    execv(argv[0], (char *const *)argv);
    _exit(127);
}

void process_end(pid_t pid)
{
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, __WALL) > 0)
        ;
}

static size_t list_threads(pid_t pid, pid_t *tid)
{
    char path[64];
    size_t count = 0;
    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    DIR *dir = opendir(path);
    for (struct dirent *d; dir && (d = readdir(dir)) && count < PROCESS_THREADS;) {
        if (d->d_name[0] != '.')
            tid[count++] = (pid_t)strtol(d->d_name, NULL, 10);
    }
    if (dir)
        closedir(dir);
    return count;
}

size_t process_stop(pid_t pid, pid_t tid[PROCESS_THREADS])
{
    pid_t all[PROCESS_THREADS];
    size_t listed = list_threads(pid, all), count = 0;
    for (size_t i = 0; i < listed; i++) {
        int status;
        if (ptrace(PTRACE_SEIZE, all[i], 0, 0) || ptrace(PTRACE_INTERRUPT, all[i], 0, 0))
            continue;
        if (waitpid(all[i], &status, __WALL) == all[i] && WIFSTOPPED(status))
            tid[count++] = all[i];
    }
    return count;
}

void process_resume(const pid_t *tid, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ptrace(PTRACE_DETACH, tid[i], 0, 0);
}

/* The rows of a file, made once. */
static const struct rows *rows_of(const char *path, int fd)
{
    static struct {
        char path[512];
        struct rows rows;
        bool ok;
    } known[256];
    static size_t count;
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(known[i].path, path))
            return known[i].ok ? &known[i].rows : NULL;
    }
    assert(count < 256);
    snprintf(known[count].path, sizeof(known[count].path), "%s", path);
    if (!strcmp(path, "[vdso]"))
        known[count].ok =
            rows_read_memory((void *)getauxval(AT_SYSINFO_EHDR), 8192, &known[count].rows) == 0;
    else
        known[count].ok = rows_read_elf(fd, &known[count].rows) == 0;
    count++;
    return known[count - 1].ok ? &known[count - 1].rows : NULL;
}

static void add_mapping(struct unwind_map *map, struct unwind_module m, uint64_t offset,
                        const char *path)
{
    int fd = path[0] == '/' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (!strcmp(path, "[vdso]"))
        m.bias = m.start;
    if (!strcmp(path, "[vdso]") || (fd >= 0 && !rows_read_bias(fd, m.start, offset, &m.bias)))
        m.rows = rows_of(path, fd);
    if (fd >= 0)
        close(fd);
    assert(unwind_map_add(map, &m) == 0);
}

void process_map(pid_t pid, struct unwind_map *map)
{
    char name[64], line[1024];
    snprintf(name, sizeof(name), "/proc/%d/maps", pid);
    FILE *f = fopen(name, "re");
    while (f && fgets(line, sizeof(line), f)) {
        struct unwind_module m = {0};
        unsigned long offset;
        char mode[8], path[512] = "";
        if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %511[^\n]", &m.start, &m.end, mode, &offset,
                   path) < 4)
            continue;
        if (mode[2] == 'x' && strcmp(path, "[vsyscall]"))
            add_mapping(map, m, offset, path);
    }
    if (f)
        fclose(f);
}

/* Reads what there is from `start`, up to `size`: a mapping's end cuts the read at a page. */
static size_t copy_stack(pid_t pid, uint64_t start, char *to, size_t size)
{
    for (size_t want = size; want; want = (want - 1) / 4096 * 4096) {
        struct iovec local = {to, want}, remote = {(void *)start, want};
        ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);
        if (n > 0)
            return (size_t)n;
    }
    return 0;
}

/* For what lies outside the copy: the other stack, when a handler runs on its own. */
static int read_word(void *ctx, uint64_t address, uint64_t *word)
{
    struct iovec local = {word, sizeof(*word)}, remote = {(void *)address, sizeof(*word)};
    return process_vm_readv(*(const pid_t *)ctx, &local, 1, &remote, 1, 0) != sizeof(*word);
}

void process_walk(const struct unwind_map *map, pid_t pid, pid_t tid, size_t window,
                  struct process_stack *out)
{
    struct user_regs_struct user;
    struct iovec iov = {&user, sizeof(user)};
    struct unwind_regs regs;
    memset(out, 0, sizeof(*out));
    if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &iov) ||
        unwind_regs_from_prstatus(&regs, &user, iov.iov_len))
        return;
    char *copy = malloc(window);
    const struct unwind_memory memory = {.start = regs.value[UNWIND_SP],
                                         .data = copy,
                                         .size =
                                             copy_stack(pid, regs.value[UNWIND_SP], copy, window),
                                         .read = read_word,
                                         .ctx = &pid};
    out->count = unwind_walk(map, &regs, &memory, out->address, PROCESS_DEPTH, &out->end);
    free(copy);
}

static int on_frame(Dwfl_Frame *frame, void *ctx)
{
    struct process_stack *out = ctx;
    Dwarf_Addr pc;
    if (out->count == PROCESS_DEPTH || !dwfl_frame_pc(frame, &pc, NULL))
        return DWARF_CB_ABORT;
    out->address[out->count++] = pc;
    return DWARF_CB_OK;
}

static int no_debug_info(Dwfl_Module *m, void **user, const char *name, Dwarf_Addr base,
                         const char *file, const char *link, GElf_Word crc, char **found)
{
    (void)m, (void)user, (void)name, (void)base, (void)file, (void)link, (void)crc, (void)found;
    return -1;
}

struct process_libdw *process_libdw_attach(pid_t pid)
{
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf,
                                             .find_debuginfo = no_debug_info};
    Dwfl *dwfl = dwfl_begin(&callbacks);
    assert(dwfl && dwfl_linux_proc_report(dwfl, pid) == 0);
    assert(dwfl_report_end(dwfl, NULL, NULL) == 0);
    assert(dwfl_linux_proc_attach(dwfl, pid, true) == 0);
    return (struct process_libdw *)dwfl;
}

void process_libdw_walk(struct process_libdw *libdw, pid_t tid, struct process_stack *out)
{
    memset(out, 0, sizeof(*out));
    dwfl_getthread_frames((Dwfl *)libdw, tid, on_frame, out);
}

void process_libdw_detach(struct process_libdw *libdw)
{
    dwfl_end((Dwfl *)libdw);
}

bool process_stack_agrees(const struct process_stack *ours, const struct process_stack *libdw)
{
    bool further = ours->end.reason == UNWIND_COMPLETE && ours->count > libdw->count;
    return (ours->count == libdw->count || further) &&
           !memcmp(ours->address, libdw->address, libdw->count * sizeof(uint64_t));
}
