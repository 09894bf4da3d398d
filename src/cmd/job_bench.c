/* Benchmark results as tables; see job_bench.h. */
#include "cmd/job_bench.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/statistics.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/vector.h"

#define MEASURES_MAX 64
#define PEOPLE_MEASURES 6 /* in the tables for people */
#define NARROW_MEASURES 5 /* of those, on a terminal of 80 columns */

const char *job_heading(struct view *v, const char *text)
{
    struct text safe = TEXT_INIT;
    text_add_printable(&safe, text);
    const char *kept = arena_strdup(&v->arena, safe.data);
    text_release(&safe);
    return kept;
}

static const char *text_at(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static uint64_t time_of(const json_t *run)
{
    return (uint64_t)json_integer_value(json_object_get(run, "time"));
}

/* Names of the numbers that results have, in the order in which they first come. */
static void measures_of(const json_t *runs, struct names *out)
{
    size_t i;
    const json_t *run;
    const char *name;
    json_t *value;
    json_array_foreach(runs, i, run)
    {
        json_object_foreach(json_object_get(run, "run"), name, value)
        {
            if (json_is_number(value) && out->len < MEASURES_MAX)
                names_add(out, name);
        }
    }
}

/* For machines. */
static struct view_value exactly(struct view_section *s, const json_t *value)
{
    char text[40];
    if (json_is_integer(value))
        snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
    else
        snprintf(text, sizeof text, "%.9g", json_real_value(value));
    return view_text(s, text);
}

/* As people read it: sonde's own times are in seconds, its memory in bytes. */
static struct view_value readably(struct view_section *s, const char *measure, double value)
{
    struct text t = TEXT_INIT;
    if (!strcmp(measure, "real") || !strcmp(measure, "user") || !strcmp(measure, "sys"))
        text_add_duration(&t, value > 0 && value < 1e9 ? (uint64_t)(value * 1e9) : 0);
    else if (!strcmp(measure, "maximum memory"))
        text_add_bytes(&t, value > 0 && value < 1e18 ? (uint64_t)value : 0);
    else if (value >= 1e5 && value < 1e18)
        text_add_count(&t, (uint64_t)value);
    else
        text_format(&t, "%.6g", value);
    struct view_value cell = view_text(s, t.data);
    text_release(&t);
    return cell;
}

/* The columns of both tables: a number, what was measured, and of what. */
static struct view_section *add_table(struct view *v, const char *id, const char *title,
                                      const char *number, const struct names *measures,
                                      size_t count)
{
    struct view_column *columns = memory_array(count + 4, sizeof *columns);
    columns[0] = (struct view_column){number, number, VIEW_NUMBER};
    columns[1] = (struct view_column){"name", "name", VIEW_TEXT, .fill = true};
    for (size_t k = 0; k < count; k++)
        columns[k + 2] = (struct view_column){job_heading(v, measures->text[k]),
                                              job_heading(v, measures->text[k]), VIEW_TEXT,
                                              k < NARROW_MEASURES ? 0 : 100};
    columns[count + 2] = (struct view_column){"host", "host", VIEW_TEXT, 100};
    columns[count + 3] = (struct view_column){"time", "when", VIEW_DATE, 100};
    struct view_section *s = view_add_table(v, id, title, columns, count + 4);
    free(columns);
    return s;
}

static void add_runs(struct view *v, const json_t *runs, const struct names *measures, size_t count,
                     bool machines)
{
    size_t i;
    struct view_section *s = add_table(v, "runs", "Runs", "run", measures, count);
    const json_t *run;
    json_array_foreach(runs, i, run)
    {
        struct view_value *row = view_row(s, 0, VIEW_PLAIN);
        row[0] = view_number(i + 1);
        row[1] = view_text(s, text_at(run, "name"));
        for (size_t k = 0; k < count; k++) {
            const char *measure = measures->text[k];
            const json_t *value = json_object_get(json_object_get(run, "run"), measure);
            if (json_is_number(value))
                row[k + 2] =
                    machines ? exactly(s, value) : readably(s, measure, json_number_value(value));
        }
        row[count + 2] = view_text(s, text_at(run, "host"));
        row[count + 3] = view_number(time_of(run));
    }
}

/* Runs of one name that one benchmark made. */
struct session {
    const json_t *first;
    size_t runs;
    VECTOR(double) values[PEOPLE_MEASURES];
};

struct sessions {
    struct names keys;
    VECTOR(struct session) list;
};

static struct session *session_of(struct sessions *all, const json_t *run)
{
    struct text key = TEXT_INIT;
    text_format(&key, "%s\n%s\n%s", text_at(run, "name"), text_at(run, "host"),
                text_at(json_object_get(json_object_get(run, "run"), "session"), "key"));
    uint32_t at = names_add(&all->keys, key.data);
    text_release(&key);
    if (at == all->list.len)
        *vector_push(&all->list) = (struct session){.first = run};
    return &all->list.data[at];
}

static void gather(const json_t *runs, const struct names *measures, size_t count,
                   struct sessions *out)
{
    size_t i;
    const json_t *run;
    json_array_foreach(runs, i, run)
    {
        struct session *one = session_of(out, run);
        one->runs++;
        for (size_t k = 0; k < count; k++) {
            const json_t *value = json_object_get(json_object_get(run, "run"), measures->text[k]);
            if (json_is_number(value))
                *vector_push(&one->values[k]) = json_number_value(value);
        }
    }
}

static void add_sessions(struct view *v, const json_t *runs, const struct names *measures,
                         size_t count)
{
    struct sessions all = {0};
    struct view_section *s = add_table(v, "sessions", "Medians", "runs", measures, count);
    gather(runs, measures, count, &all);
    for (size_t i = 0; i < all.list.len; i++) {
        struct session *one = &all.list.data[i];
        struct view_value *row = view_row(s, 0, VIEW_PLAIN);
        row[0] = view_number(one->runs);
        row[1] = view_text(s, text_at(one->first, "name"));
        for (size_t k = 0; k < count; k++) {
            size_t n = one->values[k].len;
            if (n)
                row[k + 2] =
                    readably(s, measures->text[k], statistics_median(one->values[k].data, n));
            vector_release(&one->values[k]);
        }
        row[count + 2] = view_text(s, text_at(one->first, "host"));
        row[count + 3] = view_number(time_of(one->first));
    }
    names_release(&all.keys);
    vector_release(&all.list);
}

void job_bench_view(struct view *v, const json_t *runs, bool machines)
{
    struct names measures = {0};
    measures_of(runs, &measures);
    size_t shown = machines || measures.len < PEOPLE_MEASURES ? measures.len : PEOPLE_MEASURES;
    if (!machines)
        add_sessions(v, runs, &measures, shown);
    add_runs(v, runs, &measures, shown, machines);
    names_release(&measures);
}
