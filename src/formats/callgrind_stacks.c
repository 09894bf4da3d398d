/*
 * Stacks from a call graph. Callgrind counts who called whom and what each call cost, not whole
 * stacks, so these are put together as gprof does: a function's own cost came through its
 * callers in proportion to what their calls cost. What each function and line cost by
 * itself stays exact; ways of less than a ten-thousandth of the whole go with the widest.
 */
#include <stdlib.h>
#include <string.h>

#include "formats/callgrind_internal.h"

#define LEAST_PART 10000
#define PATH_MAX_LEN 128

struct weaver {
    struct callgrind *c;
    uint32_t event, thread;
    size_t column;
    uint64_t total;
    uint32_t *first; /* function -> its calls from elsewhere in `incoming`; one more at the end */
    VECTOR(uint32_t) incoming; /* entries */
    uint32_t *own;             /* function -> its own lines in `lines`; one more at the end */
    VECTOR(uint32_t) lines;
    uint32_t path[PATH_MAX_LEN]; /* entries that call, the innermost first */
    size_t depth;
    bool *on_path;      /* by function */
    size_t line_at;     /* which own line pays next, */
    uint64_t line_paid; /* and how much of it is paid */
};

static uint64_t value_of(const struct weaver *w, uint32_t entry)
{
    return w->c->values.data[w->c->entries.data[entry].values + w->column];
}

/* Lists entries by `key`: the called function, or (own) the function itself. */
static uint32_t *group(const struct callgrind *c, bool calls, uint32_t **first)
{
    size_t functions = c->functions.len, n = c->entries.len;
    uint32_t *at = memory_array(functions + 2, sizeof *at);
    uint32_t *list = memory_array(n + 1, sizeof *list);
    for (size_t i = 0; i < n; i++) {
        const struct callgrind_entry *e = &c->entries.data[i];
        if ((e->callee != PROFILE_NONE) == calls)
            at[(calls ? e->callee : e->function) + 1]++;
    }
    for (size_t i = 0; i <= functions; i++)
        at[i + 1] += at[i];
    uint32_t *next = memory_dup(at, (functions + 2) * sizeof *at);
    for (size_t i = 0; i < n; i++) {
        const struct callgrind_entry *e = &c->entries.data[i];
        if ((e->callee != PROFILE_NONE) == calls)
            list[next[calls ? e->callee : e->function]++] = (uint32_t)i;
    }
    free(next);
    *first = at;
    return list;
}

static int frame_of(struct weaver *w, uint32_t entry, uint32_t *frame, struct error *err)
{
    struct import *im = &w->c->im;
    const struct callgrind_entry *e = &w->c->entries.data[entry];
    const struct callgrind_function *f = &w->c->functions.data[e->function];
    const char *file = profile_text(im->profile, e->file);
    uint32_t module = import_module(im, profile_text(im->profile, f->object));
    if (module == PROFILE_NONE)
        return import_too_many(im, "objects", IMPORT_MODULES_MAX, err);
    *frame = import_frame(im, module, profile_text(im->profile, f->name),
                          strcmp(file, "???") ? file : "", 0, e->line);
    return 0;
}

/* Puts `amount` of the function's own cost under the present path, line after line. */
static int pay(struct weaver *w, uint32_t function, uint64_t amount, struct error *err)
{
    struct import *im = &w->c->im;
    uint32_t stack = 0, frame;
    int rc = 0;
    for (size_t i = w->depth; i-- > 0 && !rc;) {
        rc = frame_of(w, w->path[i], &frame, err);
        if (!rc)
            rc = import_push(im, &stack, frame, err);
    }
    while (amount && !rc && w->line_at < w->own[function + 1]) {
        uint32_t entry = w->lines.data[w->line_at], leaf = stack;
        uint64_t left = value_of(w, entry) - w->line_paid, part = left < amount ? left : amount;
        rc = frame_of(w, entry, &frame, err);
        if (!rc && part)
            rc = import_push(im, &leaf, frame, err);
        bool counts = im->profile->events.data[w->event].unit == UNIT_COUNT;
        if (!rc && part)
            rc = import_count(im, w->event, w->thread, leaf, counts ? part : 1, part, err);
        amount -= part;
        w->line_paid += part;
        if (w->line_paid == value_of(w, entry)) {
            w->line_at++;
            w->line_paid = 0;
        }
    }
    return rc;
}

