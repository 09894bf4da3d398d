/* The tree of processes, and threads, with what each used; see report.h. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "analyze/report_internal.h"
#include "base/memory.h"

enum {
    VALUE,
    PERCENT,
    COUNTED,
    SAMPLES,
    NAME,
    ENDED,
    MAX_RSS,
    THREADS,
    PID,
    PARENT_PID,
    COMM,
    ARGUMENTS,
    EXECS,
    START,
    END,
    STATUS,
    COLUMNS
};

struct family {
    const struct report *r;
    const struct profile *p;
    struct cost *cost; /* by process: its own, without its children; total is unused */
    uint64_t *counted; /* CPU time by the kernel, 0 if unknown */
    bool *uncounted;   /* the kernel did not tell it of every thread */
    uint64_t *threads;
    uint32_t *first_child, *next; /* in the order of appearance */
    bool *chosen;                 /* has a thread in the selection */
    bool *shown;                  /* gets a row: is chosen, or an ancestor of one that is */
    size_t shown_count;
};

/* Parents precede children, except where a forged file says otherwise: those count as roots. */
static uint32_t parent_of(const struct profile *p, uint32_t process)
{
    uint32_t parent = p->processes.data[process].parent;
    return parent < process ? parent : PROFILE_NONE;
}

static void add_up(struct family *f)
{
    const struct selection *s = f->r->selection;
    size_t cursor = 0;
    for (const struct profile_cell *c; (c = selection_next(s, &cursor));) {
        struct cost *cost = &f->cost[f->p->threads.data[c->thread].process];
        cost->self += c->value;
        cost->self_count += c->count;
    }
    for (uint32_t i = 0; i < f->p->threads.len; i++) {
        uint32_t process = f->p->threads.data[i].process;
        uint64_t counted = report_counted(f->r, i);
        if (!s->thread[i])
            continue;
        f->chosen[process] = true;
        f->counted[process] += counted;
        f->uncounted[process] |= !counted;
        f->threads[process]++;
    }
    for (size_t i = 0; i < f->p->processes.len; i++)
        if (f->uncounted[i])
            f->counted[i] = 0;
}

/* Slot `len` of first_child holds the roots. */
static void link_children(struct family *f)
{
    uint32_t len = (uint32_t)f->p->processes.len;
    memset(f->first_child, 0xff, ((size_t)len + 1) * sizeof *f->first_child);
    for (uint32_t i = len; i-- > 0;) {
        uint32_t parent = parent_of(f->p, i);
        uint32_t *head = &f->first_child[parent == PROFILE_NONE ? len : parent];
        f->next[i] = *head;
        *head = i;
    }
}

/* The dearest ones with all their ancestors, as many as fit into `limit` rows. */
static void choose_shown(struct family *f, size_t limit)
{
    size_t len = f->p->processes.len;
    struct ranked *all = memory_array(len + 1, sizeof *all);
    size_t count = 0;
    for (uint32_t i = 0; i < len; i++)
        if (f->chosen[i])
            all[count++] = (struct ranked){.id = i, .name = "", .cost = f->cost[i]};
    rank(all, count, REPORT_BY_SELF);
    for (size_t i = 0; i < count; i++) {
        size_t fresh = 0;
        for (uint32_t at = all[i].id;
             at != PROFILE_NONE && !f->shown[at] && (!limit || !f->shown_count || fresh <= limit);
             at = parent_of(f->p, at))
            fresh++;
        if (limit && f->shown_count && f->shown_count + fresh > limit)
            continue;
        for (uint32_t at = all[i].id; at != PROFILE_NONE && !f->shown[at]; at = parent_of(f->p, at))
            f->shown[at] = true;
        f->shown_count += fresh;
    }
    free(all);
}

