/* The list of formats and what their writers share; see format.h. */
#include "formats/format.h"

#include <string.h>

extern const struct format format_pprof, format_folded, format_speedscope, format_chrome_trace,
    format_gecko, format_callgrind, format_dot, format_perf_data, format_perf_script,
    format_gperftools_cpu, format_gperftools_heap, format_jemalloc_heap, format_heaptrack,
    format_cpuprofile, format_json, format_csv, format_massif;

/* As help and messages list them. Longer extensions of the same end come first. */
static const struct format *const formats[] = {
    &format_pprof,
    &format_folded,
    &format_speedscope,
    &format_chrome_trace,
    &format_gecko,
    &format_callgrind,
    &format_dot,
    &format_perf_data,
    &format_perf_script,
    &format_gperftools_cpu,
    &format_gperftools_heap,
    &format_jemalloc_heap,
    &format_cpuprofile,
    &format_json,
    &format_csv,
    &format_massif,
    &format_heaptrack,
    NULL,
};

const struct format *const *format_list(void)
{
    return formats;
}

const struct format *format_find(const char *name)
{
    for (const struct format *const *f = formats; *f; f++)
        if (!strcmp((*f)->name, name) || ((*f)->alias && !strcmp((*f)->alias, name)))
            return *f;
    return NULL;
}

const struct format *format_for_path(const char *path)
{
    for (const struct format *const *f = formats; *f; f++) {
        const char *const *e = (*f)->extensions;
        for (; (*f)->write && *e; e++)
            if (text_ends(path, *e))
                return *f;
    }
    return NULL;
}

const struct format *format_detect(const uint8_t *bytes, size_t len)
{
    const struct format *best = NULL;
    int surest = 0;
    for (const struct format *const *f = formats; *f; f++) {
        int sure = (*f)->detect ? (*f)->detect(bytes, len) : 0;
        if (sure > surest) {
            surest = sure;
            best = *f;
        }
    }
    return best;
}

void format_names(bool written, struct text *out)
{
    const char *names[sizeof formats / sizeof *formats];
    size_t n = 0;
    for (const struct format *const *f = formats; *f; f++)
        if (written ? (*f)->write != NULL : (*f)->read != NULL)
            names[n++] = (*f)->name;
    for (size_t i = 0; i < n; i++)
        text_format(out, "%s%s", i == 0 ? "" : i == n - 1 ? " and " : ", ", names[i]);
}

uint32_t format_main_event(const struct profile *p)
{
    static const char *const usual[] = {"cpu", "inuse_space", "heap:live", "heap:allocated"};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        uint32_t event = profile_event_find(p, usual[i]);
        if (event != PROFILE_NONE && p->events.data[event].value)
            return event;
    }
    for (size_t i = 0; i < p->events.len; i++)
        if (p->events.data[i].samples || p->events.data[i].value)
            return (uint32_t)i;
    return p->events.len ? 0 : PROFILE_NONE;
}

/* Waits are of any length: how many there were says little. */
static bool sums_values(const struct profile *p, uint32_t event)
{
    const char *name = profile_text(p, p->events.data[event].name);
    return p->events.data[event].unit == UNIT_BYTES || text_starts(name, "off-cpu:") ||
           !strcmp(name, "wall");
}

uint64_t format_weight(const struct profile *p, const struct profile_cell *c, enum weight weight)
{
    if (weight == WEIGHT_AUTOMATIC)
        weight = sums_values(p, c->event) ? WEIGHT_VALUE : WEIGHT_SAMPLES;
    return weight == WEIGHT_VALUE ? c->value : c->count;
}

void format_address(const struct profile *p, uint32_t frame, struct text *out)
{
    if (frame >= p->frames.len) {
        text_add(out, "[unknown]");
        return;
    }
    const struct profile_frame *f = &p->frames.data[frame];
    const char *module = profile_module_name(p, f->module);
    if (!f->address)
        text_format(out, module[0] == '[' ? "%s" : "[%s]", module);
    else if (module[0] == '[')
        text_format(out, "%.*s+0x%llx]", (int)strlen(module) - 1, module,
                    (unsigned long long)f->address);
    else
        text_format(out, "[%s+0x%llx]", module, (unsigned long long)f->address);
}
