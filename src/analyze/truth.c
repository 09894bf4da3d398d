/* Claims and how they are measured; see truth.h. */
#include "analyze/truth.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/calls.h"
#include "analyze/lines.h"
#include "analyze/report_internal.h"

#define BOUND_DEFAULT 5.0

struct parsing {
    struct truth *truth;
    const char *kind, *event, *within;
    double bound;
    unsigned line;
    bool begun;
};

static int bad(const struct parsing *p, const char *what, struct error *err)
{
    return error_set(err, FAULT_INPUT, "line %u of the truth %s", p->line, what);
}

/* "60%" or "1234" */
static bool read_value(const char *word, double *value, bool *share)
{
    char *end;
    errno = 0;
    *value = strtod(word, &end);
    *share = *end == '%';
    return end != word && !errno && isfinite(*value) && *value >= 0 && !end[*share ? 1 : 0];
}

static int add_claim(struct parsing *p, enum truth_what what, const char *name, const char *value,
                     struct error *err)
{
    struct truth *t = p->truth;
    struct truth_claim c = {
        .what = what, .kind = p->kind, .event = p->event, .within = p->within, .bound = p->bound};
    if (!read_value(value, &c.value, &c.share))
        return bad(p, "needs a number, or a share such as 60%", err);
    if (what == TRUTH_LINE && !strchr(name, ':'))
        return bad(p, "needs a file and a line, such as app.py:12", err);
    if (c.share && (what == TRUTH_COUNT || what == TRUTH_SUM))
        return bad(p, "can be no share: it is a number of its own", err);
    if (t->claims.len == TRUTH_CLAIMS_MAX)
        return bad(p, "is one claim too many", err);
    c.name = arena_strdup(&t->arena, name);
    *vector_push(&t->claims) = c;
    return 0;
}

static int take_setting(struct parsing *p, const char *word, const char *rest, struct error *err)
{
    double value;
    bool share;
    if (!*rest)
        return bad(p, "says too little", err);
    if (strcmp(word, "kind") == 0) {
        p->kind = arena_strdup(&p->truth->arena, rest);
    } else if (strcmp(word, "event") == 0) {
        p->event = arena_strdup(&p->truth->arena, rest);
        p->within = NULL;
    } else if (strcmp(word, "within") == 0) {
        p->within = arena_strdup(&p->truth->arena, rest);
    } else if (!read_value(rest, &value, &share)) {
        return bad(p, "needs a number", err);
    } else if (strcmp(word, "bound") == 0) {
        p->bound = value;
    } else {
        p->truth->spent = value < 1e18 ? (uint64_t)value : 0;
    }
    return 0;
}

/* The name may hold spaces: the value is the last word. */
static int take_line(struct parsing *p, char *line, struct error *err)
{
    static const char *const whats[] = {"self", "total", "count", "line", "sum"};
    static const char *const settings[] = {"kind", "event", "within", "bound", "spent"};
    char *rest = line, *word = strsep(&rest, " ");
    rest = rest ? rest + strspn(rest, " ") : line + strlen(line);
    if (!p->begun) {
        p->begun = strcmp(word, "truth") == 0 && strcmp(rest, "1") == 0;
        return p->begun ? 0 : bad(p, "must be \"truth 1\": what this file is", err);
    }
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (strcmp(word, settings[i]) == 0)
            return take_setting(p, word, rest, err);
    for (size_t i = 0; i < sizeof whats / sizeof *whats; i++) {
        if (strcmp(word, whats[i]) != 0)
            continue;
        char *value = strrchr(rest, ' ');
        if (i == TRUTH_SUM)
            return add_claim(p, TRUTH_SUM, "", rest, err);
        if (!value)
            return bad(p, "needs a name and a value", err);
        *value++ = 0;
        return add_claim(p, (enum truth_what)i, rest, value, err);
    }
    return bad(
        p, "starts with none of kind, event, within, bound, self, total, count, line and sum", err);
}

int truth_parse(struct truth *t, const char *text, struct error *err)
{
    *t = (struct truth){0};
    struct parsing p = {.truth = t, .kind = "profile", .event = "", .bound = BOUND_DEFAULT};
    char *copy = memory_strdup(text), *rest = copy;
    int rc = 0;
    for (char *line; !rc && (line = strsep(&rest, "\n"));) {
        p.line++;
        line[strcspn(line, "#\r")] = 0;
        for (char *c = line; *c; c++)
            *c = *c == '\t' ? ' ' : *c;
        line += strspn(line, " ");
        size_t len = strlen(line);
        while (len && line[len - 1] == ' ')
            line[--len] = 0;
        if (len)
            rc = take_line(&p, line, err);
    }
    if (!rc && !t->claims.len)
        rc = error_set(err, FAULT_INPUT, "the truth makes no claim");
    free(copy);
    return rc;
}

void truth_release(struct truth *t)
{
    vector_release(&t->claims);
    arena_release(&t->arena);
}

/* "f", "f(int)", "f (app.py:3)" and "ns::f" or "mod.f" all are f. */
static bool is_named(const char *name, const char *wanted)
{
    size_t len = strlen(wanted), whole = strcspn(name, "(");
    while (whole && name[whole - 1] == ' ')
        whole--;
    if (strcmp(name, wanted) == 0)
        return true;
    if (whole < len || strncmp(name + whole - len, wanted, len) != 0)
        return false;
    return whole == len || name[whole - len - 1] == ':' || name[whole - len - 1] == '.';
}

