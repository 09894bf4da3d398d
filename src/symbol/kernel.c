/*
 * Kernel functions from /proc/kallsyms, read in a stream: only the symbol nearest below each
 * address is kept. The core kernel's part is sorted, so reading stops once it has passed the last
 * address; the rest, half of the file, is data and modules.
 */
#include "symbol/symbol_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "symbol/kernel_cache.h"
#include "symbol/rooted.h"

#define CHUNK ((size_t)1 << 20)
#define LINE_MAX_BYTES 2048
#define BYTES_MAX ((uint64_t)1 << 30)

struct nearest {
    uint64_t start;
    char *line; /* type, name and module, as in the file; in the answers' arena */
    size_t len;
    char type;
};

struct kallsyms {
    struct answers *a;
    struct nearest
        *slot;         /* by index of address: the best that fell between it and the one before */
    uint64_t previous; /* of the sorted part */
    bool sorted, visible, done;
};

static const int8_t *hex_table(void)
{
    static int8_t value[256];
    if (!value['1']) {
        memset(value, -1, sizeof value);
        for (int i = 0; i < 16; i++) {
            value[(unsigned char)"0123456789abcdef"[i]] = (int8_t)i;
            value[(unsigned char)"0123456789ABCDEF"[i]] = (int8_t)i;
        }
    }
    return value;
}

/* Global before weak before local; 0 for data, which only marks where code has ended. */
static int rank_of(char type)
{
    static const char order[] = "iwtWT";
    const char *at = memchr(order, type, sizeof order - 1);
    return at ? (int)(at - order) + 1 : 0;
}

static bool preferred(char type, const char *name, const struct nearest *old)
{
    int a = rank_of(type), b = rank_of(old->type);
    if (a != b)
        return a > b;
    return strspn(name, "_") < strspn(old->line, "_");
}

static void keep(struct kallsyms *k, size_t slot, uint64_t start, char type, const char *name,
                 size_t len)
{
    struct nearest *n = &k->slot[slot];
    if (n->line && (start < n->start || (start == n->start && !preferred(type, name, n))))
        return;
    if (len > n->len || !n->line)
        n->line = arena_alloc(&k->a->arena, len + 64);
    if (len > n->len)
        n->len = len;
    memcpy(n->line, name, len);
    n->line[len] = '\0';
    n->start = start;
    n->type = type;
}

/* "ffffffff81000000 T _stext" and, for modules, "\t[name]" after it. */
static void scan_line(struct kallsyms *k, const int8_t *hex, const char *at, const char *end)
{
    uint64_t start = 0;
    const char *p = at;
    for (; p < end && hex[(unsigned char)*p] >= 0; p++)
        start = start << 4 | (uint64_t)hex[(unsigned char)*p];
    if (p == at || end - p < 4 || p[0] != ' ' || p[2] != ' ')
        return;
    if (start)
        k->visible = true;
    if (start < k->previous)
        k->sorted = false;
    k->previous = start;
    if (k->sorted && k->a->count && start > k->a->address[k->a->count - 1]) {
        k->done = true;
        return;
    }
    if (!start || p[1] == 'A' || p[1] == 'a')
        return;
    size_t slot = answers_from(k->a, start);
    if (slot < k->a->count && end - (p + 3) < LINE_MAX_BYTES)
        keep(k, slot, start, p[1], p + 3, (size_t)(end - (p + 3)));
}

/* Returns how many bytes were whole lines. */
static size_t scan_lines(struct kallsyms *k, const char *data, size_t len)
{
    const int8_t *hex = hex_table();
    const char *at = data, *end = data + len, *newline;
    while (at < end && !k->done && (newline = memchr(at, '\n', (size_t)(end - at)))) {
        scan_line(k, hex, at, newline);
        at = newline + 1;
    }
    return (size_t)(at - data);
}

static void name_one(struct answers *a, size_t index, struct nearest *n)
{
    if (a->item[index].named || !rank_of(n->type))
        return;
    char *tab = strchr(n->line, '\t'), *module = NULL;
    if (tab)
        *tab = '\0';
    if (tab && tab[1] == '[') {
        module = tab + 2;
        module[strcspn(module, "]")] = '\0';
    }
    answers_name(a, index, n->line, n->start);
    if (module && a->item[index].n)
        a->item[index].location->module = answers_keep(a, module);
    if (tab)
        *tab = '\t';
}

/* The nearest symbol below an address may have fallen into an earlier slot. */
static void kallsyms_finish(struct kallsyms *k)
{
    struct nearest *best = NULL;
    for (size_t i = 0; i < k->a->count; i++) {
        struct nearest *n = &k->slot[i];
        if (n->line && (!best || n->start >= best->start))
            best = n;
        if (best)
            name_one(k->a, i, best);
    }
    free(k->slot);
}

static void kallsyms_start(struct kallsyms *k, struct answers *a)
{
    *k = (struct kallsyms){.a = a, .sorted = true};
    k->slot = memory_array(a->count + 1, sizeof *k->slot);
}

void kallsyms_scan(struct answers *a, const char *data, size_t len, bool *hidden)
{
    struct kallsyms k;
    kallsyms_start(&k, a);
    scan_lines(&k, data, len);
    kallsyms_finish(&k);
    *hidden = !k.visible;
}

static int read_stream(struct kallsyms *k, int fd, const char *path, struct error *err)
{
    char *data = memory_grow(NULL, CHUNK, 1);
    size_t have = 0;
    uint64_t total = 0;
    int status = 0;
    while (!k->done && total < BYTES_MAX) {
        ssize_t got = read(fd, data + have, CHUNK - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            status = error_errno(err, FAULT_SYSTEM, "cannot read %s", path);
        if (got <= 0)
            break;
        have += (size_t)got;
        total += (uint64_t)got;
        size_t used = scan_lines(k, data, have);
        if (used == 0 && have == CHUNK)
            break;
        memmove(data, data + used, have - used);
        have -= used;
    }
    free(data);
    return status;
}

static void take_part(void *context, const char *lines, size_t len)
{
    scan_lines(context, lines, len);
}

static int kernel_run(struct module *m, struct error *err)
{
    const char *path = m->request->path ? m->request->path : "/proc/kallsyms";
    const char *root = m->request->path ? m->request->root : NULL;
    int fd = m->request->path ? -1 : kernel_cache_open(m->answers.address, m->answers.count);
    bool cached = fd >= 0;
    if (fd < 0)
        fd = rooted_open(root, path);
    if (fd < 0) {
        module_set_status(m, errno == EACCES || errno == EPERM ? SYMBOL_DENIED : SYMBOL_NOT_FOUND,
                          "cannot open %s: no names for the kernel", path);
        return FAULT_MISSING;
    }
    struct kallsyms k;
    kallsyms_start(&k, &m->answers);
    bool found =
        cached && kernel_cache_parts(fd, m->answers.address, m->answers.count, take_part, &k);
    int status = found ? 0 : read_stream(&k, fd, path, err);
    close(fd);
    kallsyms_finish(&k);
    m->had_symtab = true;
    module_credit(m, path);
    if (!k.visible)
        module_set_status(m, SYMBOL_DENIED,
                          "%s hides kernel addresses from this user: run as root or set "
                          "kernel.kptr_restrict to 0",
                          path);
    return status;
}

const struct resolver resolver_kernel = {"kallsyms", SYMBOL_KERNEL, kernel_run};
