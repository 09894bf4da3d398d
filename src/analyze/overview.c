/*
 * The first screen: what ran, what it used, where the time went, what the profiler
 * cost and lost, and what to type next; see report.h.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/heap_internal.h"
#include "base/memory.h"

/* How much of each table fits one screen. */
#define SCREEN_PROCESSES 5
#define SCREEN_PATH 6
#define SCREEN_NOTES 3
/* Functions with longer names are not suggested: nobody types them. */
#define NAME_TO_TYPE 60
#define NAMELESS_PERCENT 10 /* worth a word */

enum view_kind report_kind(const struct report *r)
{
    return view_kind_of(r->selection->unit);
}

uint64_t report_shown(const struct report *r, uint64_t rows)
{
    if (!r->top || rows <= r->top)
        return rows;
    return r->top;
}

const char *report_plural(uint64_t n, const char *one, const char *many)
{
    return n == 1 ? one : many;
}

unsigned report_counts(const struct report *r, unsigned from_width)
{
    return r->selection->count || !r->selection->value ? from_width : VIEW_MACHINES;
}

/* Sum over the chosen events of all that was recorded, before threads and stacks were chosen. */
static uint64_t recorded_value(const struct report *r)
{
    const struct profile *p = r->selection->profile;
    uint64_t sum = 0;
    for (size_t i = 0; i < p->events.len; i++)
        sum += r->selection->event[i] ? p->events.data[i].value : 0;
    return sum;
}

/* What is counted, how much of it, and of how much if something was left out. */
static void add_selected(struct view_section *s, const struct report *r, const char *line)
{
    const struct selection *sel = r->selection;
    uint64_t all = recorded_value(r);
    struct text after = TEXT_INIT;
    text_format(&after, " %s", selection_noun_of(sel, sel->count));
    view_fact(s, line, "event", "event", VIEW_TEXT, view_text(s, sel->label.data))->hidden =
        *line != 0;
    view_fact(s, line, "value", "selected", report_kind(r), view_number(sel->value));
    struct view_fact *f =
        view_fact(s, line, "value_recorded", "recorded", report_kind(r), view_number(all));
    f->before = " of ";
    f->glued = true;
    f->hidden = all == sel->value;
    f = view_fact(s, line, "samples", selection_noun(sel), VIEW_COUNT, view_number(sel->count));
    f->after = arena_strdup(s->arena, after.data);
    text_release(&after);
    f->hidden = !sel->count && sel->value;
}

void report_begin(struct view *v, const struct report *r, const char *id, const char *title,
                  const char *main)
{
    view_init(v, id, title, main);
    add_selected(view_add(v, VIEW_FACTS, "selection", ""), r, "");
}

static const struct profile_process *first_process(const struct profile *p)
{
    return p->processes.len ? &p->processes.data[0] : NULL;
}

static uint64_t duration_of(const struct profile *p)
{
    return p->end > p->start ? p->end - p->start : 0;
}

const char *report_command(const struct profile *p)
{
    const char *command = profile_meta_get(p, "command");
    const struct profile_process *q = first_process(p);
    if (command && *command)
        return command;
    if (!q || !q->execs.len)
        return "?";
    const char *arguments = profile_text(p, q->execs.data[0].arguments);
    return *arguments ? arguments : profile_text(p, q->execs.data[0].comm);
}

void section_run(struct view *v, const struct report *r)
{
    const struct profile *p = r->selection->profile;
    struct view_section *s = view_add(v, VIEW_FACTS, "run", "");
    const struct profile_process *q = first_process(p);
    struct text ended = TEXT_INIT;
    view_fact(s, "", "command", "command", VIEW_TEXT, view_text(s, report_command(p)))->hidden =
        true;
    const char *format = profile_meta_get(p, "imported_from");
    bool told = q && report_tells_end(p, q);
    if (format && !told)
        view_fact(s, "", "imported_from", "imported from", VIEW_TEXT, view_text(s, format))
            ->before = "imported from ";
    if (q) {
        status_text(q, false, &ended);
        view_fact(s, "", "ended", "ended", VIEW_TEXT, view_text(s, ended.data))->hidden = !told;
    }
    struct view_fact *f =
        view_fact(s, "", "duration", "duration", VIEW_DURATION, view_number(duration_of(p)));
    f->before = told ? " after " : "ran ";
    f->glued = told;
    f->hidden = format && !duration_of(p);
    const char *host = profile_meta_get(p, "host");
    if (host)
        view_fact(s, "", "host", "host", VIEW_TEXT, view_text(s, host))->before = "on ";
    if (p->wall_start)
        view_fact(s, "", "start", "start", VIEW_DATE, view_number(p->wall_start));
    view_fact(s, "", "complete", "complete", VIEW_TEXT, view_text(s, p->complete ? "yes" : "no"))
        ->hidden = true;
    text_release(&ended);
}

