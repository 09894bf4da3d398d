/*
 * A flame graph as one HTML file: the page in page/, and the boxes as JSON that its
 * script reads. The policy in its head lets nothing run or load but that script and
 * that style sheet, by their digests; names reach the page as data alone.
 *
 * Boxes are columns in the order of a walk: depth and self suffice for a graph, since a
 * parent starts where its first child does and its total is the sum; a chart adds start and width.
 */
#include "render/flame_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "base/memory.h"
#include "render/page/assets.h"
#include "render/xml.h"

struct page {
    const struct flame_picture *picture;
    struct json j;
    uint32_t *symbol_id;      /* symbol of the tree -> of the page, or TREE_NONE */
    VECTOR(uint32_t) symbols; /* and back */
    struct names strings;
    uint64_t scale; /* all values are multiples of this */
};

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void page_init(struct page *g, const struct flame_picture *picture)
{
    const struct flame *f = picture->flame;
    *g = (struct page){.picture = picture,
                       .symbol_id = memory_array(f->tree->symbols.len, sizeof *g->symbol_id)};
    memset(g->symbol_id, 0xff, f->tree->symbols.len * sizeof *g->symbol_id);
    for (size_t i = 0; i < f->boxes.len; i++) {
        uint32_t symbol = f->boxes.data[i].symbol;
        g->scale = common_divisor(f->boxes.data[i].self, g->scale);
        if (g->symbol_id[symbol] != TREE_NONE)
            continue;
        g->symbol_id[symbol] = (uint32_t)g->symbols.len;
        *vector_push(&g->symbols) = symbol;
    }
    if (!g->scale)
        g->scale = 1;
    names_add(&g->strings, "");
}

static const struct profile_function *function_of(const struct page *g,
                                                  const struct tree_symbol *symbol)
{
    const struct profile *p = g->picture->selection->profile;
    return symbol->function == PROFILE_NONE ? NULL : &p->functions.data[symbol->function];
}

static uint32_t symbol_field(struct page *g, const struct tree_symbol *symbol, int field)
{
    const struct profile *p = g->picture->selection->profile;
    const struct profile_function *f = function_of(g, symbol);
    switch (field) {
    case 0:
        return names_add(&g->strings, symbol->name);
    case 1:
        return symbol->module == PROFILE_NONE
                   ? 0
                   : names_add(&g->strings, profile_module_name(p, symbol->module));
    case 2:
        return f ? names_add(&g->strings, profile_text(p, f->file)) : 0;
    case 3:
        return f ? f->start_line : 0;
    default:
        return flame_tone_of(symbol, false);
    }
}

static void put_symbols(struct page *g)
{
    static const char *const fields[] = {"name", "module", "file", "line", "tone"};
    json_key(&g->j, "symbols");
    json_open_object(&g->j);
    for (int field = 0; field < 5; field++) {
        json_key(&g->j, fields[field]);
        json_open_array(&g->j);
        for (size_t i = 0; i < g->symbols.len; i++)
            json_uint(
                &g->j,
                symbol_field(g, &g->picture->flame->tree->symbols.data[g->symbols.data[i]], field));
        json_end(&g->j);
    }
    json_end(&g->j);
    json_key(&g->j, "strings");
    json_open_array(&g->j);
    for (size_t i = 0; i < g->strings.len; i++)
        json_text(&g->j, g->strings.text[i]);
    json_end(&g->j);
}

static uint64_t box_field(const struct page *g, const struct flame_box *box, int field)
{
    switch (field) {
    case 0:
        return box->depth;
    case 1:
        return g->symbol_id[box->symbol];
    case 2:
        return box->self / g->scale;
    case 3:
        return box->self_count;
    case 4:
        return box->line;
    case 5:
        return g->picture->flame->compares ? box->before : box->start;
    default:
        return g->picture->flame->compares ? box->after : box->width;
    }
}

/* What pruning took from under a box is neither its own nor a child's: said apart, as
 * triples of index, value and samples. */
static void put_rest(struct page *g)
{
    const struct flame *f = g->picture->flame;
    uint32_t *under = memory_array((size_t)f->depth + 2, sizeof *under);
    struct flame_box *left = memory_array(f->boxes.len + 1, sizeof *left);
    for (size_t i = 0; i < f->boxes.len; i++) {
        const struct flame_box *box = &f->boxes.data[i];
        left[i].total = box->total - box->self;
        left[i].total_count = box->total_count - box->self_count;
        under[box->depth + 1] = (uint32_t)i;
        if (box->depth) {
            left[under[box->depth]].total -= box->total;
            left[under[box->depth]].total_count -= box->total_count;
        }
    }
    json_key(&g->j, "rest");
    json_open_array(&g->j);
    for (size_t i = 0; i < f->boxes.len; i++) {
        if (!left[i].total)
            continue;
        json_uint(&g->j, i);
        json_uint(&g->j, left[i].total);
        json_uint(&g->j, left[i].total_count);
    }
    json_end(&g->j);
    free(under);
    free(left);
}