static void family_init(struct family *f, const struct report *r)
{
    const struct profile *p = r->selection->profile;
    size_t len = p->processes.len + 1;
    *f = (struct family){.r = r, .p = p};
    f->cost = memory_array(len, sizeof *f->cost);
    f->counted = memory_array(len, sizeof *f->counted);
    f->uncounted = memory_array(len, sizeof *f->uncounted);
    f->threads = memory_array(len, sizeof *f->threads);
    f->first_child = memory_array(len, sizeof *f->first_child);
    f->next = memory_array(len, sizeof *f->next);
    f->chosen = memory_array(len, sizeof *f->chosen);
    f->shown = memory_array(len, sizeof *f->shown);
    add_up(f);
    link_children(f);
}

static void family_release(struct family *f)
{
    free(f->cost);
    free(f->counted);
    free(f->uncounted);
    free(f->threads);
    free(f->first_child);
    free(f->next);
    free(f->chosen);
    free(f->shown);
}

bool report_tells_end(const struct profile *p, const struct profile_process *q)
{
    return q->status_known || !q->ended || !profile_meta_get(p, "imported_from");
}

void status_text(const struct profile_process *q, bool brief, struct text *out)
{
    if (!q->ended)
        text_add(out, "still running");
    else if (!q->status_known)
        text_add(out, "end unknown");
    else if (WIFSIGNALED(q->status)) {
        const char *name = sigabbrev_np(WTERMSIG(q->status));
        text_add(out, brief ? "" : "killed by ");
        text_format(out, name ? "SIG%s" : "a signal", name);
        text_add(out, WCOREDUMP(q->status) && !brief ? ", core dumped" : "");
    } else {
        text_format(out, "exit %d", WEXITSTATUS(q->status));
    }
}

static const char *arguments_of(const struct profile *p, uint32_t process)
{
    const struct profile_exec *program = profile_process_program(p, process);
    return program ? profile_text(p, program->arguments) : "";
}

void process_text(const struct profile *p, uint32_t process, struct text *out)
{
    const char *arguments = arguments_of(p, process);
    text_format(out, "%d %s", p->processes.data[process].pid,
                *arguments ? arguments : profile_process_name(p, process));
}

static void put_identity(struct view_section *s, const struct profile *p, uint32_t process,
                         struct view_value *row)
{
    const struct profile_process *q = &p->processes.data[process];
    const char *arguments = arguments_of(p, process);
    struct text label = TEXT_INIT;
    process_text(p, process, &label);
    row[NAME] = view_text(s, label.data);
    row[PID] = view_number((uint64_t)q->pid);
    row[COMM] = view_text(s, profile_process_name(p, process));
    row[EXECS] = view_number(q->execs.len);
    if (*arguments)
        row[ARGUMENTS] = view_text(s, arguments);
    uint32_t parent = parent_of(p, process);
    if (parent != PROFILE_NONE)
        row[PARENT_PID] = view_number((uint64_t)p->processes.data[parent].pid);
    text_release(&label);
}

static void put_end(struct view_section *s, const struct profile *p, uint32_t process,
                    struct view_value *row)
{
    const struct profile_process *q = &p->processes.data[process];
    struct text how = TEXT_INIT;
    status_text(q, true, &how);
    if (report_tells_end(p, q) && (!q->ended || !q->status_known || q->status))
        row[ENDED] = view_text(s, how.data);
    if (q->start >= p->start)
        row[START] = view_number(q->start - p->start);
    if (q->ended && q->end >= p->start)
        row[END] = view_number(q->end - p->start);
    if (q->ended && q->status_known)
        row[STATUS] = view_number((uint64_t)q->status);
    row[MAX_RSS] = view_nonzero(q->max_rss);
    text_release(&how);
}

static void put_process(struct view_section *s, const struct family *f, uint32_t process,
                        unsigned depth)
{
    struct view_value *row = view_row(s, depth, VIEW_PLAIN);
    row[VALUE] = view_number(f->cost[process].self);
    row[PERCENT] = view_percent(f->cost[process].self, f->r->selection->value);
    row[COUNTED] = view_nonzero(f->counted[process]);
    row[SAMPLES] = view_number(f->cost[process].self_count);
    row[THREADS] = view_number(f->threads[process]);
    put_identity(s, f->p, process, row);
    put_end(s, f->p, process, row);
}

