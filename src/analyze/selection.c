/* Turns what the user asked for into yes or no for every event, thread and stack; see selection.h.
 */
#include "analyze/selection.h"

#include <fnmatch.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define LISTED 12 /* alternatives that a sentence names */

static bool glob_matches(const char *pattern, const char *name)
{
    return !strcmp(pattern, name) || fnmatch(pattern, name, 0) == 0;
}

/* "a, b, c and 5 more" */
static void list_add(struct text *list, size_t *n, const char *item)
{
    if ((*n)++ >= LISTED)
        return;
    if (list->len)
        text_add(list, ", ");
    text_add_printable(list, item);
}

static const char *list_end(struct text *list, size_t n)
{
    if (n > LISTED)
        text_format(list, " and %zu more", n - LISTED);
    return n ? list->data : "none";
}

bool selection_event_waits(const struct profile *p, uint32_t event)
{
    return text_starts(profile_text(p, p->events.data[event].name), "off-cpu:");
}

/* The noun of the chosen events if they share one. */
static const struct noun {
    const char *event, *one, *many;
} nouns[] = {{"heap:allocated", "allocation", "allocations"},
             {"heap:temporary", "allocation", "allocations"},
             {"heap:mapped", "mapping", "mappings"},
             {"heap:files", "mapping", "mappings"},
             {"heap:for-allocator", "mapping", "mappings"},
             {"heap:", "block", "blocks"},
             {"", "sample", "samples"}};

static const struct noun *noun_of(const struct selection *s)
{
    const struct noun *samples = &nouns[sizeof nouns / sizeof *nouns - 1], *common = NULL;
    for (size_t i = 0; i < s->profile->events.len; i++) {
        const struct noun *n = nouns;
        if (!s->event[i])
            continue;
        while (!text_starts(profile_text(s->profile, s->profile->events.data[i].name), n->event))
            n++;
        if (common && strcmp(common->many, n->many))
            return samples;
        common = n;
    }
    return common ? common : samples;
}

const char *selection_noun(const struct selection *s)
{
    return noun_of(s)->many;
}

const char *selection_noun_of(const struct selection *s, uint64_t count)
{
    return count == 1 ? noun_of(s)->one : noun_of(s)->many;
}

static int fault_event(const struct profile *p, const char *name, struct error *err)
{
    struct text list = TEXT_INIT;
    size_t n = 0;
    for (size_t i = 0; i < p->events.len; i++)
        list_add(&list, &n, profile_text(p, p->events.data[i].name));
    const char *there = list_end(&list, n);
    if (!strcmp(name, "wall"))
        error_set(err, FAULT_MISSING,
                  "wall time needs off-CPU events, and this recording has none; its events: %s",
                  there);
    else
        error_set(err, FAULT_MISSING, "no event \"%s\" in this recording; its events: %s", name,
                  there);
    text_release(&list);
    return FAULT_MISSING;
}

/* cpu and every off-cpu:*; false if there is no off-cpu. */
static bool choose_wall(struct selection *s)
{
    const struct profile *p = s->profile;
    bool any = false;
    for (uint32_t i = 0; i < p->events.len; i++) {
        if (!selection_event_waits(p, i))
            continue;
        any = s->event[i] = true;
    }
    uint32_t cpu = profile_event_find(p, "cpu");
    if (any && cpu != PROFILE_NONE)
        s->event[cpu] = true;
    return any;
}

static bool choose_event(struct selection *s, const char *name)
{
    const struct profile *p = s->profile;
    uint32_t exact = profile_event_find(p, name);
    if (exact != PROFILE_NONE)
        return s->event[exact] = true;
    if (!strcmp(name, "wall"))
        return choose_wall(s);
    bool any = false;
    for (size_t i = 0; i < p->events.len; i++)
        if (glob_matches(name, profile_text(p, p->events.data[i].name)))
            any = s->event[i] = true;
    return any;
}

static void choose_default_event(struct selection *s)
{
    const struct profile *p = s->profile;
    uint32_t cpu = profile_event_find(p, "cpu");
    if (cpu != PROFILE_NONE && p->events.data[cpu].samples) {
        s->event[cpu] = true;
        return;
    }
    for (size_t i = 0; i < p->events.len; i++) {
        if (p->events.data[i].samples || p->events.data[i].value) {
            s->event[i] = true;
            return;
        }
    }
    if (p->events.len)
        s->event[cpu != PROFILE_NONE ? cpu : 0] = true;
}

