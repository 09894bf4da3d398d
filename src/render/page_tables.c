/* What the page takes ready made: the tables of memory as `report` has them, and source text. */
#include <stdlib.h>
#include <string.h>

#include "analyze/heap.h"
#include "base/memory.h"
#include "render/excerpt.h"
#include "render/page_internal.h"
#include "render/view_json.h"

#define TABLE_ROWS 200
#define PEAKS 12                       /* that the page tells the stacks of */
#define SOURCE_BYTES ((size_t)2 << 20) /* of source text in one document */
#define SOURCE_AROUND 3                /* lines before and after one that counts */
#define SOURCE_LINE 240                /* bytes of one */

void page_prepare(struct profile *p)
{
    if (!heap_recorded(p))
        return;
    heap_hold_peaks(p, &(struct peaks_options){0}, PEAKS);
    heap_released(p);
    heap_skip_allocators(p);
}

void page_tables(struct page *g, struct json *j)
{
    static const struct {
        const char *name;
        void (*make)(struct view *v, const struct report *r);
    } tables[] = {{"leaks", report_usual_leaks},
                  {"peaks", report_usual_peaks},
                  {"heap", report_heap},
                  {"ownership", report_ownership}};
    struct selection s;
    json_key(j, "tables");
    json_open_object(j);
    if (heap_recorded(g->profile) && !selection_init(&s, g->profile, NULL, NULL)) {
        struct report r = {.selection = &s, .file = "", .top = TABLE_ROWS};
        for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
            struct view v;
            json_key(j, tables[i].name);
            tables[i].make(&v, &r);
            view_json(&v, j);
            view_release(&v);
        }
        selection_release(&s);
    }
    json_end(j);
}

/* A line that some frame stands on. */
struct place {
    uint32_t file, line; /* file: string of the profile */
};

static int compare(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    if (a->file != b->file)
        return a->file < b->file ? -1 : 1;
    return (a->line > b->line) - (a->line < b->line);
}

/* Paths come from the recording, and the page goes to others: nothing but source is put into it. */
static bool is_source(const char *path)
{
    static const char *const ends[] = {"c",   "h",   "cc",   "hh",    "cpp", "hpp", "cxx",
                                       "hxx", "inl", "s",    "S",     "py",  "rs",  "go",
                                       "js",  "ts",  "java", "swift", "zig", "d",   "f90",
                                       "pyx", "rb",  "php",  "lua",   "kt",  "m"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof ends / sizeof *ends; i++)
        if (!strcmp(dot + 1, ends[i]))
            return true;
    return false;
}

static size_t gather(const struct page *g, struct place *out)
{
    const struct profile *p = g->profile;
    size_t len = 0;
    for (size_t i = 0; i < g->lexicon.steps.len; i++) {
        const struct lexicon_step *step = &g->lexicon.steps.data[i];
        uint32_t function = g->lexicon.symbols.data[step->symbol].function;
        if (function < p->functions.len && step->line && p->functions.data[function].file)
            out[len++] = (struct place){p->functions.data[function].file, step->line};
    }
    qsort(out, len, sizeof *out, compare);
    return len;
}

/* Lines [from, to] of a file as [from, "text", "text" …]; how many bytes that took. */
static size_t put_lines(struct json *j, struct excerpt *e, const char *file, uint32_t from,
                        uint32_t to)
{
    struct text line = TEXT_INIT;
    size_t used = 0;
    json_open_array(j);
    json_uint(j, from);
    for (uint32_t i = from; i <= to; i++) {
        const char *text = excerpt_line(e, file, i);
        if (!text)
            break;
        text_clear(&line);
        text_add_len(&line, text, strnlen(text, SOURCE_LINE));
        json_text(j, line.data);
        used += line.len + 3;
    }
    json_end(j);
    text_release(&line);
    return used;
}

static uint32_t before(uint32_t line)
{
    return line > SOURCE_AROUND ? line - SOURCE_AROUND : 1;
}

/* All of one file; where its places end. */
static size_t put_file(struct page *g, struct json *j, struct excerpt *e,
                       const struct place *places, size_t len, size_t *left)
{
    const char *file = profile_text(g->profile, places[0].file);
    size_t end = 0;
    while (end < len && places[end].file == places[0].file)
        end++;
    if (!is_source(file) || !excerpt_line(e, file, places[0].line))
        return end;
    json_key(j, file);
    json_open_array(j);
    for (size_t i = 0; i < end && *left;) {
        uint32_t from = before(places[i].line), to = places[i].line;
        for (; i < end && before(places[i].line) <= to + 1; i++)
            to = places[i].line + SOURCE_AROUND;
        size_t used = put_lines(j, e, file, from, to);
        *left -= used < *left ? used : *left;
    }
    json_end(j);
    return end;
}

void page_sources(struct page *g, struct json *j)
{
    struct place *places = memory_array(g->lexicon.steps.len + 1, sizeof *places);
    struct excerpt *e = excerpt_new();
    size_t len = gather(g, places), left = SOURCE_BYTES;
    json_key(j, "sources");
    json_open_object(j);
    for (size_t i = 0; i < len && left;)
        i += put_file(g, j, e, places + i, len - i, &left);
    json_end(j);
    excerpt_free(e);
    free(places);
}
