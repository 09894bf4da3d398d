/* Counts for people; see counts.h. */
#include "render/counts.h"

#include <math.h>
#include <stdlib.h>

#include "analyze/counting.h"
#include "render/terminal_internal.h"

#define VALUE_WIDTH 18
#define NAME_WIDTH 25
#define METRIC_WIDTH 27

static void add_value(struct text *out, const struct counts_event *e, double value)
{
    struct text t = TEXT_INIT;
    if (e->timed)
        text_format(&t, "%.2f", value / 1e6);
    else if (*e->measure)
        text_format(&t, "%.2f", value * e->scale);
    else
        text_add_count(&t, (uint64_t)llround(value));
    text_format(out, "%*s", VALUE_WIDTH, t.data);
    text_release(&t);
}

static void add_metric(struct text *out, const struct counting_metric *m)
{
    struct text t = TEXT_INIT;
    if (m->known && m->unit[0] == '%')
        text_format(&t, "# %8.*f%s", m->decimals, m->value, m->unit);
    else if (m->known)
        text_format(&t, "# %8.*f %s", m->decimals, m->value, m->unit);
    text_format(out, " %-*s", METRIC_WIDTH, t.data);
    text_release(&t);
}

static void trim(struct text *out)
{
    while (out->len && out->data[out->len - 1] == ' ')
        out->data[--out->len] = 0;
}

/* "      1,234 unit name      #  ratio", without the end of the line. */
static void add_event(struct text *out, const struct counts *c, const struct counts_value *values,
                      uint64_t elapsed, size_t i)
{
    const struct counts_event *e = &c->events.data[i];
    struct counting_metric m;
    struct text name = TEXT_INIT;
    if (!values[i].known || e->refused)
        text_format(out, "%*s", VALUE_WIDTH, e->refused ? "<not supported>" : "<not counted>");
    else
        add_value(out, e, values[i].value);
    text_add_printable(&name, e->name);
    text_add(&name, e->user_only ? ":u" : "");
    text_format(out, " %-4s %-*s", e->timed ? "msec" : e->measure, NAME_WIDTH, name.data);
    counting_metric(c, values, elapsed, i, &m);
    add_metric(out, &m);
    text_release(&name);
}

static void write_events(const struct counts *c, struct text *out)
{
    struct counts_value *means = counting_means(c);
    uint64_t elapsed = counting_usage(c).real;
    unsigned group = 0;
    for (size_t i = 0; i < c->events.len; i++) {
        struct counting_sum s = counting_sum(c, i);
        if (c->events.data[i].group != group && i)
            text_add_char(out, '\n'); /* groups stand apart: their ratios hold together */
        group = c->events.data[i].group;
        add_event(out, c, means, elapsed, i);
        if (s.known && c->runs.len > 1)
            text_format(out, "( +-%6.2f%% )", s.spread);
        if (s.known && s.share < 0.9995)
            text_format(out, "  (%.2f%%)", s.share * 100);
        trim(out);
        text_add_char(out, '\n');
    }
    free(means);
}

static void add_seconds(struct text *out, uint64_t ns, const char *what)
{
    text_format(out, "%*.9f seconds %s\n", VALUE_WIDTH, (double)ns / 1e9, what);
}

static void add_bytes(struct text *out, uint64_t bytes, const char *what)
{
    struct text t = TEXT_INIT;
    text_add_bytes(&t, bytes);
    text_format(out, "%*s %s\n", VALUE_WIDTH, t.data, what);
    text_release(&t);
}

static void write_usage(const struct counts *c, struct text *out)
{
    struct counts_usage u = counting_usage(c);
    if (c->runs.len > 1) {
        double error = counting_real_error(c);
        text_format(out, "%*.6f +- %.6f seconds time elapsed  ( +-%6.2f%% )\n", VALUE_WIDTH,
                    (double)u.real / 1e9, error / 1e9, u.real ? error / (double)u.real * 100 : 0.0);
    } else {
        add_seconds(out, u.real, "time elapsed");
    }
    if (c->cpus) {
        if (u.stolen)
            add_seconds(out, u.stolen, "stolen by the hypervisor, of all CPUs");
        return;
    }
    text_add_char(out, '\n');
    add_seconds(out, u.user, "user");
    add_seconds(out, u.sys, "sys");
    if (u.delay_known && u.delayed > u.real / 100)
        add_seconds(out, u.delayed, "waited for a CPU");
    if (u.stolen > u.real / 100)
        add_seconds(out, u.stolen, "stolen by the hypervisor, of all CPUs");
    text_add_char(out, '\n');
    if (u.max_rss)
        add_bytes(out, u.max_rss,
                  u.rss_bound ? "maximum resident memory, or less" : "maximum resident memory");
    if (u.io_known && u.read_bytes)
        add_bytes(out, u.read_bytes, "read from storage");
    if (u.io_known && u.written_bytes)
        add_bytes(out, u.written_bytes, "written to storage");
    text_format(out, "%*llu + %llu switches: of its own accord + forced\n", VALUE_WIDTH,
                (unsigned long long)u.voluntary, (unsigned long long)u.involuntary);
    text_format(out, "%*llu + %llu page faults: minor + major\n", VALUE_WIDTH,
                (unsigned long long)u.minor_faults, (unsigned long long)u.major_faults);
}

/* Threads and notes are written as everywhere. */
static void write_rest(const struct counts *c, struct terminal_style style, struct text *out)
{
    struct view v;
    if (c->threads.len) {
        counting_threads(&v, c);
        terminal_write(&v, style, out);
        view_release(&v);
    }
    if (!c->notes.len)
        return;
    view_init(&v, "notes", "", "");
    struct view_section *s = view_add(&v, VIEW_NOTES, "notes", "");
    for (size_t i = 0; i < c->notes.len; i++)
        view_note(s, c->notes.data[i].level, c->notes.data[i].text);
    terminal_write(&v, style, out);
    view_release(&v);
}

void counts_write(const struct counts *c, struct terminal_style style, struct text *out)
{
    struct text subject = TEXT_INIT;
    text_add_printable(&subject, c->subject);
    text_format(out, "\n Performance counter stats for %s", subject.data);
    text_release(&subject);
    if (c->runs.len > 1)
        text_format(out, " (%zu runs)", c->runs.len);
    text_add(out, ":\n\n");
    write_events(c, out);
    text_add_char(out, '\n');
    write_usage(c, out);
    write_rest(c, style, out);
    text_add_char(out, '\n');
}

void counts_write_interval(const struct counts *c, struct text *out)
{
    const struct counts_interval *at = &c->intervals.data[c->intervals.len - 1];
    if (c->intervals.len == 1)
        text_format(out, "#%14s %*s unit events\n", "time", VALUE_WIDTH, "counts");
    for (size_t i = 0; i < c->events.len; i++) {
        if (c->events.data[i].refused)
            continue; /* said once, at the end */
        text_format(out, "%15.9f ", (double)at->end / 1e9);
        add_event(out, c, at->values, at->length, i);
        trim(out);
        text_add_char(out, '\n');
    }
}
