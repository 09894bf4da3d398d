/* One job, for people or into a file; see job_show.h. */
#include "cmd/job_show.h"

#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cmd/job_bench.h"
#include "cmd/printing.h"
#include "formats/format.h"
#include "formats/sink_file.h"
#include "render/csv.h"

#define TOP_DEFAULT 20u

static void add_query(struct text *path, const char *key, const char *value)
{
    text_format(path, "%c%s=", strchr(path->data, '?') ? '&' : '?', key);
    for (; *value; value++)
        if (isalnum((unsigned char)*value) || strchr("-._~", *value))
            text_add_char(path, *value);
        else
            text_format(path, "%%%02X", (unsigned char)*value);
}

static uint64_t number_at(const json_t *object, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(object, name));
}

static const char *text_at(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static int write_out(const struct job_options *o, const void *data, size_t len, struct error *err)
{
    struct sink_file *file;
    int rc = sink_file_new(o->output ? o->output : "-", o->force, &file, err);
    if (rc)
        return rc;
    sink_add(sink_file_sink(file), data, len);
    rc = sink_finish(sink_file_sink(file), err);
    if (rc)
        sink_file_free(file, false, NULL);
    else
        rc = sink_file_free(file, true, err);
    return rc;
}

static int print_view(const struct job_options *o, const struct view *v, const char *format,
                      struct error *err)
{
    if (format && !strcmp(format, "csv")) {
        struct text out = TEXT_INIT;
        csv_write(v, &out);
        int rc = write_out(o, out.data, out.len, err);
        text_release(&out);
        return rc;
    }
    return view_print(v, false, false, err);
}

static enum view_kind kind_of(const char *event)
{
    if (!strcmp(event, "cpu") || !strcmp(event, "wall") || text_starts(event, "off-cpu"))
        return VIEW_DURATION;
    return text_starts(event, "heap:") || text_ends(event, "_space") ? VIEW_BYTES : VIEW_COUNT;
}

/* A table of functions as the server gave it. */
static void add_functions(struct view *v, const json_t *table)
{
    const json_t *events = json_object_get(table, "columns");
    size_t count = json_array_size(events), i, k;
    struct view_column *columns = memory_array(count + 2, sizeof *columns);
    for (k = 0; k < count; k++) {
        const char *event = json_string_value(json_array_get(events, k));
        columns[k] =
            (struct view_column){job_heading(v, event), job_heading(v, event), kind_of(event)};
    }
    columns[count] = (struct view_column){"function", "function", VIEW_TEXT, .fill = true};
    columns[count + 1] = (struct view_column){"executable", "executable", VIEW_TEXT, 60};
    struct view_section *s = view_add_table(v, "functions", "Functions", columns, count + 2);
    const json_t *row, *values;
    json_array_foreach(json_object_get(table, "rows"), i, row)
    {
        struct view_value *cells = view_row(s, 0, VIEW_PLAIN);
        values = json_object_get(row, "values");
        for (k = 0; k < count; k++)
            cells[k] = view_nonzero((uint64_t)json_integer_value(json_array_get(values, k)));
        cells[count] = view_text(s, text_at(row, "function"));
        cells[count + 1] = view_text(s, text_at(row, "executable"));
    }
    free(columns);
}

/* For people, in place of a table without rows. */
static void say_empty(const struct remote *r, const struct job_options *o, unsigned id)
{
    fprintf(stderr, "sonde job: job %u has no ", id);
    if (o->bench)
        fprintf(stderr, "benchmark runs; 'sonde bench --job %u -- COMMAND' adds some\n", id);
    else if (o->profile && o->event)
        fprintf(stderr, "counts of that event; 'sonde job show %u' lists those that it has\n", id);
    else
        fprintf(stderr, "%s; 'sonde run --to %s --job %u%s -- COMMAND' adds some\n",
                o->profile ? "counts" : "recordings", remote_url(r), id,
                o->profile ? "" : " --keep");
}

static json_t *fetch(struct remote *r, const char *path, struct error *err)
{
    struct text answer = TEXT_INIT;
    json_t *root = NULL;
    if (!remote_get(r, path, &answer, err)) {
        root = json_loadb(answer.data, answer.len, 0, NULL);
        if (!root)
            error_set(err, FAULT_INPUT, "%s did not answer with JSON: is it sonde serve?",
                      remote_url(r));
    }
    text_release(&answer);
    return root;
}

/* What the server writes itself goes on as it is. */
static int pass_on(struct remote *r, const struct job_options *o, const char *path,
                   struct error *err)
{
    struct text answer = TEXT_INIT;
    int rc = remote_get(r, path, &answer, err);
    if (!rc)
        rc = write_out(o, answer.data, answer.len, err);
    text_release(&answer);
    return rc;
}

static int show_profile(struct remote *r, const struct job_options *o, unsigned id,
                        const char *format, struct error *err)
{
    struct text path = TEXT_INIT, top = TEXT_INIT;
    int rc = 0;
    text_format(&path, "/api/jobs/%u/profile", id);
    if (o->event)
        add_query(&path, "event", o->event);
    if (o->top) {
        text_format(&top, "%llu", (unsigned long long)o->top);
        add_query(&path, "top", top.data);
    }
    if (format) {
        add_query(&path, "format", format);
        rc = pass_on(r, o, path.data, err);
    } else {
        json_t *table = fetch(r, path.data, err);
        struct view v;
        rc = table ? 0 : err->fault;
        view_init(&v, "job", "", "functions");
        if (table)
            add_functions(&v, table);
        if (table && !json_array_size(json_object_get(table, "rows")))
            say_empty(r, o, id);
        else if (!rc)
            rc = print_view(o, &v, NULL, err);
        view_release(&v);
        json_decref(table);
    }
    text_release(&path);
    text_release(&top);
    return rc;
}

static void add_recordings(struct view *v, const json_t *recordings)
{
    static const struct view_column columns[] = {
        {"size", "size", VIEW_BYTES},
        {"time", "when", VIEW_DATE, 90},
        {"key", "key", VIEW_TEXT, .fill = true}, /* whole: --recording needs it */
        {"host", "host", VIEW_TEXT, 100},
        {"name", "name", VIEW_TEXT},
    };
    struct view_section *s = view_add_table(v, "recordings", "Recordings", columns, 5);
    size_t i;
    const json_t *recording;
    json_array_foreach(recordings, i, recording)
    {
        struct view_value *row = view_row(s, 0, VIEW_PLAIN);
        row[0] = view_number(number_at(recording, "size"));
        row[1] = view_number(number_at(recording, "time"));
        row[2] = view_text(s, text_at(recording, "key"));
        row[3] = view_text(s, text_at(recording, "host"));
        row[4] = view_text(s, text_at(recording, "name"));
    }
}

static int show_list(struct remote *r, const struct job_options *o, unsigned id, const char *format,
                     struct error *err)
{
    char path[80];
    struct view v;
    snprintf(path, sizeof path, "/api/jobs/%u/%s", id, o->bench ? "bench" : "recordings");
    if (format && !strcmp(format, "json"))
        return pass_on(r, o, path, err);
    json_t *root = fetch(r, path, err);
    if (!root)
        return err->fault;
    view_init(&v, "job", "", o->bench ? (format ? "runs" : "sessions") : "recordings");
    const json_t *rows = json_object_get(root, o->bench ? "runs" : "recordings");
    if (o->bench)
        job_bench_view(&v, rows, format != NULL);
    else
        add_recordings(&v, rows);
    int rc = 0;
    if (!format && !json_array_size(rows))
        say_empty(r, o, id);
    else
        rc = print_view(o, &v, format, err);
    view_release(&v);
    json_decref(root);
    return rc;
}

static void add_head(struct view *v, const json_t *job, size_t runs, size_t recordings)
{
    struct view_section *s = view_add(v, VIEW_FACTS, "job", "");
    struct view_fact *f =
        view_fact(s, "Job", "id", "job", VIEW_NUMBER, view_number(number_at(job, "id")));
    f = view_fact(s, "Job", "info", "description", VIEW_TEXT, view_text(s, text_at(job, "info")));
    f = view_fact(s, "Added", "batches", "pushes", VIEW_COUNT,
                  view_number(number_at(job, "batches")));
    f->after = number_at(job, "batches") == 1 ? " push" : " pushes";
    f = view_fact(s, "Added", "runs", "benchmark runs", VIEW_COUNT, view_number(runs));
    f->after = runs == 1 ? " benchmark run" : " benchmark runs";
    f = view_fact(s, "Added", "recordings", "recordings", VIEW_COUNT, view_number(recordings));
    f->after = recordings == 1 ? " recording" : " recordings";
    size_t i;
    const json_t *event;
    json_array_foreach(json_object_get(job, "events"), i, event)
    {
        const char *name = job_heading(v, text_at(event, "name"));
        f = view_fact(s, "Events", name, name, kind_of(name),
                      view_number(number_at(event, "value")));
        struct text label = TEXT_INIT;
        text_format(&label, "%s ", name);
        f->before = arena_strdup(&v->arena, label.data);
        text_release(&label);
    }
}

static size_t count_of(struct remote *r, unsigned id, const char *what, const char *member)
{
    char path[80];
    struct error ignored = {0};
    snprintf(path, sizeof path, "/api/jobs/%u/%s", id, what);
    json_t *root = fetch(r, path, &ignored);
    size_t count = json_array_size(json_object_get(root, member));
    json_decref(root);
    return count;
}

static json_t *largest(struct remote *r, const struct job_options *o, unsigned id,
                       const json_t *job, struct error *err)
{
    struct text path = TEXT_INIT, top = TEXT_INIT;
    const json_t *events = json_object_get(job, "events");
    const char *event = o->event;
    for (size_t i = 0; !event && i < json_array_size(events); i++)
        if (!strcmp(text_at(json_array_get(events, i), "name"), "cpu"))
            event = "cpu";
    if (!event && json_array_size(events))
        event = text_at(json_array_get(events, 0), "name");
    json_t *table = NULL;
    if (event) {
        text_format(&path, "/api/jobs/%u/profile", id);
        text_format(&top, "%llu", (unsigned long long)(o->top ? o->top : TOP_DEFAULT));
        add_query(&path, "event", event);
        add_query(&path, "top", top.data);
        table = fetch(r, path.data, err);
    }
    text_release(&path);
    text_release(&top);
    return table;
}

static int show_overview(struct remote *r, const struct job_options *o, unsigned id,
                         const char *format, struct error *err)
{
    char path[64];
    struct view v;
    snprintf(path, sizeof path, "/api/jobs/%u", id);
    if (format && !strcmp(format, "json"))
        return pass_on(r, o, path, err);
    json_t *job = fetch(r, path, err);
    if (!job)
        return err->fault;
    json_t *table = largest(r, o, id, job, err);
    view_init(&v, "job", "", "functions");
    add_head(&v, job, count_of(r, id, "bench", "runs"),
             count_of(r, id, "recordings", "recordings"));
    if (table)
        add_functions(&v, table);
    int rc = err->fault ? (int)err->fault : print_view(o, &v, format, err);
    view_release(&v);
    json_decref(table);
    json_decref(job);
    return rc;
}

static int show_recording(struct remote *r, const struct job_options *o, unsigned id,
                          struct error *err)
{
    struct text path = TEXT_INIT;
    if (!o->output)
        return error_set(err, FAULT_USAGE, "a recording is binary: name a file with -o");
    if (!batch_key_valid(o->recording))
        return error_set(err, FAULT_USAGE, "'%s' is no recording's key", o->recording);
    text_format(&path, "/api/jobs/%u/recordings/%s", id, o->recording);
    int rc = pass_on(r, o, path.data, err);
    text_release(&path);
    return rc;
}

/* What to write, where nobody said: by the file's ending; NULL is "for people". */
static const char *format_of(const struct job_options *o)
{
    if (o->json)
        return "json";
    if (o->format || !o->output)
        return o->format;
    if (text_ends(o->output, ".csv"))
        return "csv";
    const struct format *f = format_for_path(o->output);
    return o->profile && f && strcmp(f->name, "json") ? f->name : "json";
}

int job_show(struct invocation *inv, struct remote *r, unsigned id)
{
    const struct job_options *o = inv->options;
    const char *format = format_of(o);
    if (o->profile + o->bench + o->recordings + (o->recording != NULL) > 1)
        return error_set(&inv->error, FAULT_USAGE,
                         "--profile, --bench, --recordings and --recording exclude each other");
    if (format && !o->profile && !o->recording && strcmp(format, "json") && strcmp(format, "csv"))
        return error_set(&inv->error, FAULT_USAGE,
                         "'%s' goes with --profile; all else is json or csv", format);
    if (o->top && !o->event && o->profile)
        return error_set(&inv->error, FAULT_USAGE,
                         "--top needs an event to order by: name it with -e");
    if (o->recording)
        return show_recording(r, o, id, &inv->error);
    if (o->profile)
        return show_profile(r, o, id, format, &inv->error);
    if (o->bench || o->recordings)
        return show_list(r, o, id, format, &inv->error);
    return show_overview(r, o, id, format, &inv->error);
}
