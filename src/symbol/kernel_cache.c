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
#define PART ((size_t)16 << 10) /* bytes, about, between two entries of the index */

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

/* The core kernel's code stands first and is sorted: where in the text its parts begin. Symbols of
 * one address stay together. */
static void add_index(struct text *head, const char *symbols)
{
    const char *end = strstr(symbols, " T _etext\n"), *last = NULL;
    size_t before = head->len;
    uint64_t previous = 0;
    for (const char *line = symbols; end && line < end; line = strchr(line, '\n') + 1) {
        uint64_t address = strtoull(line, NULL, 16);
        if (address < previous) {
            head->len = before; /* not sorted: no index */
            head->data[before] = 0;
            return;
        }
        if (!last || ((size_t)(line - last) >= PART && address > previous)) {
            text_format(head, "=%" PRIx64 " %zx\n", address, (size_t)(line - symbols));
            last = line;
        }
        previous = address;
    }
    if (last)
        text_format(head, "=%" PRIx64 " %zx\n", UINT64_MAX,
                    (size_t)(strchr(end, '\n') + 1 - symbols));
}

int kernel_cache_write(int fd, const char *symbols, size_t len, const char *modules)
{
    struct text head = TEXT_INIT;
    uint64_t start = address_of(symbols, "_stext");
    add_stretch(&head, start, address_of(symbols, "_etext") - start);
    if (start)
        add_modules(&head, modules);
    if (start)
        add_index(&head, symbols);
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

struct entry {
    uint64_t address, offset;
};

struct head {
    VECTOR(struct stretch) stretches;
    VECTOR(struct entry) index; /* ends with the end of the last part */
    size_t len;                 /* 0: it has no end */
};

static void head_read(struct head *h, int fd)
{
    char *text = memory_alloc(HEAD_MAX + 1), *line = text;
    ssize_t got = pread(fd, text, HEAD_MAX, 0);
    *h = (struct head){0};
    text[got > 0 ? got : 0] = 0;
    while (*line && *line != '\n') {
        bool entry = *line == '=';
        uint64_t first = strtoull(line + entry, &line, 16), second = strtoull(line, &line, 16);
        if (entry)
            *vector_push(&h->index) = (struct entry){first, second};
        else
            *vector_push(&h->stretches) = (struct stretch){first, second};
        if (*line != '\n')
            break;
        line++;
    }
    h->len = *line == '\n' ? (size_t)(line + 1 - text) : 0;
    free(text);
}

static void head_release(struct head *h)
{
    vector_release(&h->stretches);
    vector_release(&h->index);
}

static bool is_covered(const struct head *h, uint64_t address)
{
    for (size_t i = 0; i < h->stretches.len; i++)
        if (address >= h->stretches.data[i].start && address < h->stretches.data[i].end)
            return true;
    return false;
}

int kernel_cache_covers(int fd, const uint64_t *address, size_t count)
{
    struct head h;
    head_read(&h, fd);
    bool covers = h.len != 0;
    for (size_t i = 0; i < count && covers; i++)
        covers = is_covered(&h, address[i]);
    if (covers && lseek(fd, (off_t)h.len, SEEK_SET) < 0)
        covers = false;
    head_release(&h);
    return covers ? 0 : -1;
}

static bool read_part(int fd, const struct head *h, size_t part, kernel_cache_take *take,
                      void *context)
{
    uint64_t from = h->index.data[part].offset, to = h->index.data[part + 1].offset;
    if (from >= to || to > SYMBOLS_MAX)
        return false;
    char *data = memory_alloc((size_t)(to - from));
    bool got = io_pread(fd, data, (size_t)(to - from), h->len + from) == (ssize_t)(to - from);
    if (got)
        take(context, data, (size_t)(to - from));
    free(data);
    return got;
}

bool kernel_cache_parts(int fd, const uint64_t *address, size_t count, kernel_cache_take *take,
                        void *context)
{
    struct head h;
    head_read(&h, fd);
    bool good = h.len && h.index.len > 1 && h.stretches.len && count &&
                address[0] >= h.stretches.data[0].start &&
                address[count - 1] < h.stretches.data[0].end;
    for (size_t part = 0, i = 0; good && i < count && part + 1 < h.index.len; part++) {
        size_t before = i;
        while (i < count && address[i] < h.index.data[part + 1].address)
            i++;
        if (i > before)
            good = read_part(fd, &h, part, take, context);
    }
    head_release(&h);
    return good;
}

/* What the copy is good for: this boot, these modules at these places. */
static bool make_name(const char *modules, size_t len, struct text *name)
{
    char *boot;
    if (io_slurp("/proc/sys/kernel/random/boot_id", 64, &boot, NULL, NULL))
        return false;
    text_format(name, "%.36s-%016" PRIx64 "-indexed", boot, hash_bytes(modules, len));
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
