#include "workshop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/text.h"

void workshop_open(struct workshop *w)
{
    snprintf(w->folder, sizeof w->folder, "/tmp/sonde-symbol.XXXXXX");
    assert_non_null(mkdtemp(w->folder));
}

void workshop_close(struct workshop *w)
{
    workshop_run(w, "rm -rf '%s'", w->folder);
}

const char *workshop_path(const struct workshop *w, const char *name)
{
    static char ring[8][512];
    static unsigned turn;
    char *path = ring[turn++ % 8];
    snprintf(path, sizeof ring[0], "%s/%s", w->folder, name);
    return path;
}

void workshop_write_bytes(const struct workshop *w, const char *name, const void *data, size_t len)
{
    FILE *f = fopen(workshop_path(w, name), "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

void workshop_write(const struct workshop *w, const char *name, const char *content)
{
    workshop_write_bytes(w, name, content, strlen(content));
}

static char *command_of(const struct workshop *w, const char *format, va_list args)
{
    struct text t = TEXT_INIT;
    text_format(&t, "cd '%s' && ", w->folder);
    text_vformat(&t, format, args);
    return text_take(&t);
}

int workshop_try(const struct workshop *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *command = command_of(w, format, args);
    va_end(args);
    int status = system(command);
    free(command);
    return status;
}

void workshop_run(const struct workshop *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *command = command_of(w, format, args);
    va_end(args);
    int status = system(command);
    if (status != 0)
        print_error("failed: %s\n", command);
    free(command);
    assert_int_equal(status, 0);
}

char *workshop_output(const struct workshop *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *command = command_of(w, format, args);
    va_end(args);
    FILE *f = popen(command, "r");
    free(command);
    assert_non_null(f);
    struct text out = TEXT_INIT;
    char chunk[4096];
    size_t got;
    while ((got = fread(chunk, 1, sizeof chunk, f)) > 0)
        text_add_len(&out, chunk, got);
    assert_int_equal(pclose(f), 0);
    return text_take(&out);
}

uint64_t workshop_symbol(const struct workshop *w, const char *file, const char *name)
{
    char *out = workshop_output(w, "nm '%s' | awk '$3 == \"%s\" { print $1 }'", file, name);
    uint64_t address = strtoull(out, NULL, 16);
    if (!address)
        print_error("no symbol %s in %s\n", name, file);
    free(out);
    assert_true(address != 0);
    return address;
}

bool workshop_has(const char *command)
{
    char line[128];
    snprintf(line, sizeof line, "command -v %s >/dev/null 2>&1", command);
    return system(line) == 0;
}

static void keep(void *context, size_t module, size_t index, const struct symbol_location *location,
                 size_t n)
{
    struct catch *c = context;
    assert_int_equal(module, 0);
    assert_true(index < c->count);
    assert_true(n >= 1 && n <= SYMBOL_INLINE_MAX);
    c->emitted++;
    if (c->found[index].n)
        c->twice++;
    struct symbol_location *copy = arena_alloc(&c->arena, n * sizeof *copy);
    for (size_t i = 0; i < n; i++) {
        copy[i] = location[i];
        assert_non_null(location[i].function);
        assert_non_null(location[i].linkage);
        copy[i].function = arena_strdup(&c->arena, location[i].function);
        copy[i].linkage = arena_strdup(&c->arena, location[i].linkage);
        if (location[i].file)
            copy[i].file = arena_strdup(&c->arena, location[i].file);
        if (location[i].module)
            copy[i].module = arena_strdup(&c->arena, location[i].module);
    }
    c->found[index] = (struct found){copy, n};
}

static void start(struct catch *c, const struct symbol_request *r)
{
    *c = (struct catch){.count = r->count};
    c->found = memory_array(r->count ? r->count : 1, sizeof *c->found);
}

static void finish(struct catch *c)
{
    assert_int_equal(c->twice, 0);
    assert_int_equal(c->emitted, c->result.resolved + c->result.placed);
}

void catch_resolve(struct catch *c, const struct symbol_request *r, const struct symbol_options *o)
{
    start(c, r);
    struct symbol_sink sink = {keep, c};
    assert_int_equal(symbol_resolve(r, o, &sink, &c->result, NULL), 0);
    finish(c);
}

void catch_isolated(struct catch *c, const struct symbol_request *r, const struct symbol_options *o)
{
    start(c, r);
    struct symbol_sink sink = {keep, c};
    assert_int_equal(symbol_resolve_isolated(r, 1, o, &sink, &c->result, NULL), 0);
    finish(c);
}

void catch_release(struct catch *c)
{
    free(c->found);
    arena_release(&c->arena);
}
