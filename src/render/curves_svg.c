/* Curves of memory as SVG; see curves.h. */
#include "render/curves.h"

#include <string.h>

#include "render/xml.h"

#define LEFT 84
#define RIGHT 24
#define TOP 56
#define PLOT 360
#define ROW 18
#define BOTTOM 44 /* times, and room before the legend */

/* Told apart by people who see fewer colours, too. */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#8c6d00", "#56b4e9", "#7f3c8d", "#5a5a5a"};
#define COLOURS (sizeof colours / sizeof *colours)

static const char style[] =
    "text{font:12px system-ui,sans-serif;fill:#222}.grid{stroke:#ddd}.line{fill:none;"
    "stroke-width:1.6}.rss{stroke-dasharray:5 4}.thread{stroke-width:1}#title{font-size:16px;"
    "font-weight:600}#paper{fill:#fff}.peak{stroke:#fff;stroke-width:1}.number{fill:#fff;"
    "font-size:10px;font-weight:600;text-anchor:middle}.y{text-anchor:end}"
    "@media(prefers-color-scheme:dark){#paper{fill:#1b1b1f}text{fill:#ddd}.grid{stroke:#3a3a40}}";

struct plot {
    const struct curves_picture *picture;
    struct text *out;
    size_t shown;
    uint64_t time, value; /* where the axes end */
    double x, y;          /* pixels of one ns, of one byte */
};

static double x_of(const struct plot *p, uint64_t time)
{
    return LEFT + (double)(time < p->time ? time : p->time) * p->x;
}

static double y_of(const struct plot *p, uint64_t value)
{
    return TOP + PLOT - (double)value * p->y;
}

/* A power of two of bytes, so that the lines have round numbers in KiB and MiB. */
static uint64_t value_step(uint64_t highest)
{
    uint64_t step = 1;
    while (highest / step > 8)
        step *= 2;
    return step;
}

static uint64_t time_step(uint64_t whole)
{
    static const unsigned parts[] = {1, 2, 5};
    uint64_t unit = 1;
    for (unsigned i = 0;; i++) {
        uint64_t step = unit * parts[i % 3];
        if (whole / step <= 10)
            return step;
        unit *= i % 3 == 2 ? 10 : 1;
    }
}

static void plot_init(struct plot *p, const struct curves_picture *picture, struct text *out)
{
    const struct curves *c = picture->curves;
    const struct profile *f = picture->profile;
    *p = (struct plot){.picture = picture, .out = out};
    p->shown = c->all.len < CURVES_SHOWN ? c->all.len : CURVES_SHOWN;
    p->time = f->end > f->start ? f->end - f->start : 1;
    p->value = 1;
    for (size_t i = 0; i < p->shown; i++)
        if (c->all.data[i].highest > p->value)
            p->value = c->all.data[i].highest;
    uint64_t step = value_step(p->value);
    p->value = (p->value + step - 1) / step * step;
    p->x = (picture->width - LEFT - RIGHT) / (double)p->time;
    p->y = PLOT / (double)p->value;
}

static void add_axes(const struct plot *p)
{
    uint64_t step = value_step(p->value);
    double right = p->picture->width - RIGHT;
    for (uint64_t at = 0; at <= p->value; at += step) {
        text_format(p->out, "<path class=\"grid\" d=\"M%d %.1fH%.1f\"/>", LEFT, y_of(p, at), right);
        text_format(p->out, "<text class=\"y\" x=\"%d\" y=\"%.1f\">", LEFT - 8, y_of(p, at) + 4);
        text_add_bytes(p->out, at);
        text_add(p->out, "</text>\n");
    }
    step = time_step(p->time);
    for (uint64_t at = 0; at <= p->time; at += step) {
        text_format(p->out, "<path class=\"grid\" d=\"M%.1f %dv%d\"/>", x_of(p, at), TOP, PLOT);
        text_format(p->out, "<text x=\"%.1f\" y=\"%d\">", x_of(p, at), TOP + PLOT + 18);
        text_add_duration(p->out, at);
        text_add(p->out, "</text>\n");
    }
}