static uint64_t chosen_threads(const struct selection *s)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s->profile->threads.len; i++)
        n += s->thread[i];
    return n;
}

/* The value between two samples, if the chosen event has a fixed one. */
static uint64_t period_of(const struct selection *s)
{
    for (size_t i = 0; i < s->profile->events.len; i++)
        if (s->event[i])
            return s->profile->events.data[i].period;
    return 0;
}

/* How long that lasted which is told of. */
static uint64_t span_of(const struct report *r)
{
    uint64_t whole = duration_of(r->selection->profile);
    uint64_t to = r->to && r->to < whole ? r->to : whole;
    return to > r->from ? to - r->from : 0;
}

void section_totals(struct view *v, const struct report *r)
{
    const struct selection *sel = r->selection;
    const struct profile *p = sel->profile;
    struct view_section *s = view_add(v, VIEW_FACTS, "totals", "");
    add_selected(s, r, sel->label.data);
    if (period_of(sel))
        view_fact(s, sel->label.data, "period", "between samples", report_kind(r),
                  view_number(period_of(sel)))
            ->before = "one every ";
    if (sel->unit == UNIT_NANOSECONDS && span_of(r))
        view_fact(s, sel->label.data, "utilization", "of one CPU", VIEW_PERCENT,
                  view_percent(sel->value, span_of(r)))
            ->after = " of one CPU";
    uint64_t threads = chosen_threads(sel), processes = chosen_processes(sel);
    view_fact(s, "in", "processes", "processes", VIEW_COUNT, view_number(processes))->after =
        report_plural(processes, " process", " processes");
    view_fact(s, "in", "threads", "threads", VIEW_COUNT, view_number(threads))->after =
        report_plural(threads, " thread", " threads");
    const char *cpus = profile_meta_get(p, "cpus");
    uint64_t cpu_count = cpus ? strtoull(cpus, NULL, 10) : 0;
    if (cpu_count)
        view_fact(s, "in", "cpus", "CPUs", VIEW_COUNT, view_number(cpu_count))->after =
            report_plural(cpu_count, " CPU", " CPUs");
}

static void add_note(struct view_section *s, size_t limit, enum note_level level, const char *text)
{
    if (limit && s->notes.len >= limit)
        s->omitted++;
    else
        view_note(s, level, text);
}

/* Moments that somebody named. */
static void add_marks(struct view_section *s, const struct profile *p, size_t limit)
{
    struct text note = TEXT_INIT;
    for (size_t i = 0; i < p->marks.len; i++) {
        uint64_t time = p->marks.data[i].time > p->start ? p->marks.data[i].time - p->start : 0;
        text_clear(&note);
        text_format(&note, "mark at %.6f s: %s", (double)time / 1e9,
                    profile_text(p, p->marks.data[i].text));
        add_note(s, limit, NOTE_INFO, note.data);
    }
    text_release(&note);
}

/* Interpreters that compile know their functions' names, and tell them if asked. */
static void add_nameless(struct view_section *s, const struct view *v)
{
    const struct view_section *functions = view_find(v, "functions");
    for (size_t i = 0; functions && i < functions->rows.len; i++) {
        const struct view_value *name = view_cell(functions, i, "name");
        const struct view_value *self = view_cell(functions, i, "self_percent");
        if (name && name->known && !strcmp(name->text, "[jit]") &&
            self->percent >= NAMELESS_PERCENT)
            view_note(s, NOTE_INFO,
                      "code compiled at run time has no names here: its program writes them down "
                      "with node --perf-basic-prof, java -XX:+DumpPerfMapAtExit, python -X perf");
    }
}

