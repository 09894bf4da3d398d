/*
 * Events of PMUs that the kernel describes in sysfs: "pmu/name/", "pmu/term=value,.../". A
 * format file says into which bits a term's value goes:
 *
 *     format/umask   "config:8-15"      format/event   "config:0-7,32-35"
 */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/text.h"
#include "capture/event_internal.h"

static bool read_line(char *out, size_t size, const char *format, const char *pmu, const char *name)
{
    struct text path = TEXT_INIT;
    char *text;
    text_format(&path, "%s/%s/", EVENT_PMU_ROOT, pmu);
    text_format(&path, format, name);
    int rc = io_slurp(path.data, 4096, &text, NULL, NULL);
    text_release(&path);
    if (rc)
        return false;
    text[strcspn(text, "\n")] = 0;
    snprintf(out, size, "%s", text);
    free(text);
    return true;
}

/* The next bits of `value` into bits first..last of `word`. */
static uint64_t deposit(uint64_t word, uint64_t *value, unsigned first, unsigned last)
{
    for (unsigned bit = first; bit <= last && bit < 64; bit++, *value >>= 1)
        word = (word & ~(1ull << bit)) | (*value & 1) << bit;
    return word;
}

static bool apply_format(const char *format, uint64_t value, struct event *e)
{
    const char *colon = strchr(format, ':');
    if (!colon)
        return false;
    uint64_t *word = text_starts(format, "config1:")   ? &e->config1
                     : text_starts(format, "config2:") ? &e->config2
                     : text_starts(format, "config:")  ? &e->config
                                                       : NULL;
    if (!word)
        return false;
    for (const char *s = colon + 1; *s;) {
        char *end;
        unsigned first = (unsigned)strtoul(s, &end, 10), last = first;
        if (end == s)
            return false;
        if (*end == '-')
            last = (unsigned)strtoul(end + 1, &end, 10);
        *word = deposit(*word, &value, first, last);
        s = *end == ',' ? end + 1 : end;
        if (*end && *end != ',')
            return false;
    }
    return value == 0; /* else it did not fit */
}

static int apply_terms(const char *pmu, const char *terms, bool may_name, struct event *e,
                       struct error *err);

static int apply_term(const char *pmu, char *term, bool may_name, struct event *e,
                      struct error *err)
{
    char line[512], *equals = strchr(term, '='), *end = NULL;
    uint64_t value = 1;
    if (equals) {
        *equals = 0;
        value = strtoull(equals + 1, &end, 0);
        if (end == equals + 1 || *end)
            return error_set(err, FAULT_USAGE, "'%s' in %s/%s/ is not a number", equals + 1, pmu,
                             term);
    }
    uint64_t *word = !strcmp(term, "config")    ? &e->config
                     : !strcmp(term, "config1") ? &e->config1
                     : !strcmp(term, "config2") ? &e->config2
                                                : NULL;
    if (word) {
        *word = value;
        return 0;
    }
    if (!event_is_word(term, strlen(term)))
        return error_set(err, FAULT_USAGE, "'%s' is not a term of the PMU %s", term, pmu);
    if (!equals && may_name && read_line(line, sizeof line, "events/%s", pmu, term)) {
        char measure[sizeof e->measure], scale[64];
        if (read_line(measure, sizeof measure, "events/%s.unit", pmu, term))
            snprintf(e->measure, sizeof e->measure, "%s", measure);
        if (read_line(scale, sizeof scale, "events/%s.scale", pmu, term))
            e->scale = strtod(scale, NULL);
        return apply_terms(pmu, line, false, e, err);
    }
    if (!read_line(line, sizeof line, "format/%s", pmu, term))
        return error_set(err, FAULT_MISSING,
                         "the PMU %s has no event or term '%s' ('sonde list \"%s/*\"' shows them)",
                         pmu, term, pmu);
    if (!apply_format(line, value, e))
        return error_set(err, FAULT_USAGE, "%s=0x%llx does not fit into %s", term,
                         (unsigned long long)value, line);
    return 0;
}

static int apply_terms(const char *pmu, const char *terms, bool may_name, struct event *e,
                       struct error *err)
{
    char copy[512], *rest = copy;
    int rc = 0;
    snprintf(copy, sizeof copy, "%s", terms);
    for (char *one; !rc && (one = strsep(&rest, ","));)
        if (*one)
            rc = apply_term(pmu, one, may_name, e, err);
    return rc;
}

int event_pmu(const char *name, struct event *e, struct error *err)
{
    char pmu[64], path[160], terms[512], cpus[16];
    const char *slash = strchr(name, '/');
    size_t len = (size_t)(slash - name), end = strlen(name);
    if (!event_is_word(name, len) || len >= sizeof pmu || name[end - 1] != '/' || end < len + 2)
        return error_set(err, FAULT_USAGE, "'%s' is not of the form pmu/event/", name);
    snprintf(pmu, sizeof pmu, "%.*s", (int)len, name);
    snprintf(path, sizeof path, "%s/%s/type", EVENT_PMU_ROOT, pmu);
    uint64_t type;
    if (!event_read_number(path, 10, &type))
        return error_set(err, FAULT_MISSING, "this machine shows no PMU '%s'", pmu);
    e->type = (uint32_t)type;
    e->by_rate = true;
    e->per_cpu = read_line(cpus, sizeof cpus, "%s", pmu, "cpumask");
    snprintf(terms, sizeof terms, "%.*s", (int)(end - len - 2), slash + 1);
    return apply_terms(pmu, terms, true, e, err);
}

int event_pmu_named(const char *name, struct event *e)
{
    if (!event_is_word(name, strlen(name)))
        return FAULT_USAGE;
    DIR *d = opendir(EVENT_PMU_ROOT);
    int rc = FAULT_USAGE;
    for (struct dirent *one; d && rc && (one = readdir(d));) {
        struct text path = TEXT_INIT;
        if (one->d_name[0] != '.')
            text_format(&path, "%s/%s/events/%s", EVENT_PMU_ROOT, one->d_name, name);
        if (path.len && access(path.data, R_OK) == 0) {
            text_clear(&path);
            text_format(&path, "%s/%s/", one->d_name, name);
            rc = event_pmu(path.data, e, NULL);
        }
        text_release(&path);
    }
    if (d)
        closedir(d);
    return rc;
}
