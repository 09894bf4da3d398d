/* Lines of figures; see panel.h. */
#include "top/panel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define FRAMES_AT 40 /* column of a stack's frames */

void panel_release(struct panel *r)
{
    for (size_t i = 0; i < r->len; i++)
        free(r->data[i].text);
    free(r->data);
    free(r->heading);
    *r = (struct panel){0};
}

const char *panel_pane_name(enum panel_pane pane)
{
    static const char *const names[PANES] = {"functions", "hot path", "heap", "threads"};
    return names[pane];
}

const char *panel_sort_name(enum panel_sort sort)
{
    static const char *const names[SORTS] = {"cpu", "memory", "name", "tree"};
    return names[sort];
}

/* Cuts printable text to that many columns: a code point is taken for one. */
static char *fit(struct text *t, unsigned width)
{
    size_t columns = 0, at = 0;
    while (at < t->len) {
        if (((unsigned char)t->data[at] & 0xc0) != 0x80 && columns++ == width)
            break;
        at++;
    }
    t->len = at;
    text_reserve(t, 1);
    t->data[at] = 0;
    return text_take(t);
}

static struct row *add(struct panel *r, struct text *t, const struct panel_options *o)
{
    struct row *row = vector_push(r);
    *row = (struct row){.text = fit(t, o->width)};
    return row;
}

static void head(struct panel *r, const struct panel_options *o, const char *text)
{
    struct text t = TEXT_INIT;
    text_add(&t, text);
    r->heading = fit(&t, o->width);
}

static bool passes(const struct panel_options *o, const char *name)
{
    return !o->filter || !*o->filter || strcasestr(name, o->filter);
}

/* Right-aligned in so many columns, after a space. */
static void put(struct text *t, unsigned width, const char *value)
{
    size_t columns = text_columns(value);
    text_add_repeat(t, ' ', columns < width ? width - columns + 1 : 1);
    text_add(t, value);
}

static void put_bytes(struct text *t, unsigned width, int64_t bytes)
{
    struct text v = TEXT_INIT;
    if (bytes < 0)
        text_add(&v, "-");
    else
        text_add_bytes(&v, (uint64_t)bytes);
    put(t, width, v.data);
    text_release(&v);
}

static void put_duration(struct text *t, unsigned width, uint64_t ns)
{
    struct text v = TEXT_INIT;
    text_add_duration(&v, ns);
    put(t, width, v.data);
    text_release(&v);
}

static void put_percent(struct text *t, double part)
{
    char v[32];
    snprintf(v, sizeof v, "%.1f", part * 100);
    put(t, 6, v);
}

