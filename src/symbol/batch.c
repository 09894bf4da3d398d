/* Gathering addresses for the symboliser; see batch.h. */
#include "symbol/batch.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/vector.h"

struct wanted {
    uint64_t address;
    uint32_t number;
};

struct question {
    struct symbol_request request;
    int fd;
    VECTOR(struct wanted) wanted;
    uint64_t *address;
    char fd_path[32];
};

struct symbol_batch {
    size_t modules, total;
    struct question *question;
    struct symbol_result *result;
    symbol_batch_emit *emit;
    void *context;
    const size_t *which; /* the round's requests -> modules */
};

struct symbol_batch *symbol_batch_new(size_t modules)
{
    struct symbol_batch *b = memory_alloc(sizeof *b);
    b->modules = modules;
    b->question = memory_array(modules, sizeof *b->question);
    b->result = memory_array(modules, sizeof *b->result);
    for (size_t i = 0; i < modules; i++) {
        b->question[i].request.kind = SYMBOL_OTHER;
        b->question[i].fd = -1;
    }
    return b;
}

void symbol_batch_module(struct symbol_batch *b, size_t module,
                         const struct symbol_request *request, int fd)
{
    b->question[module].request = *request;
    b->question[module].fd = fd;
}

void symbol_batch_add(struct symbol_batch *b, size_t module, uint64_t address, uint32_t number)
{
    *vector_push(&b->question[module].wanted) =
        (struct wanted){.address = address, .number = number};
    b->total++;
}

size_t symbol_batch_count(const struct symbol_batch *b)
{
    return b->total;
}

static int by_address(const void *a, const void *b)
{
    const struct wanted *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

static void sort_addresses(struct question *q)
{
    size_t n = q->wanted.len;
    qsort(q->wanted.data, n, sizeof *q->wanted.data, by_address);
    q->address = memory_array(n, sizeof *q->address);
    for (size_t i = 0; i < n; i++)
        q->address[i] = q->wanted.data[i].address;
    q->request.address = q->address;
    q->request.count = n;
}

static void pass_on(void *context, size_t request, size_t index, const struct symbol_location *at,
                    size_t n)
{
    struct symbol_batch *b = context;
    size_t module = b->which[request];
    b->emit(b->context, module, b->question[module].wanted.data[index].number, at, n);
}

/* Asks for the modules in `which` and keeps their results. */
static int ask(struct symbol_batch *b, const size_t *which, size_t n,
               const struct symbol_options *options, struct error *err)
{
    struct symbol_request *request = memory_array(n, sizeof *request);
    struct symbol_result *result = memory_array(n, sizeof *result);
    for (size_t i = 0; i < n; i++)
        request[i] = b->question[which[i]].request;
    b->which = which;
    struct symbol_sink sink = {.emit = pass_on, .context = b};
    int rc = n ? symbol_resolve_isolated(request, n, options, &sink, result, err) : 0;
    for (size_t i = 0; i < n && !rc; i++)
        b->result[which[i]] = result[i];
    free(request);
    free(result);
    return rc;
}

/* A file that is gone or was replaced is still open here: its descriptor leads to it. */
static bool ask_by_descriptor(struct symbol_batch *b, size_t module)
{
    struct question *q = &b->question[module];
    enum symbol_status status = b->result[module].status;
    if (!q->wanted.len || q->fd < 0 || (status != SYMBOL_NOT_FOUND && status != SYMBOL_MISMATCH))
        return false;
    snprintf(q->fd_path, sizeof q->fd_path, "/proc/self/fd/%d", q->fd);
    q->request.path = q->fd_path;
    q->request.root = NULL;
    return true;
}

int symbol_batch_run(struct symbol_batch *b, const struct symbol_options *options,
                     symbol_batch_emit *emit, void *context, struct error *err)
{
    size_t *which = memory_array(b->modules, sizeof *which), n = 0;
    b->emit = emit;
    b->context = context;
    for (size_t i = 0; i < b->modules; i++) {
        if (!b->question[i].wanted.len)
            continue;
        sort_addresses(&b->question[i]);
        which[n++] = i;
    }
    int rc = ask(b, which, n, options, err);
    n = 0;
    for (size_t i = 0; i < b->modules && !rc; i++)
        if (ask_by_descriptor(b, i))
            which[n++] = i;
    if (!rc)
        rc = ask(b, which, n, options, err);
    free(which);
    return rc;
}

const struct symbol_result *symbol_batch_result(const struct symbol_batch *b, size_t module)
{
    return b->question[module].wanted.len ? &b->result[module] : NULL;
}

void symbol_batch_free(struct symbol_batch *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < b->modules; i++) {
        vector_release(&b->question[i].wanted);
        free(b->question[i].address);
    }
    free(b->question);
    free(b->result);
    free(b);
}
