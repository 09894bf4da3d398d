/*
 * A flame graph as SVG: every box is drawn where it stands, with its details as its
 * title, so an image viewer shows the whole picture; page/svg.js makes it interactive in a browser.
 * Boxes are written as they are laid out: memory does not grow with their number.
 */
#include "render/flame_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "render/page/assets.h"
#include "render/xml.h"

#define ROW 18
#define MARGIN 12
#define HEAD 62       /* title, facts and the line of buttons */
#define FOOT 54       /* details and legend */
#define AXIS 20       /* times above a chart */
#define LANE_GAP 10   /* between the threads of a chart */
#define CHARACTER 7.0 /* width of one, at 11.5 px monospace, rounded up */
#define SHADES 4
#define FLUSH_AT 65536

struct svg {
    const struct flame_picture *picture;
    flame_sink *sink;
    void *context;
    int failed;
    struct text out;
    struct text scratch;
    uint32_t height, frames_top, frames_height;
    double scale; /* pixels for one unit of x */
    bool tone_used[TONES];
};

static void flush(struct svg *v, bool all)
{
    if (v->out.len < FLUSH_AT && !all)
        return;
    if (!v->failed)
        v->failed = v->sink(v->context, v->out.data, v->out.len);
    text_clear(&v->out);
}

/* A coordinate without needless digits. */
static void add_number(struct text *out, double number)
{
    char digits[48];
    int len = snprintf(digits, sizeof digits, "%.3f", number);
    while (len > 1 && digits[len - 1] == '0')
        len--;
    if (len > 1 && digits[len - 1] == '.')
        len--;
    text_add_len(out, digits, (size_t)len);
}

/* As much of a name as fits, with an ellipsis; nothing if hardly any would. */
static void add_label(struct text *out, struct text *scratch, const char *name, double width)
{
    size_t room = width > 2 * CHARACTER ? (size_t)((width - 6) / CHARACTER) : 0;
    if (room < 3)
        return;
    text_clear(scratch);
    size_t used = 0, len, cut = 0;
    const char *at = name;
    for (; *at && used < room; at += len, used++) {
        xml_decode(at, &len);
        if (used + 1 == room)
            cut = (size_t)(at - name);
    }
    text_add_len(scratch, name, *at ? cut : (size_t)(at - name));
    xml_escape(out, scratch->data);
    if (*at)
        text_add(out, "…");
}

static void add_change(struct svg *v, const struct flame_box *box)
{
    enum value_unit unit = v->picture->selection->unit;
    const struct flame_box *root = v->picture->flame->boxes.data;
    flame_add_value(&v->out, unit, box->before);
    text_add(&v->out, " (");
    flame_add_percent(&v->out, box->before, root->before);
    text_add(&v->out, ") before, ");
    flame_add_value(&v->out, unit, box->after);
    text_add(&v->out, " (");
    flame_add_percent(&v->out, box->after, root->after);
    text_add(&v->out, ") after");
    if (box->before)
        text_format(&v->out, ", %+.1f %%",
                    100 * ((double)box->after - (double)box->before) / (double)box->before);
    else
        text_add(&v->out, ", new");
}

static void add_cost(struct svg *v, const struct flame_box *box)
{
    const struct selection *s = v->picture->selection;
    struct text *out = &v->out;
    flame_add_value(out, s->unit, box->total);
    text_add(out, " (");
    flame_add_percent(out, box->total, s->value);
    text_add(out, "), self ");
    flame_add_value(out, s->unit, box->self);
    if (box->total_count || !box->total) {
        text_add(out, ", ");
        text_add_count(out, box->total_count);
        text_format(out, " %s", selection_noun_of(s, box->total_count));
    }
}

/* The details that hovering shows; the first line is the name, alone. */
static void add_details(struct svg *v, const struct flame_box *box)
{
    const struct selection *s = v->picture->selection;
    const struct flame *f = v->picture->flame;
    const struct tree_symbol *symbol = &f->tree->symbols.data[box->symbol];
    struct text *out = &v->out;
    xml_escape(out, symbol->name);
    text_add_char(out, '\n');
    if (f->compares)
        add_change(v, box);
    else
        add_cost(v, box);
    if (f->chart && box->depth) {
        text_add(out, ", at ");
        text_add_duration(out, box->start);
    }
    if (symbol->module == PROFILE_NONE)
        return;
    text_add_char(out, '\n');
    xml_escape(out, profile_module_name(s->profile, symbol->module));
    text_clear(&v->scratch);
    tree_symbol_place(f->tree, symbol, box->line, &v->scratch);
    if (v->scratch.len) {
        text_add(out, " · ");
        xml_escape(out, v->scratch.data);
    }
    if (box->inlined)
        text_add(out, " · inlined");
}

