/*
 * The symbols of a call tree and how a frame turns into them: inlined functions
 * unfold, code without names becomes its address or its module. Done once a frame, before
 * any stack is looked at.
 */
#include "analyze/tree_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"

struct naming {
    struct tree *t;
    bool no_inline;
    const struct tree_options *o;
    uint32_t *function_symbol, *module_symbol;
    struct map by_name; /* (name, start line | module) -> symbol */
};

uint32_t *tree_array_of_none(size_t len)
{
    uint32_t *a = memory_array(len + 1, sizeof *a);
    memset(a, 0xff, (len + 1) * sizeof *a);
    return a;
}

static uint32_t symbol_put(struct tree *t, struct tree_symbol symbol)
{
    *vector_push(&t->symbols) = symbol;
    return (uint32_t)t->symbols.len - 1;
}

uint32_t tree_symbol_add(struct tree *t, enum tree_level level, const char *name)
{
    return symbol_put(t, (struct tree_symbol){.name = name,
                                              .function = PROFILE_NONE,
                                              .module = PROFILE_NONE,
                                              .level = level,
                                              .kind = CODE_UNKNOWN,
                                              .without_name = level == TREE_CODE});
}

static const char *name_keep(struct tree *t, struct text *text)
{
    const char *kept = arena_strdup(&t->arena, text->data);
    text_release(text);
    return kept;
}

uint32_t tree_symbol_numbered(struct tree *t, enum tree_level level, const char *name, int32_t id)
{
    struct text label = TEXT_INIT;
    text_format(&label, "%s (%" PRId32 ")", *name ? name : "?", id);
    return tree_symbol_add(t, level, name_keep(t, &label));
}

uint32_t tree_symbol_of_thread(struct tree *t, const struct profile *p, uint32_t thread)
{
    const struct profile_thread *th = &p->threads.data[thread];
    struct text name = TEXT_INIT;
    text_format(&name, "%s (%" PRId32 ") › %s", profile_process_name(p, th->process),
                p->processes.data[th->process].pid, profile_text(p, th->name));
    uint32_t symbol = tree_symbol_numbered(t, TREE_THREAD, name.data, th->tid);
    text_release(&name);
    return symbol;
}

/* A function whose body draws lines from several files (by #include) is in the profile once a file;
 * it is one symbol all the same. */
static uint32_t symbol_of_function(struct naming *n, uint32_t function, uint32_t module,
                                   enum code_kind kind)
{
    const struct profile *p = n->t->profile;
    const struct profile_function *f = &p->functions.data[function];
    uint32_t *symbol = &n->function_symbol[function];
    if (*symbol != TREE_NONE)
        return *symbol;
    bool fresh;
    uint64_t *shared = map_put(&n->by_name, f->name, (uint64_t)f->start_line << 32 | module,
                               n->t->symbols.len, &fresh);
    *symbol = (uint32_t)*shared;
    if (fresh)
        symbol_put(n->t, (struct tree_symbol){.name = profile_text(p, f->name),
                                              .function = function,
                                              .module = module,
                                              .level = TREE_CODE,
                                              .kind = kind});
    return *symbol;
}

/* "[libfoo.so+0x1234]"; "[kernel]" has its brackets already. */
static const char *name_of_place(struct tree *t, const char *module, const uint64_t *address)
{
    struct text name = TEXT_INIT;
    size_t len = strlen(module);
    bool bare = len >= 2 && module[0] == '[' && module[len - 1] == ']';
    text_add(&name, "[");
    text_add_len(&name, module + bare, len - 2 * (size_t)bare);
    if (address)
        text_format(&name, "+0x%" PRIx64, *address);
    text_add(&name, "]");
    return name_keep(t, &name);
}

static uint32_t symbol_without_name(struct naming *n, const struct profile_frame *f,
                                    enum code_kind kind)
{
    const struct profile *p = n->t->profile;
    bool known = f->module < p->modules.len, grouped = n->o->by_module || kind == CODE_UNKNOWN;
    uint32_t *shared = &n->module_symbol[known ? f->module : p->modules.len];
    if (grouped && *shared != TREE_NONE)
        return *shared;
    const char *name =
        name_of_place(n->t, profile_module_name(p, f->module), grouped ? NULL : &f->address);
    uint32_t symbol =
        symbol_put(n->t, (struct tree_symbol){.name = name,
                                              .function = PROFILE_NONE,
                                              .module = known ? f->module : PROFILE_NONE,
                                              .level = TREE_CODE,
                                              .kind = kind,
                                              .without_name = true});
    if (grouped)
        *shared = symbol;
    return symbol;
}

static void frame_unfold(struct naming *n, struct tree_steps *st, const struct profile_frame *f)
{
    const struct profile *p = n->t->profile;
    enum code_kind kind =
        f->module < p->modules.len ? p->modules.data[f->module].kind : CODE_UNKNOWN;
    const struct profile_location *at = p->locations.data + f->first_location;
    uint32_t outermost = f->location_count, innermost = n->no_inline ? outermost : 1;
    bool any = false;
    for (uint32_t i = outermost; i && i >= innermost; i--) {
        uint32_t function = at[i - 1].function;
        const char *name = profile_text(p, p->functions.data[function].name);
        if (!*name || (n->o->by_name && profile_name_is_place(name)))
            continue;
        *vector_push(&st->steps) =
            (struct step){.symbol = symbol_of_function(n, function, f->module, kind),
                          .line = at[i - 1].line,
                          .inlined = i < outermost};
        any = true;
    }
    if (!any)
        *vector_push(&st->steps) = (struct step){.symbol = symbol_without_name(n, f, kind)};
}

void tree_steps_init(struct tree_steps *st, struct tree *t, bool no_inline,
                     const struct tree_options *o)
{
    const struct profile *p = t->profile;
    struct naming n = {.t = t,
                       .no_inline = no_inline,
                       .o = o,
                       .function_symbol = tree_array_of_none(p->functions.len),
                       .module_symbol = tree_array_of_none(p->modules.len)};
    *st = (struct tree_steps){.first = memory_array(p->frames.len + 1, sizeof *st->first)};
    for (size_t i = 0; i < p->frames.len; i++) {
        st->first[i] = (uint32_t)st->steps.len;
        frame_unfold(&n, st, &p->frames.data[i]);
    }
    st->first[p->frames.len] = (uint32_t)st->steps.len;
    free(n.function_symbol);
    free(n.module_symbol);
    map_release(&n.by_name);
}

void tree_steps_release(struct tree_steps *st)
{
    vector_release(&st->steps);
    free(st->first);
}

void tree_symbol_place(const struct tree *t, const struct tree_symbol *symbol, uint32_t line,
                       struct text *out)
{
    if (symbol->function == PROFILE_NONE)
        return;
    const struct profile_function *f = &t->profile->functions.data[symbol->function];
    const char *file = profile_text(t->profile, f->file);
    if (!*file)
        return;
    text_add(out, file);
    if (line || f->start_line)
        text_format(out, ":%" PRIu32, line ? line : f->start_line);
}
