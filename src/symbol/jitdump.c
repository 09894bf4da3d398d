/*
 * jit-PID.dump, in which a just-in-time compiler writes its code, names and lines:
 *
 *   header: magic, version, its own size, machine, padding, pid (all u32), time, flags (u64)
 *   record: id, size (u32), time (u64), then by id
 *     0 load:  pid, tid (u32), vma, address, size, index (u64), name\0, code
 *     1 move:  pid, tid (u32), vma, old address, new address, size, index (u64)
 *     2 debug: address, entries (u64), then entries of address (u64), line, column (u32), file\0
 *
 * A debug record describes the load that follows it. Addresses are reused; the last load that
 * covers an address holds.
 */
#include "symbol/symbol_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vector.h"
#include "symbol/rooted.h"

#define DUMP_MAX ((size_t)2 << 30)
#define MAGIC 0x4a695444u
#define HEADER_SIZE 40
#define RECORD_SIZE 16
#define LOADS_MAX ((size_t)1 << 24)

enum { RECORD_LOAD = 0, RECORD_MOVE = 1, RECORD_DEBUG = 2 };

struct load {
    uint64_t start, end, index;
    size_t name;  /* offset of the name in the file */
    size_t debug; /* offset of the debug record's body, 0: none */
    size_t debug_len;
    uint64_t moved; /* how far from where the debug entries say */
};

struct dump {
    const uint8_t *data;
    size_t len;
    VECTOR(struct load) loads;
    size_t debug, debug_len;
    uint64_t debug_address;
};

static uint32_t get32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint64_t get64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static void on_load(struct dump *d, size_t at, size_t len)
{
    const uint8_t *p = d->data + at;
    if (len < 41 || !memchr(p + 40, '\0', len - 40) || d->loads.len >= LOADS_MAX)
        return;
    uint64_t start = get64(p + 16), size = get64(p + 24);
    struct load l = {.start = start, .index = get64(p + 32), .name = at + 40};
    l.end = size > UINT64_MAX - start ? UINT64_MAX : start + size;
    if (d->debug && d->debug_address == start) {
        l.debug = d->debug;
        l.debug_len = d->debug_len;
    }
    d->debug = 0;
    *vector_push(&d->loads) = l;
}

static void on_move(struct dump *d, size_t at, size_t len)
{
    const uint8_t *p = d->data + at;
    if (len < 48 || d->loads.len >= LOADS_MAX)
        return;
    uint64_t to = get64(p + 24), size = get64(p + 32), index = get64(p + 40);
    for (size_t i = d->loads.len; i > 0 && d->loads.len - i < 4096; i--) {
        struct load l = d->loads.data[i - 1];
        if (l.index != index)
            continue;
        l.moved += to - l.start;
        l.start = to;
        l.end = size > UINT64_MAX - to ? UINT64_MAX : to + size;
        *vector_push(&d->loads) = l;
        return;
    }
}

static void on_debug(struct dump *d, size_t at, size_t len)
{
    if (len < 16)
        return;
    d->debug = at + 8;
    d->debug_len = len - 8;
    d->debug_address = get64(d->data + at);
}

/* The last entry at or below the address; entries ascend. "\xff" as a file stands for the one
 * before. */
static void find_line(struct answers *a, const struct dump *d, const struct load *l,
                      uint64_t address, struct symbol_location *out)
{
    const uint8_t *p = d->data + l->debug, *end = p + l->debug_len;
    const char *file = NULL;
    uint64_t n = get64(p);
    for (p += 8; n > 0 && end - p > 16; n--) {
        const char *name = (const char *)p + 16;
        size_t len = strnlen(name, (size_t)(end - p) - 16);
        if (len == (size_t)(end - p) - 16)
            return;
        if ((unsigned char)name[0] != 0xff)
            file = name;
        if (get64(p) + l->moved > address)
            return;
        out->file = answers_keep(a, file);
        out->line = get32(p + 8);
        if (!out->start_line)
            out->start_line = out->line;
        p += 16 + len + 1;
    }
}

static void apply(struct answers *a, const struct dump *d)
{
    size_t *next = memory_array(a->count + 1, sizeof *next);
    for (size_t i = 0; i <= a->count; i++)
        next[i] = i;
    for (size_t k = d->loads.len; k > 0 && a->open > 0; k--) {
        const struct load *l = &d->loads.data[k - 1];
        for (size_t i = answers_from(a, l->start); i < a->count && a->address[i] < l->end; i++) {
            while (next[i] != i)
                i = next[i] = next[next[i]];
            if (i >= a->count || a->address[i] >= l->end)
                break;
            answers_name(a, i, (const char *)d->data + l->name, l->start);
            if (l->debug && a->item[i].n)
                find_line(a, d, l, a->address[i], a->item[i].location);
            next[i] = i + 1;
        }
    }
    free(next);
}

int jitdump_scan(struct answers *a, const uint8_t *data, size_t len, const char *path,
                 struct error *err)
{
    struct dump d = {.data = data, .len = len};
    if (len < HEADER_SIZE || get32(data) != MAGIC || get32(data + 8) < HEADER_SIZE)
        return error_set(err, FAULT_INPUT, "%s is not a jitdump file of this byte order", path);
    size_t at = get32(data + 8);
    while (at <= len && len - at >= RECORD_SIZE) {
        uint32_t id = get32(data + at), size = get32(data + at + 4);
        if (size < RECORD_SIZE || size > len - at)
            break;
        if (id == RECORD_LOAD)
            on_load(&d, at + RECORD_SIZE, size - RECORD_SIZE);
        else if (id == RECORD_MOVE)
            on_move(&d, at + RECORD_SIZE, size - RECORD_SIZE);
        else if (id == RECORD_DEBUG)
            on_debug(&d, at + RECORD_SIZE, size - RECORD_SIZE);
        at += size;
    }
    apply(a, &d);
    vector_release(&d.loads);
    return 0;
}

static int jitdump_run(struct module *m, struct error *err)
{
    int fd = m->request->path ? rooted_open(m->request->root, m->request->path) : -1;
    if (fd < 0) {
        module_set_status(m, SYMBOL_NOT_FOUND, "cannot open %s: no names for its code",
                          m->request->path ? m->request->path : "a jitdump without a path");
        return FAULT_MISSING;
    }
    size_t len;
    char *data = rooted_slurp(fd, DUMP_MAX, &len);
    int status = data ? jitdump_scan(&m->answers, (const uint8_t *)data, len, m->request->path, err)
                      : error_errno(err, FAULT_SYSTEM, "cannot read %s", m->request->path);
    if (status < 0)
        module_set_status(m, SYMBOL_DAMAGED, "%s is not a readable jitdump file", m->request->path);
    else
        module_credit(m, m->request->path);
    m->had_symtab = true;
    free(data);
    close(fd);
    return status;
}

const struct resolver resolver_jitdump = {"jitdump", SYMBOL_JITDUMP, jitdump_run};