/* Is that call one that the cost may have come through? */
static bool may_come(const struct weaver *w, uint32_t entry)
{
    return value_of(w, entry) && !w->on_path[w->c->entries.data[entry].function];
}

/* The sum of the calls that may lead here, and the dearest of them. */
static uint64_t weigh(const struct weaver *w, uint32_t at, uint32_t *dearest)
{
    uint64_t sum = 0;
    *dearest = PROFILE_NONE;
    for (uint32_t i = w->first[at]; i < w->first[at + 1]; i++) {
        uint32_t entry = w->incoming.data[i];
        if (!may_come(w, entry))
            continue;
        if (__builtin_add_overflow(sum, value_of(w, entry), &sum))
            return 0;
        if (*dearest == PROFILE_NONE || value_of(w, entry) > value_of(w, *dearest))
            *dearest = entry;
    }
    return sum;
}

static uint64_t part_of(const struct weaver *w, uint64_t amount, uint64_t cost, uint64_t sum)
{
    uint64_t part = (uint64_t)((double)amount * ((double)cost / (double)sum));
    return part < w->total / LEAST_PART || part > amount ? 0 : part;
}

/* Follows callers from `at` upwards; recursion is no deeper than a path may be long. */
static int climb(struct weaver *w, uint32_t function, uint32_t at, uint64_t amount,
                 struct error *err)
{
    uint32_t dearest;
    uint64_t sum = w->depth < PATH_MAX_LEN ? weigh(w, at, &dearest) : 0, left = amount;
    int rc = 0;
    if (!sum)
        return pay(w, function, amount, err);
    w->on_path[at] = true;
    for (uint32_t i = w->first[at]; i <= w->first[at + 1] && !rc; i++) {
        bool last = i == w->first[at + 1];
        uint32_t entry = last ? dearest : w->incoming.data[i];
        if (!last && (entry == dearest || !may_come(w, entry)))
            continue;
        uint64_t part = last ? left : part_of(w, amount, value_of(w, entry), sum);
        part = part < left ? part : left;
        if (!part)
            continue;
        left -= part;
        w->path[w->depth++] = entry;
        rc = climb(w, function, w->c->entries.data[entry].function, part, err);
        w->depth--;
    }
    w->on_path[at] = false;
    return rc;
}

static int weave(struct weaver *w, struct error *err)
{
    int rc = 0;
    w->total = 0;
    for (size_t i = 0; i < w->lines.len; i++)
        if (__builtin_add_overflow(w->total, value_of(w, w->lines.data[i]), &w->total))
            return source_bad(w->c->im.source, source_offset(w->c->im.source), err,
                              "costs add up to more than 64 bits can hold");
    for (uint32_t f = 0; f < w->c->functions.len && !rc; f++) {
        uint64_t own = 0;
        for (uint32_t i = w->own[f]; i < w->own[f + 1]; i++)
            own += value_of(w, w->lines.data[i]);
        w->line_at = w->own[f];
        w->line_paid = 0;
        w->depth = 0;
        if (own)
            rc = climb(w, f, f, own, err);
    }
    return rc;
}

int callgrind_stacks(struct callgrind *c, struct error *err)
{
    struct weaver w = {.c = c};
    int rc = 0;
    w.thread = import_thread(&c->im, import_only_process(&c->im, c->pid ? c->pid : 1), 1, "");
    w.incoming.data = group(c, true, &w.first);
    w.lines.data = group(c, false, &w.own);
    w.incoming.len = w.first[c->functions.len];
    w.lines.len = w.own[c->functions.len];
    w.on_path = memory_array(c->functions.len + 1, sizeof *w.on_path);
    for (w.column = 0; w.column < c->event_count && !rc; w.column++) {
        w.event = c->events[w.column];
        rc = weave(&w, err);
    }
    if (!rc && w.incoming.len)
        import_note(
            &c->im, NOTE_INFO,
            "callgrind keeps who called whom, not whole stacks: these are put together from "
            "it in proportion; what functions and lines cost by themselves is exact");
    free(w.first);
    free(w.own);
    free(w.incoming.data);
    free(w.lines.data);
    free(w.on_path);
    return rc;
}
