/* The kernel's symbols at rest; see kernel_cache.h. */
#include "symbol/kernel_cache.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/io.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/vector.h"

#define SYMBOLS_MAX ((size_t)256 << 20)
#define MODULES_MAX ((size_t)4 << 20)
#define HEAD_MAX ((size_t)256 << 10)

/* Of the line `ADDRESS TYPE NAME`, if the name is that one. */
static uint64_t address_of(const char *symbols, const char *name)
{
    char wanted[32];
    snprintf(wanted, sizeof wanted, " T %s\n", name);
    const char *found = strstr(symbols, wanted);
    while (found && found > symbols && found[-1] != '\n')
        found--;
    return found ? strtoull(found, NULL, 16) : 0;
}

static void add_stretch(struct text *head, uint64_t start, uint64_t size)
{
    if (start && size && start + size > start)
        text_format(head, "%" PRIx64 " %" PRIx64 "\n", start, start + size);
}

/* Lines of /proc/modules: name, size, users, who, state, address. */
static void add_modules(struct text *head, const char *modules)
{
    for (const char *line = modules; *line;) {
        const char *end = line + strcspn(line, "\n"),
                   *size = memchr(line, ' ', (size_t)(end - line));
        const char *start = size;
        for (int word = 1; start && word < 5; word++)
            start = memchr(start + 1, ' ', (size_t)(end - start - 1));
        if (start)
            add_stretch(head, strtoull(start, NULL, 16), strtoull(size, NULL, 10));
        line = end + (*end == '\n');
    }
}

int kernel_cache_write(int fd, const char *symbols, size_t len, const char *modules)
{
    struct text head = TEXT_INIT;
    uint64_t start = address_of(symbols, "_stext");
    add_stretch(&head, start, address_of(symbols, "_etext") - start);
    if (start)
        add_modules(&head, modules);
    text_add_char(&head, '\n');
    int rc = !start || head.len > HEAD_MAX || io_write(fd, head.data, head.len) ||
                     io_write(fd, symbols, len)
                 ? -1
                 : 0;
    text_release(&head);
    return rc;
}

struct stretch {
    uint64_t start, end;
};

struct stretches {
    VECTOR(struct stretch) list;
};

/* The length of the head, or 0 if it has no end. */
static size_t read_head(const char *head, struct stretches *s)
{
    const char *line = head;
    while (*line && *line != '\n') {
        char *next;
        struct stretch one = {.start = strtoull(line, &next, 16)};
        one.end = strtoull(next, &next, 16);
        *vector_push(&s->list) = one;
        line = *next == '\n' ? next + 1 : "";
    }
    return *line == '\n' ? (size_t)(line + 1 - head) : 0;
}

static bool is_covered(const struct stretches *s, uint64_t address)
{
    for (size_t i = 0; i < s->list.len; i++)
        if (address >= s->list.data[i].start && address < s->list.data[i].end)
            return true;
    return false;
}

int kernel_cache_covers(int fd, const uint64_t *address, size_t count)
{
    struct stretches s = {0};
    char *head = memory_alloc(HEAD_MAX + 1);
    ssize_t got = pread(fd, head, HEAD_MAX, 0);
    head[got > 0 ? got : 0] = 0;
    size_t len = read_head(head, &s);
    bool covers = len != 0;
    for (size_t i = 0; i < count && covers; i++)
        covers = is_covered(&s, address[i]);
    if (covers && lseek(fd, (off_t)len, SEEK_SET) < 0)
        covers = false;
    vector_release(&s.list);
    free(head);
    return covers ? 0 : -1;
}

/* What the copy is good for: this boot, these modules at these places. */
static bool make_name(const char *modules, size_t len, struct text *name)
{
    char *boot;
    if (io_slurp("/proc/sys/kernel/random/boot_id", 64, &boot, NULL, NULL))
        return false;
    text_format(name, "%.36s-%016" PRIx64, boot, hash_bytes(modules, len));
    free(boot);
    return true;
}

/* Those of other boots and modules are of no use to anybody. */
static void remove_others(const char *folder)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.')
            unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
}

/* To a name of its own first, so that nobody ever sees half of it. */
static int make_copy(const char *folder, const char *path, const char *modules)
{
    char *symbols;
    size_t len;
    if (io_slurp("/proc/kallsyms", SYMBOLS_MAX, &symbols, &len, NULL))
        return -1;
    struct text part = TEXT_INIT;
    text_format(&part, "%s/.new", folder);
    int fd = temporary_file(&part);
    if (fd >= 0 && !kernel_cache_write(fd, symbols, len, modules)) {
        remove_others(folder);
        rename(part.data, path);
    } else if (fd >= 0) {
        unlink(part.data);
        close(fd);
        fd = -1;
    }
    text_release(&part);
    free(symbols);
    return fd;
}

int kernel_cache_open(const uint64_t *address, size_t count)
{
    struct text folder = TEXT_INIT, path = TEXT_INIT;
    char *modules = NULL;
    size_t len = 0;
    int fd = -1;
    /* A kernel built without modules has no list of them. */
    if (io_slurp("/proc/modules", MODULES_MAX, &modules, &len, NULL))
        modules = memory_strdup("");
    if (cache_folder("kernel", &folder)) {
        text_format(&path, "%s/", folder.data);
        if (make_name(modules, len, &path))
            fd = cache_open(path.data);
        if (fd < 0)
            fd = make_copy(folder.data, path.data, modules);
    }
    if (fd >= 0 && kernel_cache_covers(fd, address, count)) {
        close(fd);
        fd = -1;
    }
    free(modules);
    text_release(&path);
    text_release(&folder);
    return fd;
}
