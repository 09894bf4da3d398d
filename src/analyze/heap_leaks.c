/* What nobody freed, but for what is known; see heap.h. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/heap_internal.h"
#include "base/memory.h"

/* The C and C++ runtimes keep these for whoever comes last. */
static const char built_in[] = "_IO_file_doallocate\n"
                               "_dl_allocate_tls\n"
                               "_GLOBAL__sub_I_eh_alloc.cc\n";

void suppressions_init(struct suppressions *s)
{
    *s = (struct suppressions){0};
    suppressions_add(s, built_in);
}

void suppressions_add(struct suppressions *s, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        const char *at = text + strspn(text, " \t\r");
        size_t end = len;
        while (end && strchr(" \t\r", text[end - 1]))
            end--;
        if (at < text + end && *at != '#') {
            char *pattern = memory_alloc((size_t)(text + end - at) + 1);
            memcpy(pattern, at, (size_t)(text + end - at));
            *vector_push(&s->patterns) = pattern;
        }
        text += len + (text[len] == '\n');
    }
}

void suppressions_release(struct suppressions *s)
{
    for (size_t i = 0; i < s->patterns.len; i++)
        free(s->patterns.data[i]);
    vector_release(&s->patterns);
}

static bool matches(const struct suppressions *s, const char *name)
{
    for (size_t i = 0; *name && i < s->patterns.len; i++)
        if (!strcmp(s->patterns.data[i], name) || !fnmatch(s->patterns.data[i], name, 0))
            return true;
    return false;
}

/* By its whole name, its name for the linker, or its name without parameters. */
static bool matches_function(const struct suppressions *s, const struct profile *p,
                             const struct profile_function *f)
{
    const char *name = profile_text(p, f->name), *open = strchr(name, '(');
    if (matches(s, name) || matches(s, profile_text(p, f->linkage)))
        return true;
    if (!open || open == name)
        return false;
    struct text bare = TEXT_INIT;
    text_add_len(&bare, name, (size_t)(open - name));
    bool yes = matches(s, bare.data);
    text_release(&bare);
    return yes;
}

/* The pool for exceptions, which libstdc++ asks for when it is loaded, if it has no symbols. */
static bool is_pool(const struct profile *p, uint32_t stack)
{
    uint32_t parent = p->stacks.data[stack].parent;
    if (!parent)
        return false;
    const char *inner = profile_module_name(p, p->frames.data[p->stacks.data[stack].frame].module);
    const char *outer = profile_module_name(p, p->frames.data[p->stacks.data[parent].frame].module);
    return text_starts(inner, "libstdc++.so") && text_starts(outer, "ld-linux");
}

/* By stack: is one of its functions, or the module at its inner end, suppressed? */
static bool *match_stacks(const struct suppressions *quiet, const struct profile *p)
{
    bool *function = memory_array(p->functions.len + 1, sizeof *function);
    bool *module = memory_array(p->modules.len + 1, sizeof *module);
    bool *below = memory_array(p->stacks.len, sizeof *below);
    bool *stack = memory_array(p->stacks.len, sizeof *stack);
    for (size_t i = 0; i < p->functions.len; i++)
        function[i] = matches_function(quiet, p, &p->functions.data[i]);
    for (uint32_t i = 0; i < p->modules.len; i++)
        module[i] = matches(quiet, profile_module_name(p, i)) ||
                    matches(quiet, profile_text(p, p->modules.data[i].path));
    for (uint32_t i = 1; i < p->stacks.len; i++) {
        const struct profile_frame *f = &p->frames.data[p->stacks.data[i].frame];
        below[i] = below[p->stacks.data[i].parent];
        for (uint32_t k = 0; k < f->location_count && !below[i]; k++)
            below[i] = function[p->locations.data[f->first_location + k].function];
        stack[i] = below[i] || is_pool(p, i) || (f->module < p->modules.len && module[f->module]);
    }
    free(function);
    free(module);
    free(below);
    return stack;
}

/* Leaves processes that still ran, or were killed: what those held was not forgotten. Returns
 * what they held. */
static uint64_t leave_ended(struct selection *s)
{
    const struct profile *p = s->profile;
    uint64_t before = s->value;
    for (size_t i = 0; i < p->threads.len; i++)
        s->thread[i] =
            s->thread[i] && heap_ended_in_order(&p->processes.data[p->threads.data[i].process]);
    selection_add_up(s);
    return before - s->value;
}

/* Returns what was suppressed. */
static uint64_t leave_loud(struct selection *s, const struct suppressions *quiet)
{
    const struct profile *p = s->profile;
    uint64_t before = s->value;
    bool *stack = match_stacks(quiet, p);
    for (size_t i = 0; i < p->stacks.len; i++)
        stack[i] = !stack[i] && (!s->stack || s->stack[i]);
    free(s->stack);
    s->stack = stack;
    selection_add_up(s);
    return before - s->value;
}

static void section_sums(struct view *v, const struct selection *s, uint64_t quiet, uint64_t held)
{
    struct view_section *f = view_add(v, VIEW_FACTS, "leaks", "");
    struct view_fact *fact;
    view_fact(f, "not freed", "leaked", "leaked", VIEW_BYTES, view_number(s->value));
    fact = view_fact(f, "not freed", "blocks", "blocks", VIEW_COUNT, view_number(s->count));
    fact->before = " in ";
    fact->after = report_plural(s->count, " block", " blocks");
    fact->glued = true;
    fact = view_fact(f, "not freed", "suppressed", "suppressed", VIEW_BYTES, view_number(quiet));
    fact->after = " suppressed";
    fact->hidden = !quiet;
    fact = view_fact(f, "besides", "held", "held by others", VIEW_BYTES, view_number(held));
    fact->after = " held by processes that were killed or still ran";
    fact->hidden = !held;
}

uint64_t report_leaks(struct view *v, const struct report *r, const struct suppressions *quiet)
{
    struct heap_part part = {.r = *r};
    selection_init_event(&part.selection, r->selection, "heap:live");
    uint64_t held = leave_ended(&part.selection);
    uint64_t suppressed = leave_loud(&part.selection, quiet);
    tree_init(&part.tree, &part.selection, &(struct tree_options){.by_module = true});
    part.r.selection = &part.selection;
    part.r.tree = &part.tree;
    view_init(v, "leaks", "not freed at the end", "stacks");
    section_sums(v, &part.selection, suppressed, held);
    section_stacks(v, &part.r, "stacks", "Stacks", r->top);
    uint64_t leaked = part.selection.value;
    heap_part_release(&part);
    return leaked;
}

void report_usual_leaks(struct view *v, const struct report *r)
{
    struct suppressions quiet;
    suppressions_init(&quiet);
    report_leaks(v, r, &quiet);
    suppressions_release(&quiet);
}