static void add_box(struct svg *v, const struct flame_box *box, uint32_t y)
{
    const struct tree_symbol *symbol = &v->picture->flame->tree->symbols.data[box->symbol];
    enum flame_tone tone = flame_tone_of(symbol, box->inlined);
    double x = MARGIN + (double)box->start * v->scale, width = (double)box->width * v->scale;
    unsigned shade = (unsigned)(hash_bytes(symbol->name, strlen(symbol->name)) % SHADES);
    struct text *out = &v->out;
    if (v->picture->flame->compares) {
        int change = flame_change_of(box);
        text_format(out, "<g class=\"f %c%d\" data-d=\"%u\"><title>", change < 0 ? 'l' : 'm',
                    change < 0 ? -change : change, box->depth);
    } else {
        v->tone_used[tone] = true;
        text_format(out, "<g class=\"f t%d s%u\" data-d=\"%u\"><title>", tone, shade, box->depth);
    }
    add_details(v, box);
    text_add(out, "</title><rect x=\"");
    add_number(out, x);
    text_format(out, "\" y=\"%u\" width=\"", y);
    add_number(out, width);
    text_format(out, "\" height=\"%d\"/><text x=\"", ROW - 1);
    add_number(out, x + 4);
    text_format(out, "\" y=\"%u\">", y + 13);
    add_label(out, &v->scratch, symbol->name, width);
    text_add(out, "</text></g>\n");
    flush(v, false);
}

/* Rows that each lane needs, in order; the caller frees. */
static uint32_t *lane_rows(const struct flame *f, size_t *lanes)
{
    VECTOR(uint32_t) rows = {0};
    for (size_t i = 0; i < f->boxes.len; i++) {
        const struct flame_box *box = &f->boxes.data[i];
        if (!box->depth)
            *vector_push(&rows) = 0;
        if (box->depth + 1 > rows.data[rows.len - 1])
            rows.data[rows.len - 1] = box->depth + 1;
    }
    *lanes = rows.len;
    return rows.data;
}

static void add_chart(struct svg *v)
{
    const struct flame *f = v->picture->flame;
    size_t lanes, lane = 0;
    uint32_t *rows = lane_rows(f, &lanes), top = v->frames_top + AXIS;
    for (size_t i = 0; i < f->boxes.len && !v->failed; i++) {
        const struct flame_box *box = &f->boxes.data[i];
        if (!box->depth && i)
            top += rows[lane++] * ROW + LANE_GAP;
        add_box(v, box, top + box->depth * ROW);
    }
    free(rows);
}

static void add_graph(struct svg *v)
{
    const struct flame *f = v->picture->flame;
    bool up = v->picture->kind == FLAME_GRAPH;
    for (size_t i = 0; i < f->boxes.len && !v->failed; i++) {
        const struct flame_box *box = &f->boxes.data[i];
        add_box(v, box, v->frames_top + (up ? f->depth - box->depth : box->depth) * ROW);
    }
}

/* 1, 2 or 5 times a power of ten, so that about `parts` of it make `whole`. */
static double round_step(double whole, double parts)
{
    double raw = whole / parts, unit = pow(10, floor(log10(raw > 1 ? raw : 1)));
    double step = raw / unit;
    return unit * (step <= 1 ? 1 : step <= 2 ? 2 : step <= 5 ? 5 : 10);
}

static void add_axis(struct svg *v)
{
    const struct flame *f = v->picture->flame;
    double step = round_step((double)f->extent, v->picture->width / 110.0);
    text_add(&v->out, "<g id=\"axis\">");
    for (double at = 0; f->extent && at <= (double)f->extent; at += step) {
        double x = MARGIN + at * v->scale;
        text_add(&v->out, "<path d=\"M");
        add_number(&v->out, x);
        text_format(&v->out, " %uv%u\"/><text x=\"", v->frames_top, v->frames_height);
        add_number(&v->out, x + 3);
        text_format(&v->out, "\" y=\"%u\">", v->frames_top + 11);
        if (at > 0 && x < v->picture->width - 60.0)
            text_add_duration(&v->out, (uint64_t)at);
        text_add(&v->out, "</text>");
    }
    text_add(&v->out, "</g>\n");
}

