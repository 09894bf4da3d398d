/* One request in this process: open and check the module, run its resolvers, hand out answers. */
#include "symbol/answer_cache.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "profile/profile.h"

static const struct resolver *const resolvers[] = {
    &resolver_build_id, &resolver_debug_link, &resolver_debuginfod, &resolver_dwarf,
    &resolver_symtab,   &resolver_mini,       &resolver_plt,        &resolver_frame_table,
    &resolver_vdso,     &resolver_kernel,     &resolver_perf_map,   &resolver_jitdump,
};

#define DELETED " (deleted)"

const char *symbol_status_name(enum symbol_status status)
{
    static const char *const name[] = {
        [SYMBOL_FULL] = "full",           [SYMBOL_NAMES] = "names",
        [SYMBOL_STRIPPED] = "stripped",   [SYMBOL_FELL_BACK] = "fell-back",
        [SYMBOL_NOT_FOUND] = "not-found", [SYMBOL_MISMATCH] = "mismatch",
        [SYMBOL_DENIED] = "denied",       [SYMBOL_DAMAGED] = "damaged",
        [SYMBOL_NONE] = "none",
    };
    return (size_t)status < sizeof name / sizeof *name ? name[status] : "unknown";
}

bool module_has(const struct image *image, const char *section)
{
    const struct image_section *s = image_find(image, section);
    return s && s->size > 0;
}

void module_credit(struct module *m, const char *path)
{
    if (!m->source)
        m->source = answers_keep(&m->answers, path);
}

void module_set_status(struct module *m, enum symbol_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    m->result->status = status;
    vsnprintf(m->result->note, sizeof m->result->note, format, args);
    va_end(args);
}

/* A file whose build-id is not the asked one is not used, whatever its name. */
static void check_image(struct module *m)
{
    const struct symbol_request *r = m->request;
    if (r->build_id_len && !image_is(m->image, r->build_id, r->build_id_len)) {
        module_set_status(
            m, SYMBOL_MISMATCH, "%s is not the file that ran (%s): its names are not used",
            m->image->path, m->image->build_id_len ? "its build-id differs" : "it has no build-id");
        image_free(m->image);
        m->image = NULL;
        return;
    }
    if (!m->build_id_len) {
        m->build_id = m->image->build_id;
        m->build_id_len = m->image->build_id_len;
    }
}

static void open_image(struct module *m)
{
    const struct symbol_request *r = m->request;
    struct error err = {0};
    m->build_id = r->build_id;
    m->build_id_len = r->build_id_len;
    if (!r->path) {
        module_set_status(m, SYMBOL_NOT_FOUND, "the module has no path");
        return;
    }
    size_t len = strlen(r->path), tail = strlen(DELETED);
    bool deleted = len > tail && strcmp(r->path + len - tail, DELETED) == 0;
    char *path = memory_strndup(r->path, deleted ? len - tail : len);
    if (!deleted || r->build_id_len)
        m->image = image_open(r->root, path, &err);
    else
        error_set(&err, FAULT_MISSING, "%s was deleted while it ran", path);
    free(path);
    if (m->image)
        check_image(m);
    else
        module_set_status(m,
                          err.fault == FAULT_MISSING  ? SYMBOL_NOT_FOUND
                          : err.fault == FAULT_SYSTEM ? SYMBOL_DENIED
                                                      : SYMBOL_DAMAGED,
                          "%.*s", (int)sizeof m->result->note - 1, err.text);
}

/* What became of an ELF module whose file was usable, or was made up for by a debug file. */
static void judge(struct module *m, const struct error *trouble)
{
    const char *path = m->request->path ? m->request->path : "the module";
    if (m->lacks_split)
        module_set_status(m, SYMBOL_NAMES,
                          "%s keeps debug information in .dwo files that are missing: "
                          "names and lines but no inlined functions",
                          path);
    else if (m->had_debug_info)
        module_set_status(m, SYMBOL_FULL, "%s", "");
    else if (trouble->fault)
        module_set_status(m, SYMBOL_FELL_BACK, "%.*s", (int)sizeof m->result->note - 1,
                          trouble->text);
    else if (m->image && m->had_symtab)
        module_set_status(m, SYMBOL_NAMES,
                          "%s has no debug information for this code: names but no lines", path);
    else if (m->image)
        module_set_status(m, SYMBOL_STRIPPED,
                          "%s is stripped: only exported names; install its debug symbols", path);
}