/* The unit that all chosen events share, and what to call them. */
static int settle_events(struct selection *s, struct error *err)
{
    const struct profile *p = s->profile;
    uint32_t first = PROFILE_NONE;
    bool runs = false, waits = false, all_waits = true;
    for (uint32_t i = 0; i < p->events.len; i++) {
        bool off = selection_event_waits(p, i);
        all_waits = all_waits && (!off || s->event[i]);
        if (!s->event[i])
            continue;
        const char *name = profile_text(p, p->events.data[i].name);
        if (first == PROFILE_NONE)
            first = i;
        else if (p->events.data[i].unit != p->events.data[first].unit)
            return error_set(err, FAULT_USAGE,
                             "events \"%s\" and \"%s\" cannot be added up: they have different "
                             "units; choose one with --event",
                             profile_text(p, p->events.data[first].name), name);
        runs = runs || !off;
        waits = waits || off;
        text_format(&s->label, "%s%s", s->label.len ? ", " : "", name);
    }
    s->unit = first == PROFILE_NONE ? UNIT_COUNT : p->events.data[first].unit;
    s->waits = runs && waits;
    if (s->waits && all_waits) {
        text_clear(&s->label);
        text_add(&s->label, "wall");
    }
    return 0;
}

static int choose_events(struct selection *s, const struct selection_options *o, struct error *err)
{
    for (size_t i = 0; i < o->event_count; i++)
        if (!choose_event(s, o->events[i]))
            return fault_event(s->profile, o->events[i], err);
    if (!o->event_count)
        choose_default_event(s);
    return settle_events(s, err);
}

static int fault_pid(const struct profile *p, int32_t pid, struct error *err)
{
    struct text list = TEXT_INIT, item = TEXT_INIT;
    size_t n = 0;
    for (uint32_t i = 0; i < p->processes.len; i++) {
        text_clear(&item);
        text_format(&item, "%d (%s)", p->processes.data[i].pid, profile_process_name(p, i));
        list_add(&list, &n, item.data);
    }
    error_set(err, FAULT_MISSING, "no process %d in this recording; its processes: %s", pid,
              list_end(&list, n));
    text_release(&list);
    text_release(&item);
    return FAULT_MISSING;
}

static int choose_pids(struct selection *s, const struct selection_options *o, struct error *err)
{
    const struct profile *p = s->profile;
    if (!o->pid_count)
        return 0;
    bool *process = memory_array(p->processes.len + 1, sizeof *process);
    int result = 0;
    for (size_t i = 0; i < o->pid_count && !result; i++) {
        bool any = false;
        for (size_t j = 0; j < p->processes.len; j++)
            if (p->processes.data[j].pid == o->pids[i])
                any = process[j] = true;
        if (!any)
            result = fault_pid(p, o->pids[i], err);
    }
    for (size_t i = 0; i < p->threads.len; i++)
        s->thread[i] = process[p->threads.data[i].process];
    free(process);
    return result;
}

static int fault_thread(const struct selection *s, const char *wanted, struct error *err)
{
    const struct profile *p = s->profile;
    struct text list = TEXT_INIT, item = TEXT_INIT;
    size_t n = 0;
    for (size_t i = 0; i < p->threads.len; i++) {
        if (!s->thread[i])
            continue;
        text_clear(&item);
        text_format(&item, "%d (%s)", p->threads.data[i].tid,
                    profile_text(p, p->threads.data[i].name));
        list_add(&list, &n, item.data);
    }
    error_set(err, FAULT_MISSING, "no thread \"%s\" among those chosen; there are: %s", wanted,
              list_end(&list, n));
    text_release(&list);
    text_release(&item);
    return FAULT_MISSING;
}

static int choose_threads(struct selection *s, const struct selection_options *o, struct error *err)
{
    const struct profile *p = s->profile;
    if (!o->thread_count)
        return 0;
    bool *wanted = memory_array(p->threads.len + 1, sizeof *wanted);
    int result = 0;
    for (size_t i = 0; i < o->thread_count && !result; i++) {
        const char *name = o->threads[i];
        char *end;
        long tid = strtol(name, &end, 10);
        bool number = *name && !*end, any = false;
        for (size_t j = 0; j < p->threads.len; j++) {
            const struct profile_thread *t = &p->threads.data[j];
            if (s->thread[j] &&
                ((number && t->tid == tid) || glob_matches(name, profile_text(p, t->name))))
                any = wanted[j] = true;
        }
        if (!any)
            result = fault_thread(s, name, err);
    }
    for (size_t i = 0; i < p->threads.len; i++)
        s->thread[i] = s->thread[i] && wanted[i];
    free(wanted);
    return result;
}

struct pattern {
    const char *text;
    regex_t regex;
    bool compiled;
};

/* Braces and back-references are taken literally: C++ and Rust names are full of the former, and
 * both make the C library's matcher exponential in time or memory. */
static void pattern_init(struct pattern *pt, const char *text)
{
    *pt = (struct pattern){.text = text};
    bool plain = strchr(text, '{') != NULL;
    for (const char *c = text; *c && !plain; c++)
        if (*c == '\\' && c[1])
            plain = *++c >= '1' && *c <= '9';
    pt->compiled = !plain && regcomp(&pt->regex, text, REG_EXTENDED | REG_NOSUB) == 0;
}

static bool pattern_matches(const struct pattern *pt, const char *name)
{
    return strstr(name, pt->text) || (pt->compiled && !regexec(&pt->regex, name, 0, NULL, 0));
}