static void put_boxes(struct page *g)
{
    static const char *const fields[] = {"depth", "symbol", "self", "count",
                                         "line",  "start",  "width"};
    static const char *const sides[] = {"before", "after"};
    const struct flame *f = g->picture->flame;
    json_key(&g->j, "boxes");
    json_open_object(&g->j);
    for (int field = 0; field < (f->chart || f->compares ? 7 : 5); field++) {
        json_key(&g->j, f->compares && field >= 5 ? sides[field - 5] : fields[field]);
        json_open_array(&g->j);
        for (size_t i = 0; i < f->boxes.len; i++)
            json_uint(&g->j, box_field(g, &f->boxes.data[i], field));
        json_end(&g->j);
    }
    json_key(&g->j, "inlined"); /* few: their indices */
    json_open_array(&g->j);
    for (size_t i = 0; i < f->boxes.len; i++)
        if (f->boxes.data[i].inlined)
            json_uint(&g->j, i);
    json_end(&g->j);
    if (f->pruned)
        put_rest(g);
    json_end(&g->j);
}

static void put_facts(struct page *g)
{
    const struct selection *s = g->picture->selection;
    const struct profile *p = s->profile;
    static const char *const units[UNIT_KINDS] = {"count", "ns", "bytes"};
    static const char *const kinds[] = {"flame", "icicle", "flamechart"};
    const char *host = profile_meta_get(p, "host");
    json_put_string(&g->j, "kind", kinds[g->picture->kind]);
    json_put_string(&g->j, "title", flame_title(g->picture));
    json_put_bool(&g->j, "compares", g->picture->flame->compares);
    json_put_string(&g->j, "event", s->label.data);
    json_put_string(&g->j, "unit", units[s->unit]);
    json_put_uint(&g->j, "scale", g->scale);
    json_put_uint(&g->j, "extent", g->picture->flame->extent);
    json_put_uint(&g->j, "value", s->value);
    json_put_uint(&g->j, "samples", s->count);
    json_put_string(&g->j, "noun", selection_noun_of(s, 1));
    json_put_uint(&g->j, "lost", profile_lost(p));
    json_put_uint(&g->j, "duration", p->end > p->start ? p->end - p->start : 0);
    json_put_uint(&g->j, "date", p->wall_start / 1000000);
    json_put_string(&g->j, "host", host ? host : "");
    json_put_double(&g->j, "cost", flame_cost_percent(p));
    json_put_uint(&g->j, "whole", p->cost.stacks_whole);
    json_put_uint(&g->j, "cut", p->cost.stacks_cut);
    json_put_uint(&g->j, "processes", p->processes.len);
    json_put_uint(&g->j, "threads", p->threads.len);
    json_put_bool(&g->j, "complete", p->complete);
    json_put_uint(&g->j, "pruned", g->picture->flame->pruned);
    json_put_double(&g->j, "min", g->picture->min_percent);
    json_key(&g->j, "notes");
    json_open_array(&g->j);
    for (size_t i = 0; i < p->notes.len; i++)
        if (p->notes.data[i].level == NOTE_WARNING)
            json_text(&g->j, profile_text(p, p->notes.data[i].text));
    json_end(&g->j);
}

static void put_tones(struct page *g)
{
    json_key(&g->j, "tones");
    json_open_array(&g->j);
    for (int i = 0; i < TONES; i++)
        json_text(&g->j, flame_tone_names[i]);
    json_end(&g->j);
}

static void add_head(struct text *out, const char *title)
{
    text_format(out,
                "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                "script-src '%s'; style-src '%s'; base-uri 'none'; form-action 'none'\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                "<meta name=\"color-scheme\" content=\"light dark\">\n"
                "<meta name=\"generator\" content=\"sonde\">\n<title>",
                asset_flame_js_digest, asset_flame_css_digest);
    xml_escape(out, title);
    text_format(out, "</title>\n<style>%s</style>\n</head>\n<body>\n%s", asset_flame_css,
                asset_flame_html);
    text_add(out, "<script type=\"application/json\" id=\"data\">");
}

static int write_data(struct page *g, flame_sink *sink, void *context)
{
    json_init(&g->j, sink, context);
    json_open_object(&g->j);
    put_facts(g);
    put_tones(g);
    put_symbols(g);
    put_boxes(g);
    json_end(&g->j);
    int result = json_finish(&g->j);
    json_release(&g->j);
    return result;
}

int flame_html(const struct flame_picture *picture, flame_sink *sink, void *context)
{
    struct page g;
    struct text out = TEXT_INIT;
    page_init(&g, picture);
    add_head(&out, flame_title(picture));
    int result = sink(context, out.data, out.len);
    if (!result)
        result = write_data(&g, sink, context);
    text_clear(&out);
    text_format(&out, "</script>\n<script>%s</script>\n</body>\n</html>\n", asset_flame_js);
    if (!result)
        result = sink(context, out.data, out.len);
    text_release(&out);
    names_release(&g.strings);
    vector_release(&g.symbols);
    free(g.symbol_id);
    return result;
}
