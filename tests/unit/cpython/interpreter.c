/* Finding, starting and opening interpreters; see interpreter.h. */
#include "interpreter.h"

#include <fcntl.h>
#include <gelf.h>
#include <glob.h>
#include <libelf.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void add_path(struct interpreter_list *list, const char *path)
{
    char real[4096];
    if (list->count == INTERPRETERS_MAX || access(path, X_OK) || !realpath(path, real) ||
        strlen(real) >= sizeof(list->path[0]))
        return;
    for (size_t i = 0; i < list->count; i++) {
        if (!strcmp(list->path[i], real))
            return;
    }
    snprintf(list->path[list->count++], sizeof(list->path[0]), "%s", real);
}

static void add_glob(struct interpreter_list *list, const char *pattern)
{
    glob_t found;
    if (glob(pattern, GLOB_TILDE, NULL, &found))
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        add_path(list, found.gl_pathv[i]);
    globfree(&found);
}

void interpreter_list(struct interpreter_list *list)
{
    list->count = 0;
    add_glob(list, "~/.pyenv/versions/3.*/bin/python3");
    add_glob(list, "/usr/bin/python3");
    add_glob(list, "/usr/local/bin/python3");
    const char *more = getenv("SONDE_TEST_PYTHONS");
    while (more && *more) {
        char path[512];
        size_t length = strcspn(more, ":");
        if (length < sizeof(path)) {
            snprintf(path, sizeof(path), "%.*s", (int)length, more);
            add_path(list, path);
        }
        more += length + (more[length] == ':');
    }
}

bool interpreter_symbol_size(const struct interpreter_module *module, const char *name,
                             uint64_t *address, uint64_t *size)
{
    Elf_Scn *section = NULL;
    while ((section = elf_nextscn(module->elf, section))) {
        GElf_Shdr head;
        if (!gelf_getshdr(section, &head) ||
            (head.sh_type != SHT_DYNSYM && head.sh_type != SHT_SYMTAB) || !head.sh_entsize)
            continue;
        Elf_Data *data = elf_getdata(section, NULL);
        for (size_t i = 0; data && i < head.sh_size / head.sh_entsize; i++) {
            GElf_Sym symbol;
            if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx == SHN_UNDEF)
                continue;
            const char *found = elf_strptr(module->elf, head.sh_link, symbol.st_name);
            if (found && !strcmp(found, name)) {
                *address = symbol.st_value + module->bias;
                *size = symbol.st_size;
                return true;
            }
        }
    }
    return false;
}

bool interpreter_symbol(void *ctx, const char *name, uint64_t *address)
{
    uint64_t size;
    return interpreter_symbol_size(ctx, name, address, &size);
}

bool interpreter_module_open(struct interpreter_module *module, const char *path, uint64_t bias)
{
    elf_version(EV_CURRENT);
    snprintf(module->path, sizeof(module->path), "%s", path);
    module->bias = bias;
    module->fd = open(path, O_RDONLY | O_CLOEXEC);
    module->elf = module->fd < 0 ? NULL : elf_begin(module->fd, ELF_C_READ_MMAP, NULL);
    return module->elf != NULL;
}

void interpreter_module_close(struct interpreter_module *module)
{
    elf_end(module->elf);
    if (module->fd >= 0)
        close(module->fd);
}

/* Executables that are not position-independent lie where they were linked. */
static uint64_t bias_of(const struct interpreter_module *module, uint64_t start)
{
    GElf_Ehdr head;
    return gelf_getehdr(module->elf, &head) && head.e_type == ET_EXEC ? 0 : start;
}

int interpreter_open(pid_t pid, struct cpython *py, const struct cpython_memory *memory,
                     struct interpreter_module *module)
{
    char name[64], line[1024], *path;
    int fault = CPYTHON_NOT_PYTHON;
    snprintf(name, sizeof(name), "/proc/%d/maps", pid);
    FILE *maps = fopen(name, "re");
    while (maps && fault == CPYTHON_NOT_PYTHON && fgets(line, sizeof(line), maps)) {
        line[strcspn(line, "\n")] = '\0';
        char *after;
        uint64_t start = strtoul(line, &after, 16);
        if (!strstr(line, " 00000000 ") || !(path = strchr(line, '/')) || !strstr(path, "python") ||
            strstr(path, "lib-dynload") || !interpreter_module_open(module, path, start))
            continue;
        module->bias = bias_of(module, start);
        const struct cpython_module found = {module->path, interpreter_symbol, module};
        fault = cpython_open(py, &found, memory);
        if (fault)
            interpreter_module_close(module);
    }
    if (maps)
        fclose(maps);
    return fault;
}

struct interpreter_run interpreter_start(const char *path, const char *script, const char *first,
                                         const char *second)
{
    struct interpreter_run run = {0};
    int out[2];
    if (pipe2(out, O_CLOEXEC))
        abort();
    run.pid = fork();
    if (!run.pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(out[1], 1);
        setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
        setenv("PYTHONIOENCODING", "utf-8", 1);
        unsetenv("LD_PRELOAD");
        execl(path, path, "-S", script, first, second, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    run.out = fdopen(out[0], "r");
    return run;
}

void interpreter_stop(struct interpreter_run *run)
{
    kill(run->pid, SIGKILL);
    waitpid(run->pid, NULL, 0);
    fclose(run->out);
}

bool interpreter_each(const char *folder, const char *script, const char *first, const char *second,
                      void (*check)(const char *path, struct interpreter_run *run))
{
    struct interpreter_list list;
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", folder, script);
    interpreter_list(&list);
    for (size_t i = 0; i < list.count; i++) {
        struct interpreter_run run = interpreter_start(list.path[i], path, first, second);
        check(list.path[i], &run);
        interpreter_stop(&run);
    }
    return list.count > 0;
}
