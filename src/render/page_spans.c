/*
 * Spans in the page's document. A file holds as much of them as a bounded number of boxes can show;
 * of a live recording the page asks for each window of time that it looks at (page_spans), and
 * gets a document of these columns alone.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "render/page_internal.h"

#define BOXES_IN_FILE 250000
#define BOXES_IN_ANSWER 60000
#define DEEPEST 64

struct span_columns {
    struct column *thread, *depth, *start, *length, *symbol, *count;
};

/* What the innermost step of the frame stands for, + 1; 0: nothing that has a name. */
static uint32_t symbol_of(const struct page *g, uint32_t frame)
{
    const struct lexicon *x = &g->lexicon;
    if (frame >= x->first.len || !x->count.data[frame])
        return 0;
    return x->steps.data[x->first.data[frame] + x->count.data[frame] - 1].symbol + 1;
}

static void put_boxes(const struct page *g, const struct spans_boxes *boxes, struct columns *c)
{
    struct span_columns to = {
        column_add(c, "span.thread", COLUMN_DELTA), column_add(c, "span.depth", COLUMN_DELTA),
        column_add(c, "span.start", COLUMN_DELTA),  column_add(c, "span.length", COLUMN_PLAIN),
        column_add(c, "span.symbol", COLUMN_DELTA), column_add(c, "span.count", COLUMN_PLAIN)};
    for (size_t i = 0; i < boxes->all.len; i++) {
        const struct spans_box *b = &boxes->all.data[i];
        column_put(to.thread, b->thread);
        column_put(to.depth, b->depth);
        column_put(to.start, b->start);
        column_put(to.length, b->end - b->start);
        column_put(to.symbol, symbol_of(g, b->frame));
        column_put(to.count, b->count);
    }
}

static void put_facts(const struct page *g, const struct spans_window *w, uint64_t least,
                      struct json *j)
{
    json_key(j, "spans");
    json_open_object(j);
    json_put_uint(j, "from", w->from);
    json_put_uint(j, "to", w->to);
    json_put_uint(j, "least", least);
    json_put_uint(j, "total", g->profile->spans.len);
    json_key(j, "threads");
    json_open_array(j);
    for (size_t i = 0; i < g->spans.tracks.len; i++)
        if (g->spans.tracks.data[i].list.len)
            json_uint(j, i);
    json_end(j);
    json_end(j);
}

static uint64_t extent_of(const struct profile *p)
{
    return p->end > p->start ? p->end - p->start : 0;
}

void page_put_spans(struct page *g, struct json *j, struct columns *c)
{
    struct spans_window w = {
        .to = extent_of(g->profile), .depth_max = DEEPEST, .limit = BOXES_IN_FILE};
    struct spans_boxes boxes = {0};
    if (!g->profile->spans.len)
        return;
    if (!g->options.live) {
        size_t first = c->len;
        spans_show(&g->spans, &w, &boxes);
        put_boxes(g, &boxes, c);
        for (size_t i = first; i < c->len; i++)
            c->all[i].later = g->turn != NULL;
    }
    put_facts(g, &w, boxes.least, j);
    vector_release(&boxes.all);
}

size_t page_threads(const char *text, uint32_t *out, size_t room)
{
    size_t len = 0;
    for (char *end; text && *text >= '0' && *text <= '9'; text = *end == '.' ? end + 1 : NULL) {
        unsigned long n = strtoul(text, &end, 10);
        if (len < room)
            out[len] = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
        len++;
    }
    return len;
}

static uint8_t *threads_chosen(const struct page *g, const struct page_window *window)
{
    uint8_t *chosen = memory_array(g->spans.tracks.len + 1, 1);
    for (size_t i = 0; i < window->thread_count; i++)
        if (window->threads[i] < g->spans.tracks.len)
            chosen[window->threads[i]] = 1;
    return chosen;
}

int page_spans(struct page *g, const struct page_window *window, page_sink *sink, void *context)
{
    uint8_t *chosen = window->thread_count ? threads_chosen(g, window) : NULL;
    struct spans_window w = {.from = window->from,
                             .to = window->to,
                             .least =
                                 window->pixels ? (window->to - window->from) / window->pixels : 0,
                             .chosen = chosen,
                             .depth_max = DEEPEST,
                             .limit = BOXES_IN_ANSWER};
    struct spans_boxes boxes;
    struct columns c = {.len = 0};
    struct json j;
    spans_show(&g->spans, &w, &boxes);
    put_boxes(g, &boxes, &c);
    json_init(&j, NULL, NULL);
    json_open_object(&j);
    json_put_uint(&j, "version", 1);
    put_facts(g, &w, boxes.least, &j);
    columns_json(&c, &j);
    json_end(&j);
    int result = page_put_document(&j, &c, sink, NULL, context);
    json_release(&j);
    columns_release(&c);
    vector_release(&boxes.all);
    free(chosen);
    return result;
}