static void put_rest(struct view_section *s, const struct family *f)
{
    struct cost rest = {0};
    uint64_t counted = 0, threads = 0;
    for (size_t i = 0; i < f->p->processes.len; i++) {
        if (f->shown[i] || !f->chosen[i])
            continue;
        s->omitted++;
        rest.self += f->cost[i].self;
        rest.self_count += f->cost[i].self_count;
        counted += f->counted[i];
        threads += f->threads[i];
    }
    if (!s->omitted)
        return;
    struct text name = TEXT_INIT;
    text_add(&name, "… ");
    text_add_count(&name, s->omitted);
    text_add(&name, " more");
    struct view_value *row = view_row(s, 0, VIEW_REST);
    row[VALUE] = view_number(rest.self);
    row[PERCENT] = view_percent(rest.self, f->r->selection->value);
    row[COUNTED] = view_nonzero(counted);
    row[SAMPLES] = view_number(rest.self_count);
    row[THREADS] = view_number(threads);
    row[NAME] = view_text(s, name.data);
    text_release(&name);
}

static void put_tree(struct view_section *s, const struct family *f)
{
    uint32_t len = (uint32_t)f->p->processes.len, at = f->first_child[len];
    unsigned depth = 0;
    while (at != PROFILE_NONE) {
        if (f->shown[at]) {
            put_process(s, f, at, depth);
            if (f->first_child[at] != PROFILE_NONE) {
                at = f->first_child[at];
                depth++;
                continue;
            }
        }
        while (f->next[at] == PROFILE_NONE && parent_of(f->p, at) != PROFILE_NONE) {
            at = parent_of(f->p, at);
            depth--;
        }
        at = f->next[at];
    }
}

void section_processes(struct view *v, const struct report *r)
{
    enum view_kind kind = report_kind(r);
    const struct view_column columns[COLUMNS] = {
        [VALUE] = {"self", r->selection->label.data, kind},
        [PERCENT] = {"self_percent", "%", VIEW_PERCENT, .bar = true},
        [COUNTED] = {"cpu_counted", "by kernel", VIEW_DURATION},
        [SAMPLES] = {"self_samples", selection_noun(r->selection), VIEW_COUNT,
                     report_counts(r, 120)},
        [NAME] = {"process", "process", VIEW_TEXT},
        [ENDED] = {"ended", "ended", VIEW_TEXT},
        [MAX_RSS] = {"max_rss", "max RSS", VIEW_BYTES, 100},
        [THREADS] = {"threads", "threads", VIEW_COUNT, 140},
        [PID] = {"pid", "pid", VIEW_NUMBER, VIEW_MACHINES},
        [PARENT_PID] = {"parent_pid", "parent", VIEW_NUMBER, VIEW_MACHINES},
        [COMM] = {"name", "name", VIEW_TEXT, VIEW_MACHINES},
        [ARGUMENTS] = {"arguments", "arguments", VIEW_TEXT, VIEW_MACHINES},
        [EXECS] = {"programs", "programs run", VIEW_COUNT, VIEW_MACHINES},
        [START] = {"start", "start", VIEW_DURATION, VIEW_MACHINES},
        [END] = {"end", "end", VIEW_DURATION, VIEW_MACHINES},
        [STATUS] = {"status", "wait status", VIEW_NUMBER, VIEW_MACHINES},
    };
    struct view_section *s = view_add_table(v, "processes", "Processes", columns, COLUMNS);
    struct family f;
    s->tree = true;
    family_init(&f, r);
    choose_shown(&f, r->top);
    put_tree(s, &f);
    put_rest(s, &f);
    family_release(&f);
}

uint64_t chosen_processes(const struct selection *s)
{
    const struct profile *p = s->profile;
    bool *chosen = memory_array(p->processes.len + 1, sizeof *chosen);
    uint64_t count = 0;
    for (size_t i = 0; i < p->threads.len; i++) {
        bool *process = &chosen[p->threads.data[i].process];
        count += s->thread[i] && !*process;
        *process = *process || s->thread[i];
    }
    free(chosen);
    return count;
}

void report_processes(struct view *v, const struct report *r)
{
    report_begin(v, r, "processes", "processes", "processes");
    section_processes(v, r);
}
