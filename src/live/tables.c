/* What is published; see tables.h. */
#include "live/tables.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "capture/control.h"
#include "live/order.h"
#include "render/terminal.h"
#include "render/view_json.h"

#define WIDTH 120
#define SECONDS 10

void tables_init(struct tables *t, unsigned limit)
{
    *t = (struct tables){.limit = limit};
    text_init(&t->cpu);
    text_init(&t->cpu_json);
    text_init(&t->heap);
    text_init(&t->heap_json);
}

static void clear(struct tables *t)
{
    text_clear(&t->cpu);
    text_clear(&t->cpu_json);
    text_clear(&t->heap);
    text_clear(&t->heap_json);
}

void tables_release(struct tables *t)
{
    text_release(&t->cpu);
    text_release(&t->cpu_json);
    text_release(&t->heap);
    text_release(&t->heap_json);
    state_mark_release(&t->before);
}

struct both {
    struct text *text, *json;
};

static void write_both(void *context, const struct view *v)
{
    struct both *b = context;
    struct json j;
    terminal_write(v, (struct terminal_style){.width = WIDTH}, b->text);
    json_init(&j, NULL, NULL);
    view_json(v, &j);
    json_finish(&j);
    text_add_len(b->json, j.out.data, j.out.len);
    json_release(&j);
}

void tables_make(struct tables *t, struct state *s)
{
    struct views_options cpu = {.top = t->limit};
    struct views_options heap = {.top = t->limit, .event = "heap:live", .pid = t->pid};
    struct both to_cpu = {&t->cpu, &t->cpu_json}, to_heap = {&t->heap, &t->heap_json};
    clear(t);
    state_view_since(s, &t->before, "functions", &cpu, write_both, &to_cpu, NULL);
    /* No such event, or no such process any more: then there is nothing to tell. */
    if (state_view(s, "functions", &heap, write_both, &to_heap, NULL)) {
        text_clear(&t->heap);
        text_clear(&t->heap_json);
    }
}

/* What is true now, whatever was asked. */
static void say(struct tables_answer *a, bool ok, const char *sentence, const char *control)
{
    struct text status = TEXT_INIT;
    struct json j;
    json_init(&j, NULL, NULL);
    json_open_object(&j);
    json_put_bool(&j, "ok", ok);
    json_put_string(&j, ok ? "text" : "error", sentence);
    json_key(&j, "selected");
    int32_t selected = a->select >= 0 ? a->select : a->selected;
    if (selected)
        json_int(&j, selected);
    else
        json_text(&j, "all");
    json_key(&j, "session");
    if (control && control_ask(control, "status", SECONDS, &status, NULL) == 0)
        json_raw(&j, status.data, status.len);
    else
        json_nothing(&j);
    json_end(&j);
    json_finish(&j);
    text_add_len(&a->text, j.out.data, j.out.len);
    json_release(&j);
    text_release(&status);
}

static void select_process(long pid, struct state *s, const char *control,
                           struct tables_answer *out)
{
    struct text sentence = TEXT_INIT;
    bool there = pid == 0 || (pid > 0 && pid <= INT32_MAX && s && state_runs(s, (int32_t)pid));
    if (there) {
        out->select = (int32_t)pid;
        text_format(&sentence,
                    pid ? "memory of process %ld is shown"
                        : "memory of all processes "
                          "is shown",
                    pid);
    } else {
        text_format(&sentence, "no such process: %ld is not in this session", pid);
    }
    say(out, there, sentence.data, control);
    text_release(&sentence);
}

static bool parse_select(const char *message, size_t len, long *pid)
{
    json_t *root = json_loadb(message, len, JSON_DECODE_ANY, NULL);
    const char *command = json_string_value(json_object_get(root, "command"));
    bool found = json_is_integer(root) || (command && strcmp(command, "select") == 0 &&
                                           json_is_integer(json_object_get(root, "pid")));
    if (found)
        *pid =
            (long)json_integer_value(json_is_integer(root) ? root : json_object_get(root, "pid"));
    json_decref(root);
    return found;
}

void tables_order(const char *message, size_t len, struct state *s, const char *control,
                  struct tables_answer *out)
{
    struct text line = TEXT_INIT, answer = TEXT_INIT;
    struct error err = {0};
    long pid;
    if (parse_select(message, len, &pid)) {
        select_process(pid, s, control, out);
        return;
    }
    int rc = order_parse(message, len, &line, &err);
    if (!rc && !control)
        rc = error_set(&err, FAULT_MISSING, "this session takes no commands");
    if (!rc)
        rc = control_ask(control, line.data, SECONDS, &answer, &err);
    say(out, rc == 0,
        rc                                 ? err.text
        : strcmp(line.data, "status") == 0 ? "status"
                                           : answer.data,
        control);
    text_release(&line);
    text_release(&answer);
}
