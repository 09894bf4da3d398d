/* What stands around a flame graph: what ran, how long, what was lost, what it cost. */
#include "render/flame_internal.h"

#include <string.h>

const char *const flame_tone_names[TONES] = {"native", "inlined",    "Python", "kernel",
                                             "JIT",    "no symbols", "group",  "waiting"};

enum flame_tone flame_tone_of(const struct tree_symbol *symbol, bool inlined)
{
    if (symbol->level == TREE_WAIT)
        return TONE_WAIT;
    if (symbol->level != TREE_CODE)
        return TONE_GROUP;
    switch (symbol->kind) {
    case CODE_KERNEL:
    case CODE_VDSO:
        return TONE_KERNEL;
    case CODE_PYTHON:
        return TONE_PYTHON;
    case CODE_JIT:
        return TONE_JIT;
    case CODE_ELF:
        if (symbol->without_name)
            return TONE_NAMELESS;
        return inlined ? TONE_INLINED : TONE_NATIVE;
    default:
        return TONE_NAMELESS;
    }
}

int flame_change_of(const struct flame_box *box)
{
    static const double steps[] = {0.02, 0.10, 0.30, 0.60};
    uint64_t larger = box->before > box->after ? box->before : box->after;
    double by = larger ? ((double)box->after - (double)box->before) / (double)larger : 0;
    int level = 0;
    while (level < 4 && (by < 0 ? -by : by) >= steps[level])
        level++;
    return by < 0 ? -level : level;
}

void flame_add_value(struct text *out, enum value_unit unit, uint64_t value)
{
    if (unit == UNIT_NANOSECONDS)
        text_add_duration(out, value);
    else if (unit == UNIT_BYTES)
        text_add_bytes(out, value);
    else
        text_add_count(out, value);
}

void flame_add_percent(struct text *out, uint64_t part, uint64_t whole)
{
    double percent = whole ? 100.0 * (double)part / (double)whole : 0;
    if (percent > 0 && percent < 0.01)
        text_add(out, "<0.01 %");
    else
        text_format(out, "%.*f %%", percent < 10 ? 2 : 1, percent);
}

const char *flame_title(const struct flame_picture *picture)
{
    const struct profile *p = picture->selection->profile;
    if (picture->title)
        return picture->title;
    const char *command = profile_meta_get(p, "command");
    if (command && *command)
        return command;
    if (p->processes.len && p->processes.data[0].execs.len) {
        const char *arguments = profile_text(p, p->processes.data[0].execs.data[0].arguments);
        return *arguments ? arguments : profile_process_name(p, 0);
    }
    return "sonde";
}

double flame_cost_percent(const struct profile *p)
{
    if (p->end <= p->start || (!p->cost.collector_cpu && !p->cost.target_extra))
        return -1;
    return 100.0 * (double)(p->cost.collector_cpu + p->cost.target_extra) /
           (double)(p->end - p->start);
}

void flame_add_facts(struct text *out, const struct flame_picture *picture)
{
    const struct selection *s = picture->selection;
    const struct profile *p = s->profile;
    double cost = flame_cost_percent(p);
    text_format(out, "%s ", s->label.data);
    if (picture->flame->compares) {
        const struct flame_box *root = picture->flame->boxes.data;
        flame_add_value(out, s->unit, root->before);
        text_add(out, " → ");
        flame_add_value(out, s->unit, root->after);
        text_add(out, " · red has grown, blue has shrunk");
        return;
    }
    flame_add_value(out, s->unit, s->value);
    if (p->end > p->start) {
        text_add(out, " in ");
        text_add_duration(out, p->end - p->start);
    }
    if (s->count || !s->value) {
        text_add(out, " · ");
        text_add_count(out, s->count);
        text_format(out, " %s", selection_noun_of(s, s->count));
    }
    text_add(out, " · ");
    text_add_count(out, profile_lost(p));
    text_add(out, " lost");
    if (cost >= 0)
        text_format(out, " · profiler %.2f %% of one CPU", cost);
    if (!p->complete)
        text_add(out, " · the recording was cut short");
}