static double part_of(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

static bool is_open(const struct panel_options *o, uint64_t a, uint64_t b)
{
    return o->open && map_get(o->open, a, b);
}

struct order {
    const struct figures *figures;
    enum panel_sort sort;
};

static int compare_processes(const void *a, const void *b, void *context)
{
    const struct order *order = context;
    const struct figures_process *x = &order->figures->processes.data[*(const size_t *)a];
    const struct figures_process *y = &order->figures->processes.data[*(const size_t *)b];
    if (x->ended != y->ended)
        return x->ended - y->ended;
    if (order->sort == SORT_NAME && strcmp(x->name, y->name) != 0)
        return strcmp(x->name, y->name);
    int64_t memory_x = x->heap > 0 ? x->heap : x->rss, memory_y = y->heap > 0 ? y->heap : y->rss;
    if (order->sort == SORT_MEMORY && memory_x != memory_y)
        return memory_x < memory_y ? 1 : -1;
    if (order->sort == SORT_CPU && x->rate != y->rate)
        return x->rate < y->rate ? 1 : -1;
    if (order->sort == SORT_CPU && x->cpu != y->cpu)
        return x->cpu < y->cpu ? 1 : -1;
    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* Without the folders of the program, which say little and take much room. */
static const char *short_command(const struct figures_process *p)
{
    const char *command = *p->command ? p->command : p->name;
    size_t program = strcspn(command, " ");
    while (program && command[program - 1] != '/')
        program--;
    return command + program;
}

static void add_process(struct panel *r, const struct figures_process *p,
                        const struct panel_options *o)
{
    struct text t = TEXT_INIT;
    char number[24];
    snprintf(number, sizeof number, "%d", p->pid);
    put(&t, 7, number);
    put_percent(&t, p->rate);
    put_duration(&t, 9, p->cpu);
    put_bytes(&t, 9, p->ended ? -1 : p->rss);
    put_bytes(&t, 9, p->ended ? -1 : p->heap);
    snprintf(number, sizeof number, "%llu", (unsigned long long)p->threads);
    put(&t, 4, number);
    text_add(&t, "  ");
    text_add_repeat(&t, ' ', o->sort == SORT_TREE ? 2u * p->depth : 0);
    text_add(&t, short_command(p));
    if (p->ended)
        text_add(&t, " (ended)");
    struct row *row = add(r, &t, o);
    row->pid = p->pid;
    row->opens = (uint64_t)p->pid;
    row->dim = p->ended;
}

static void add_threads(struct panel *r, const struct figures *f, int32_t pid,
                        const struct panel_options *o)
{
    for (size_t i = 0; i < f->threads.len; i++) {
        const struct figures_thread *x = &f->threads.data[i];
        struct text t = TEXT_INIT;
        char number[24];
        if (x->pid != pid)
            continue;
        snprintf(number, sizeof number, "%d", x->tid);
        put(&t, 7, number);
        put_percent(&t, x->rate);
        put_duration(&t, 9, x->cpu);
        text_add_repeat(&t, ' ', 25);
        text_format(&t, "  └ %s%s", x->name, x->ended ? " (ended)" : "");
        struct row *row = add(r, &t, o);
        row->pid = pid;
        row->dim = x->ended;
    }
}

void panel_processes(struct panel *r, const struct figures *f, const struct panel_options *o)
{
    struct order order = {f, o->sort};
    size_t *at = memory_array(f->processes.len + 1, sizeof *at);
    for (size_t i = 0; i < f->processes.len; i++)
        at[i] = i;
    if (f->processes.len && o->sort != SORT_TREE)
        qsort_r(at, f->processes.len, sizeof *at, compare_processes, &order);
    head(r, o, "     PID   CPU%       CPU       RSS      HEAP  THR  COMMAND");
    for (size_t i = 0; i < f->processes.len; i++) {
        const struct figures_process *p = &f->processes.data[at[i]];
        if (!passes(o, p->command) && !passes(o, p->name))
            continue;
        add_process(r, p, o);
        if (is_open(o, (uint64_t)p->pid, 0))
            add_threads(r, f, p->pid, o);
    }
    free(at);
}

static int compare_functions(const void *a, const void *b, void *context)
{
    const struct panel_options *o = context;
    const struct figures_function *x = a, *y = b;
    uint64_t v = o->recent ? x->recent : x->self, w = o->recent ? y->recent : y->self;
    if (o->sort == SORT_NAME)
        return strcmp(x->name, y->name);
    if (v == w) {
        v = o->recent ? x->recent_total : x->total;
        w = o->recent ? y->recent_total : y->total;
    }
    return v < w ? 1 : v > w ? -1 : strcmp(x->name, y->name);
}

static void add_function(struct panel *r, const struct figures_function *x, uint64_t whole,
                         bool recent, unsigned indent, const struct panel_options *o)
{
    struct text t = TEXT_INIT;
    put_percent(&t, part_of(recent ? x->recent : x->self, whole));
    put_duration(&t, 9, recent ? x->recent : x->self);
    put_percent(&t, part_of(recent ? x->recent_total : x->total, whole));
    put_duration(&t, 9, recent ? x->recent_total : x->total);
    text_add(&t, "  ");
    text_add_repeat(&t, ' ', indent);
    text_add(&t, x->name);
    if (*x->module && *x->name != '[')
        text_format(&t, *x->module == '[' ? "  %s" : "  [%s]", x->module);
    add(r, &t, o);
}

static void panel_functions(struct panel *r, const struct figures *f, const struct panel_options *o)
{
    struct figures_function *sorted =
        f->functions.len ? memory_dup(f->functions.data, f->functions.len * sizeof *sorted) : NULL;
    struct panel_options how = *o;
    if (sorted)
        qsort_r(sorted, f->functions.len, sizeof *sorted, compare_functions, &how);
    head(r, o, "  SELF%      SELF TOTAL%     TOTAL  FUNCTION");
    for (size_t i = 0; i < f->functions.len; i++)
        if (passes(o, sorted[i].name) || passes(o, sorted[i].module))
            add_function(r, &sorted[i], o->recent ? f->recent_total : f->cpu_total, o->recent, 0,
                         o);
    free(sorted);
}

static void panel_path(struct panel *r, const struct figures *f, const struct panel_options *o)
{
    head(r, o, "  SELF%      SELF TOTAL%     TOTAL  FUNCTION, AND WHAT IT CALLS MOST");
    for (size_t i = 0; i < f->path.len; i++)
        add_function(r, &f->path.data[i], f->cpu_total, false, i < 20 ? (unsigned)i : 20, o);
}

/* Of an interpreter's own way to the Python code that asked only the inner end is told, if it is
 * long, or there is no room for all of it. */
static bool leaps(const struct figures_stack *s, unsigned room)
{
    size_t columns = 0;
    for (size_t i = 0; i <= s->python && i < s->frames.len; i++)
        columns += strlen(s->frames.data[i]) + (i ? 3 : 0);
    return s->python > 1 && s->python < s->frames.len && (s->python > 2 || columns > room);
}

static void put_callers(struct text *t, const struct figures_stack *s, bool leap)
{
    for (size_t i = 0, shown = 0; i < s->frames.len && shown < 6; i++) {
        if (leap && i > 0 && i < s->python)
            continue;
        text_format(t, "%s%s", shown++ ? (leap && i == s->python ? " < … < " : " < ") : "",
                    s->frames.data[i]);
    }
}

static void add_stack(struct panel *r, const struct figures *f, size_t at,
                      const struct panel_options *o)
{
    const struct figures_stack *s = &f->stacks.data[at];
    struct text t = TEXT_INIT, count = TEXT_INIT;
    char pid[24];
    bool open = is_open(o, s->key, 1);
    snprintf(pid, sizeof pid, "%d", s->pid);
    put_percent(&t, part_of(s->bytes, f->heap_bytes));
    put_bytes(&t, 10, (int64_t)s->bytes);
    text_add_count(&count, s->blocks);
    put(&t, 9, count.data);
    put(&t, 7, pid);
    text_add(&t, open ? "  - " : "  + ");
    if (!open)
        put_callers(&t, s, leaps(s, o->width > FRAMES_AT ? o->width - FRAMES_AT : 0));
    struct row *row = add(r, &t, o);
    row->pid = s->pid;
    row->opens = s->key;
    for (size_t i = 0; open && i < s->frames.len; i++) {
        struct text line = TEXT_INIT;
        text_add_repeat(&line, ' ', FRAMES_AT);
        text_add(&line, s->frames.data[i]);
        add(r, &line, o);
    }
    text_release(&count);
}

static void panel_heap(struct panel *r, const struct figures *f, const struct panel_options *o)
{
    head(r, o, "   LIVE      BYTES    BLOCKS     PID    ALLOCATED BY");
    for (size_t i = 0; i < f->stacks.len; i++) {
        bool some = false;
        for (size_t k = 0; k < f->stacks.data[i].frames.len && !some; k++)
            some = passes(o, f->stacks.data[i].frames.data[k]);
        if (some || !f->stacks.data[i].frames.len)
            add_stack(r, f, i, o);
    }
    if (!f->stacks.len) {
        struct text t = TEXT_INIT;
        text_add(&t, "  no memory is recorded: start the session with --heap");
        add(r, &t, o);
    }
}

static int compare_threads(const void *a, const void *b)
{
    const struct figures_thread *x = a, *y = b;
    if (x->rate != y->rate)
        return x->rate < y->rate ? 1 : -1;
    return x->cpu < y->cpu ? 1 : x->cpu > y->cpu ? -1 : x->tid - y->tid;
}

static void panel_threads(struct panel *r, const struct figures *f, const struct panel_options *o)
{
    struct figures_thread *sorted =
        f->threads.len ? memory_dup(f->threads.data, f->threads.len * sizeof *sorted) : NULL;
    if (sorted)
        qsort(sorted, f->threads.len, sizeof *sorted, compare_threads);
    head(r, o, "     TID   CPU%       CPU      PID  THREAD");
    for (size_t i = 0; i < f->threads.len; i++) {
        const struct figures_thread *x = &sorted[i];
        struct text t = TEXT_INIT;
        char number[24];
        if (!passes(o, x->name))
            continue;
        snprintf(number, sizeof number, "%d", x->tid);
        put(&t, 7, number);
        put_percent(&t, x->rate);
        put_duration(&t, 9, x->cpu);
        snprintf(number, sizeof number, "%d", x->pid);
        put(&t, 8, number);
        text_format(&t, "  %s%s", x->name, x->ended ? " (ended)" : "");
        struct row *row = add(r, &t, o);
        row->pid = x->pid;
        row->dim = x->ended;
    }
    free(sorted);
}

void panel_lower(struct panel *r, const struct figures *f, const struct panel_options *o)
{
    static void (*const make[PANES])(struct panel *, const struct figures *,
                                     const struct panel_options *) = {
        [PANE_FUNCTIONS] = panel_functions,
        [PANE_PATH] = panel_path,
        [PANE_HEAP] = panel_heap,
        [PANE_THREADS] = panel_threads,
    };
    make[o->pane](r, f, o);
}

void panel_curve(struct text *out, const double *values, size_t count, size_t width, bool blocks)
{
    static const char *const steps[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char plain[] = " .:-=+*#@";
    double most = 0;
    size_t first = count > width ? count - width : 0;
    for (size_t i = first; i < count; i++)
        most = values[i] > most ? values[i] : most;
    for (size_t i = first; i < count; i++) {
        int step = most > 0 && values[i] > 0 ? (int)(values[i] / most * 8 + 0.5) : 0;
        step = values[i] > 0 && step == 0 ? 1 : step;
        if (blocks)
            text_add(out, steps[step]);
        else
            text_add_char(out, plain[step]);
    }
}