void section_notes(struct view *v, const struct report *r, size_t limit)
{
    const struct profile *p = r->selection->profile;
    struct view_section *s = view_add(v, VIEW_NOTES, "notes", "");
    for (int level = NOTE_WARNING; level >= NOTE_INFO; level--) {
        for (size_t i = 0; i < p->notes.len; i++)
            if ((int)p->notes.data[i].level == level)
                add_note(s, limit, p->notes.data[i].level, profile_text(p, p->notes.data[i].text));
    }
    add_marks(s, p, limit);
    add_nameless(s, v);
    if (selection_empty(r->selection))
        view_note(s, NOTE_WARNING,
                  p->cells.len ? "nothing that was recorded is selected"
                               : "there are no samples in this recording: the program did not run "
                                 "long enough, or sampling was not possible");
}

void report_notes(struct view *v, const struct report *r)
{
    view_init(v, "notes", "notes", "accounting");
    section_notes(v, r, 0);
    section_profiler(v, r, false);
    section_accounting(v, r, false);
    struct view_section *s = v->sections.data[0];
    if (!s->notes.len)
        view_note(s, NOTE_INFO, "the recording has no notes");
}

/* As a shell takes it; false if it has characters that cannot be shown as they are. */
static bool shell_word(struct text *out, const char *word)
{
    struct text printable = TEXT_INIT;
    text_add_printable(&printable, word);
    bool same = !strcmp(printable.data, word) && *word;
    text_release(&printable);
    if (!same)
        return false;
    bool plain = true;
    for (const char *c = word; *c; c++)
        plain = plain && (isalnum((unsigned char)*c) || strchr("_-./:@%+,=", *c));
    if (plain && *word != '-') {
        text_add(out, word);
        return true;
    }
    text_add_char(out, '\'');
    for (const char *c = word; *c; c++)
        text_add(out, *c == '\'' ? "'\\''" : (const char[]){*c, 0});
    text_add_char(out, '\'');
    return true;
}

void report_suggest(struct view_section *s, const struct report *r, const char *command,
                    const char *option, const char *word, const char *meaning)
{
    struct text line = TEXT_INIT;
    text_format(&line, "sonde %s ", command);
    bool can = shell_word(&line, r->file);
    text_add(&line, option);
    if (word) {
        text_add_char(&line, ' ');
        can = shell_word(&line, word) && can;
    }
    if (can)
        view_command(s, line.data, meaning);
    text_release(&line);
}

const char *report_top_function(const struct view_section *next, const struct view *v)
{
    const struct view_section *s = view_find(v, "functions");
    const struct view_value *name = s ? view_cell(s, 0, "name") : NULL;
    if (!name || !name->known || name->text[0] == '[')
        return NULL;
    const char *text = name->text, *open = strchr(text, '(');
    bool call = open && open - text >= 8 && !strncmp(open - 8, "operator", 8);
    size_t len = open && open > text && !call ? (size_t)(open - text) : strlen(text);
    if (len > NAME_TO_TYPE)
        return NULL;
    return arena_strndup(next->arena, text, len);
}

void section_next(struct view *v, const struct report *r)
{
    const struct profile *p = r->selection->profile;
    struct view_section *s = view_add(v, VIEW_COMMANDS, "next", "Next");
    const char *top = report_top_function(s, v);
    if (selection_empty(r->selection)) {
        report_suggest(s, r, "report", " --notes", NULL, "why");
        return;
    }
    if (!p->symbolized && !top)
        report_suggest(s, r, "symbolize", "", NULL, "find names");
    report_suggest(s, r, "graph", " --kind page -o page.html", NULL, "all of it, in a browser");
    report_suggest(s, r, "report", " --tree", NULL, "call tree");
    if (top) {
        report_suggest(s, r, "report", " --callers", top, "who calls it");
        report_suggest(s, r, "report", " --lines", top, "its source lines");
    }
    if (heap_recorded(p))
        report_suggest(s, r, "report", " --heap", NULL, "its memory");
    if (view_find(v, "waits") && !r->selection->waits)
        report_suggest(s, r, "report", " --event wall", NULL, "with its waits");
}

void report_overview(struct view *v, const struct report *r)
{
    bool whole = !r->top;
    struct report part = *r;
    view_init(v, "report", report_command(r->selection->profile), "functions");
    section_run(v, r);
    section_totals(v, r);
    section_heap_line(v, r);
    part.top = whole ? 0 : SCREEN_PROCESSES;
    section_processes(v, &part);
    section_functions(v, r);
    section_path(v, r, whole ? 0 : SCREEN_PATH);
    section_waits(v, r);
    section_profiler(v, r, true);
    section_accounting(v, r, true);
    section_notes(v, r, whole ? 0 : SCREEN_NOTES);
    section_next(v, r);
}