/* Steps; of points on one pixel the first, the highest and the last. */
static void add_line(const struct plot *p, const struct curve *c, const char *colour)
{
    text_format(p->out, "<path class=\"line%s\" stroke=\"%s\" d=\"",
                c->rss                      ? " rss"
                : c->thread != PROFILE_NONE ? " thread"
                                            : "",
                colour);
    double pixel = -1;
    for (size_t i = 0; i < c->points.len; i++) {
        const struct profile_point *at = &c->points.data[i];
        double x = x_of(p, at->time), y = y_of(p, (uint64_t)at->value);
        bool last = i + 1 == c->points.len || x_of(p, at[1].time) - x >= 0.5;
        if (i && x - pixel < 0.5 && !last && (uint64_t)at->value != c->highest)
            continue;
        if (i)
            text_format(p->out, "H%.1fV%.1f", x, y);
        else
            text_format(p->out, "M%.1f %.1fV%.1f", x, y_of(p, 0), y);
        pixel = x;
    }
    text_add(p->out, "\"/>\n");
}

static void add_peak(const struct plot *p, const struct curve *c, const char *colour, size_t number)
{
    double x = x_of(p, c->highest_time), y = y_of(p, c->highest);
    text_format(p->out, "<circle class=\"peak\" cx=\"%.1f\" cy=\"%.1f\" r=\"8\" fill=\"%s\"/>", x,
                y, colour);
    text_format(p->out, "<text class=\"number\" x=\"%.1f\" y=\"%.1f\">%zu</text>\n", x, y + 3.5,
                number);
}

static void add_name(const struct plot *p, const struct curve *c)
{
    const struct profile *f = p->picture->profile;
    struct text name = TEXT_INIT;
    text_format(&name, "%d %s", f->processes.data[c->process].pid,
                profile_process_name(f, c->process));
    if (c->thread < f->threads.len)
        text_format(&name, " › %d %s", f->threads.data[c->thread].tid,
                    profile_text(f, f->threads.data[c->thread].name));
    text_add(&name, c->rss                      ? ", resident: highest seen "
                    : c->thread != PROFILE_NONE ? ", heap: highest seen "
                                                : ", heap: peak ");
    text_add_bytes(&name, c->highest);
    text_add(&name, " at ");
    text_add_duration(&name, c->highest_time);
    xml_escape(p->out, name.data);
    text_release(&name);
}

static bool is_numbered(const struct curve *c)
{
    return !c->rss && c->thread == PROFILE_NONE;
}

static void add_curves(const struct plot *p)
{
    const struct curve *all = p->picture->curves->all.data;
    for (size_t i = 0; i < p->shown; i++)
        add_line(p, &all[i], colours[i % COLOURS]);
    for (size_t i = 0, number = 0; i < p->shown; i++)
        if (is_numbered(&all[i]))
            add_peak(p, &all[i], colours[i % COLOURS], ++number);
}

static void add_legend(const struct plot *p)
{
    const struct curves *c = p->picture->curves;
    int y = TOP + PLOT + BOTTOM;
    for (size_t i = 0, number = 0; i < p->shown; i++, y += ROW) {
        text_format(p->out, "<path class=\"line%s\" stroke=\"%s\" d=\"M%d %dh28\"/>",
                    c->all.data[i].rss ? " rss" : "", colours[i % COLOURS], LEFT, y - 4);
        text_format(p->out, "<text x=\"%d\" y=\"%d\">", LEFT + 36, y);
        if (is_numbered(&c->all.data[i]))
            text_format(p->out, "%zu: ", ++number);
        add_name(p, &c->all.data[i]);
        text_add(p->out, "</text>\n");
    }
    if (c->all.len > p->shown)
        text_format(p->out,
                    "<text x=\"%d\" y=\"%d\">%zu more are not drawn (--pid, --thread)</text>",
                    LEFT + 36, y, c->all.len - p->shown);
}

void curves_svg(const struct curves_picture *picture, bool html, struct text *out)
{
    struct plot p;
    plot_init(&p, picture, out);
    unsigned height = TOP + PLOT + BOTTOM + ROW * (unsigned)(p.shown + 1);
    if (html) {
        text_add(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                      "<meta name=\"generator\" content=\"sonde\"><title>");
        xml_escape(out, picture->title);
        text_add(out, "</title></head><body>\n");
    } else {
        text_add(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    }
    text_format(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
                "viewBox=\"0 0 %u %u\">\n<title>",
                picture->width, height, picture->width, height);
    xml_escape(out, picture->title);
    text_format(out,
                "</title>\n<style>%s</style>\n<rect id=\"paper\" width=\"%u\" height=\"%u\"/>\n"
                "<text id=\"title\" x=\"12\" y=\"28\">",
                style, picture->width, height);
    xml_escape(out, picture->title);
    text_add(out, "</text>\n");
    add_axes(&p);
    add_curves(&p);
    add_legend(&p);
    text_add(out, html ? "</svg>\n</body></html>\n" : "</svg>\n");
}