static struct cost function_cost(const struct tree *t, const char *name)
{
    struct cost cost = {0};
    uint32_t *key = memory_array(t->symbols.len + 1, sizeof *key);
    for (size_t i = 0; i < t->symbols.len; i++) {
        const struct tree_symbol *s = &t->symbols.data[i];
        const char *linkage =
            s->function == PROFILE_NONE
                ? ""
                : profile_text(t->profile, t->profile->functions.data[s->function].linkage);
        bool found =
            s->level == TREE_CODE && (is_named(s->name, name) || strcmp(linkage, name) == 0);
        key[i] = found ? 0 : TREE_NONE;
    }
    cost_by_key(t, key, &cost, 1);
    free(key);
    return cost;
}

static uint64_t calls_of(const struct selection *s, const char *name)
{
    const struct profile *p = s->profile;
    struct calls calls;
    uint64_t n = 0;
    calls_init(&calls, s);
    for (size_t i = 0; i < calls.functions.len; i++) {
        const struct calls_function *f = &calls.functions.data[i];
        if (f->function != PROFILE_NONE &&
            is_named(profile_text(p, p->functions.data[f->function].name), name))
            n += f->sum.calls;
    }
    calls_release(&calls);
    return n;
}

/* "app.py:12" is any file of that name, whatever folder it is in. */
static uint64_t line_value(const struct selection *s, const char *name)
{
    const struct profile *p = s->profile;
    const char *colon = strrchr(name, ':');
    unsigned long number = strtoul(colon + 1, NULL, 10);
    size_t len = (size_t)(colon - name);
    struct lines lines;
    uint64_t value = 0;
    lines_init(&lines, s, false);
    for (size_t i = 0; i < lines.lines.len; i++) {
        const struct line *l = &lines.lines.data[i];
        const char *file = profile_text(p, p->functions.data[l->function].file);
        size_t whole = strlen(file);
        if (l->number == number && whole >= len && !strncmp(file + whole - len, name, len) &&
            (whole == len || file[whole - len - 1] == '/'))
            value += l->cost.total;
    }
    lines_release(&lines);
    return value;
}

static double measure(const struct truth_claim *c, const struct selection *s, const struct tree *t)
{
    struct cost cost = {0};
    switch (c->what) {
    case TRUTH_SUM:
        return (double)s->value;
    case TRUTH_LINE:
        return (double)line_value(s, c->name);
    case TRUTH_COUNT:
        if (strcmp(s->label.data, "calls") == 0)
            return (double)calls_of(s, c->name);
        return (double)function_cost(t, c->name).total_count;
    case TRUTH_SELF:
    case TRUTH_TOTAL:
        cost = function_cost(t, c->name);
        break;
    }
    return (double)(c->what == TRUTH_SELF ? cost.self : cost.total);
}

static void judge(struct truth_claim *c)
{
    c->error = fabs(c->measured - c->value);
    if (!c->share) /* of nothing, anything is too much */
        c->error = c->value > 0 ? 100 * c->error / c->value : c->error > 0 ? INFINITY : 0;
}

static void look_up(struct truth_claim *c, const struct selection *s, const struct tree *t)
{
    c->measured = measure(c, s, t);
    c->known = true;
    c->unit = c->what == TRUTH_COUNT ? UNIT_COUNT : s->unit;
    double whole = c->within ? (double)function_cost(t, c->within).total : (double)s->value;
    if (c->share)
        c->measured = whole > 0 ? 100 * c->measured / whole : 0;
    judge(c);
}

/* The first of "a|b|c" that the profile has. "cpu" of another tool may be called anything: then it
 * is what its file is about. */
static bool select_event(const struct profile *p, const char *events, struct selection *s)
{
    char *copy = memory_strdup(events), *rest = copy;
    bool found = false;
    for (char *name; !found && (name = strsep(&rest, "|"));) {
        const char *one = name;
        struct selection_options o = {.events = &one, .event_count = 1};
        bool any =
            !*name || (strcmp(name, "cpu") == 0 && profile_event_find(p, "cpu") == PROFILE_NONE);
        found = selection_init(s, p, any ? NULL : &o, NULL) == 0;
        if (!found)
            selection_release(s);
    }
    free(copy);
    return found;
}

void truth_check(struct truth *t, const struct profile *p)
{
    for (size_t i = 0; i < t->claims.len;) {
        struct truth_claim *c = &t->claims.data[i];
        struct selection s;
        struct tree tree;
        size_t end = i;
        while (end < t->claims.len && strcmp(t->claims.data[end].event, c->event) == 0)
            end++;
        if (select_event(p, c->event, &s)) {
            tree_init(&tree, &s, NULL);
            for (size_t k = i; k < end; k++)
                look_up(&t->claims.data[k], &s, &tree);
            tree_release(&tree);
            selection_release(&s);
        }
        i = end;
    }
}

int truth_add(struct truth *t, const struct truth *other, struct error *err)
{
    bool same = t->claims.len == other->claims.len;
    for (size_t i = 0; i < t->claims.len && same; i++) {
        struct truth_claim *c = &t->claims.data[i];
        const struct truth_claim *o = &other->claims.data[i];
        same = c->what == o->what && c->share == o->share && strcmp(c->name, o->name) == 0;
        c->known &= o->known;
        c->value += o->value;
        c->measured += o->measured;
    }
    return same ? 0 : error_set(err, FAULT_INPUT, "the program claims another thing each time");
}

void truth_divide(struct truth *t, unsigned runs)
{
    for (size_t i = 0; i < t->claims.len; i++) {
        struct truth_claim *c = &t->claims.data[i];
        c->value /= runs;
        c->measured /= runs;
        judge(c);
    }
}

bool truth_holds(const struct truth_claim *c)
{
    return c->known && c->error <= c->bound;
}