static void measure(struct svg *v)
{
    const struct flame *f = v->picture->flame;
    v->frames_top = HEAD;
    v->frames_height = (f->depth + 1) * ROW;
    if (f->chart) {
        size_t lanes;
        uint32_t *rows = lane_rows(f, &lanes);
        v->frames_height = AXIS;
        for (size_t i = 0; i < lanes; i++)
            v->frames_height += rows[i] * ROW + LANE_GAP;
        free(rows);
    }
    v->height = v->frames_top + v->frames_height + FOOT;
    v->scale = f->extent ? (v->picture->width - 2.0 * MARGIN) / (double)f->extent : 0;
}

static void add_head(struct svg *v)
{
    struct text *out = &v->out;
    text_format(out,
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
                "viewBox=\"0 0 %u %u\" data-margin=\"%d\" data-up=\"%d\">\n<title>",
                v->picture->width, v->height, v->picture->width, v->height, MARGIN,
                v->picture->kind == FLAME_GRAPH);
    xml_escape(out, flame_title(v->picture));
    text_add(out, "</title>\n<style><![CDATA[\n");
    text_add(out, asset_svg_css);
    text_format(out,
                "]]></style>\n<rect id=\"paper\" width=\"%u\" height=\"%u\"/>\n"
                "<text id=\"title\" x=\"%d\" y=\"24\">",
                v->picture->width, v->height, MARGIN);
    add_label(out, &v->scratch, flame_title(v->picture),
              (v->picture->width - 2.0 * MARGIN - 300) * 0.78);
    text_format(out, "</text>\n<text id=\"facts\" x=\"%d\" y=\"43\">", MARGIN);
    text_clear(&v->scratch);
    flame_add_facts(&v->scratch, v->picture);
    xml_escape(out, v->scratch.data);
    text_add(out, "</text>\n");
}

static void add_foot(struct svg *v)
{
    struct text *out = &v->out;
    uint32_t y = v->frames_top + v->frames_height + 20;
    double x = MARGIN;
    text_format(out, "<text id=\"details\" x=\"%d\" y=\"%u\"></text>\n<g id=\"legend\">", MARGIN,
                y);
    for (int tone = 0; tone < TONES; tone++) {
        if (!v->tone_used[tone] || tone == TONE_GROUP)
            continue;
        text_format(out, "<g class=\"t%d s1\"><rect x=\"%.0f\" y=\"%u\" width=\"12\" ", tone, x,
                    y + 11);
        text_format(out, "height=\"12\" rx=\"2\"/></g><text x=\"%.0f\" y=\"%u\">%s</text>", x + 17,
                    y + 21, flame_tone_names[tone]);
        x += 32 + 7.0 * (double)strlen(flame_tone_names[tone]);
    }
    if (v->picture->flame->pruned) {
        text_format(out, "<text x=\"%.0f\" y=\"%u\">", x + 8, y + 21);
        text_add_count(out, v->picture->flame->pruned);
        text_format(out, " boxes narrower than %g %% are not drawn (--min)</text>",
                    v->picture->min_percent);
    }
    text_add(out, "</g>\n<script><![CDATA[\n");
    text_add(out, asset_svg_js);
    text_add(out, "]]></script>\n</svg>\n");
}

int flame_svg(const struct flame_picture *picture, flame_sink *sink, void *context)
{
    struct svg v = {.picture = picture,
                    .sink = sink,
                    .context = context,
                    .out = TEXT_INIT,
                    .scratch = TEXT_INIT};
    measure(&v);
    add_head(&v);
    if (picture->flame->chart)
        add_axis(&v);
    text_add(&v.out, "<g id=\"frames\">\n");
    if (picture->flame->chart)
        add_chart(&v);
    else
        add_graph(&v);
    text_add(&v.out, "</g>\n");
    add_foot(&v);
    flush(&v, true);
    text_release(&v.out);
    text_release(&v.scratch);
    return v.failed;
}