static int by_kind(struct module *m)
{
    struct error trouble = {0};
    for (size_t i = 0; i < sizeof resolvers / sizeof *resolvers; i++) {
        struct error err = {0};
        if (resolvers[i]->kind != m->request->kind)
            continue;
        if (resolvers[i] == &resolver_dwarf && answer_cache_load(m))
            return 0;
        if (resolvers[i]->run(m, &err) < 0)
            trouble = err;
    }
    if (m->request->kind == SYMBOL_ELF)
        judge(m, &trouble);
    return 0;
}

struct demangled {
    struct map by_linkage; /* address of a kept string -> address of its demangled form */
    char buffer[SYMBOL_TEXT_MAX];
};

static const char *readable(struct module *m, struct demangled *d, const char *linkage)
{
    if (m->options->no_demangle || linkage[0] != '_')
        return linkage;
    bool added;
    uint64_t *slot = map_put(&d->by_linkage, (uint64_t)(uintptr_t)linkage, 0,
                             (uint64_t)(uintptr_t)linkage, &added);
    if (added && symbol_demangle(linkage, d->buffer))
        *slot = (uint64_t)(uintptr_t)answers_keep(&m->answers, d->buffer);
    return (const char *)(uintptr_t)*slot;
}

/* A symbol that only its file sees is named twice: by the table, mangled, and by the debug
 * information. */
static void complete(struct module *m, struct demangled *d, struct symbol_location *l)
{
    if (l->linkage &&
        (!l->function || strncmp(l->linkage, "_Z", 2) == 0 || strncmp(l->linkage, "_R", 2) == 0))
        l->function = readable(m, d, l->linkage);
    if (!l->function)
        l->function = "??";
    if (!l->linkage)
        l->linkage = l->function;
}

void result_count(struct symbol_result *r, const struct symbol_location *innermost)
{
    bool placed = profile_name_is_place(innermost->function);
    r->placed += placed;
    r->resolved += !placed;
    r->with_lines += innermost->file && innermost->line;
}

static void hand_out(struct module *m, const struct symbol_sink *sink)
{
    struct demangled d = {0};
    for (size_t i = 0; i < m->answers.count; i++) {
        struct answer *answer = &m->answers.item[i];
        if (!answer->named)
            continue;
        for (uint32_t k = 0; k < answer->n; k++)
            complete(m, &d, &answer->location[k]);
        result_count(m->result, answer->location);
        sink->emit(sink->context, 0, i, answer->location, answer->n);
    }
    map_release(&d.by_linkage);
}

static int check_request(const struct symbol_request *r, struct error *err)
{
    if (r->count > UINT32_MAX / 2)
        return error_set(err, FAULT_USAGE, "too many addresses for %s", r->path ? r->path : "?");
    for (size_t i = 1; i < r->count; i++)
        if (r->address[i] < r->address[i - 1])
            return error_set(err, FAULT_USAGE, "addresses to resolve in %s do not ascend",
                             r->path ? r->path : "a module without a path");
    return 0;
}

int symbol_resolve(const struct symbol_request *request, const struct symbol_options *options,
                   const struct symbol_sink *sink, struct symbol_result *result, struct error *err)
{
    static const struct symbol_options defaults;
    *result = (struct symbol_result){.status = SYMBOL_NONE};
    int status = check_request(request, err);
    if (status < 0)
        return status;
    struct module m = {
        .request = request, .options = options ? options : &defaults, .result = result};
    answers_init(&m.answers, request);
    if (request->kind == SYMBOL_ELF)
        open_image(&m);
    else if (request->kind != SYMBOL_OTHER)
        result->status = SYMBOL_NAMES;
    by_kind(&m);
    hand_out(&m, sink);
    if (m.source)
        snprintf(result->source, sizeof result->source, "%s", m.source);
    if (request->kind == SYMBOL_ELF)
        answer_cache_store(&m);
    image_free(m.image);
    image_free(m.debug);
    answers_release(&m.answers);
    return 0;
}

int symbol_build_id(const char *root, const char *path, uint8_t *id, size_t max, struct error *err)
{
    struct error local = {0};
    struct image *image = image_open(root, path, &local);
    if (!image) {
        if (err)
            *err = local;
        return local.fault;
    }
    size_t len = image->build_id_len <= max ? image->build_id_len : 0;
    memcpy(id, image->build_id, len);
    image_free(image);
    return (int)len;
}