static bool *match_functions(const struct profile *p, const char *function)
{
    bool *match = memory_array(p->functions.len + 1, sizeof *match);
    struct pattern pt;
    pattern_init(&pt, function);
    for (size_t i = 0; i < p->functions.len; i++)
        match[i] = pattern_matches(&pt, profile_text(p, p->functions.data[i].name));
    if (pt.compiled)
        regfree(&pt.regex);
    return match;
}

static bool *match_modules(const struct profile *p, const char *module)
{
    bool *match = memory_array(p->modules.len + 1, sizeof *match);
    for (uint32_t i = 0; i < p->modules.len; i++)
        match[i] = strstr(profile_text(p, p->modules.data[i].path), module) ||
                   glob_matches(module, profile_module_name(p, i));
    return match;
}

static bool frame_matches(const struct selection *s, const struct profile_frame *f,
                          const bool *function, const bool *module)
{
    const struct profile *p = s->profile;
    if (module && (f->module >= p->modules.len || !module[f->module]))
        return false;
    if (!function)
        return true;
    const struct profile_location *at = p->locations.data + f->first_location;
    uint32_t i = s->no_inline && f->location_count ? f->location_count - 1 : 0;
    for (; i < f->location_count; i++)
        if (function[at[i].function])
            return true;
    return false;
}

/* With both a function and a module, one frame must match both. */
static int choose_stacks(struct selection *s, const struct selection_options *o, struct error *err)
{
    const struct profile *p = s->profile;
    if (!o->function && !o->module)
        return 0;
    bool *function = o->function ? match_functions(p, o->function) : NULL;
    bool *module = o->module ? match_modules(p, o->module) : NULL;
    bool *frame = memory_array(p->frames.len + 1, sizeof *frame), any = false;
    for (size_t i = 0; i < p->frames.len; i++)
        frame[i] = frame_matches(s, &p->frames.data[i], function, module);
    s->stack = memory_array(p->stacks.len, sizeof *s->stack);
    for (size_t i = 1; i < p->stacks.len; i++) {
        const struct profile_stack *st = &p->stacks.data[i];
        s->stack[i] = s->stack[st->parent] || frame[st->frame];
        any = any || s->stack[i];
    }
    free(function);
    free(module);
    free(frame);
    if (any)
        return 0;
    if (!o->function)
        return error_set(err, FAULT_MISSING, "no stack passes through a module \"%s\"", o->module);
    return error_set(err, FAULT_MISSING,
                     "no stack contains a function that matches \"%s\"%s%s%s; `sonde report` lists "
                     "the functions there are",
                     o->function, o->module ? " in a module \"" : "", o->module ? o->module : "",
                     o->module ? "\"" : "");
}

void selection_add_up(struct selection *s)
{
    size_t cursor = 0;
    s->value = s->count = 0;
    for (const struct profile_cell *c; (c = selection_next(s, &cursor));) {
        s->value += c->value;
        s->count += c->count;
    }
}

int selection_init(struct selection *s, const struct profile *p, const struct selection_options *o,
                   struct error *err)
{
    static const struct selection_options none;
    if (!o)
        o = &none;
    *s = (struct selection){.profile = p, .no_inline = o->no_inline, .label = TEXT_INIT};
    s->event = memory_array(p->events.len + 1, sizeof *s->event);
    s->thread = memory_array(p->threads.len + 1, sizeof *s->thread);
    memset(s->thread, true, p->threads.len * sizeof *s->thread);
    int result = choose_events(s, o, err);
    if (!result)
        result = choose_pids(s, o, err);
    if (!result)
        result = choose_threads(s, o, err);
    if (!result)
        result = choose_stacks(s, o, err);
    if (!result)
        selection_add_up(s);
    return result;
}

void selection_init_event(struct selection *s, const struct selection *like, const char *event)
{
    const struct profile *p = like->profile;
    uint32_t found = profile_event_find(p, event);
    *s = (struct selection){.profile = p, .no_inline = like->no_inline, .label = TEXT_INIT};
    s->event = memory_array(p->events.len + 1, sizeof *s->event);
    s->thread = memory_array(p->threads.len + 1, sizeof *s->thread);
    memcpy(s->thread, like->thread, p->threads.len * sizeof *s->thread);
    if (like->stack) {
        s->stack = memory_array(p->stacks.len, sizeof *s->stack);
        memcpy(s->stack, like->stack, p->stacks.len * sizeof *s->stack);
    }
    text_add(&s->label, event);
    s->unit = UNIT_BYTES;
    if (found == PROFILE_NONE)
        return;
    s->event[found] = true;
    s->unit = p->events.data[found].unit;
    selection_add_up(s);
}

void selection_release(struct selection *s)
{
    free(s->event);
    free(s->thread);
    free(s->stack);
    text_release(&s->label);
}

const struct profile_cell *selection_next(const struct selection *s, size_t *cursor)
{
    const struct profile *p = s->profile;
    for (size_t i = *cursor; i < p->cells.len; i++) {
        const struct profile_cell *c = &p->cells.data[i];
        if (selection_has(s, c->event, c->thread, c->stack)) {
            *cursor = i + 1;
            return c;
        }
    }
    *cursor = p->cells.len;
    return NULL;
}
