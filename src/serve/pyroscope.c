/* What clients of Pyroscope send; see pyroscope.h. */
#include "serve/pyroscope.h"

#include <stdlib.h>
#include <string.h>

static void copy_part(char *to, size_t size, const char *from, size_t len)
{
    len = len < size ? len : size - 1;
    memcpy(to, from, len);
    to[len] = 0;
}

static void take_label(struct pyroscope_app *app, const char *label, size_t len)
{
    static const char *const hosts[] = {"hostname", "host", "instance", "pod"};
    const char *equals = memchr(label, '=', len);
    if (!equals)
        return;
    size_t key = (size_t)(equals - label);
    const char *value = equals + 1;
    size_t value_len = len - key - 1;
    if (value_len >= 2 && value[0] == '"' && value[value_len - 1] == '"') {
        value++;
        value_len -= 2;
    }
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        if (strlen(hosts[i]) == key && !memcmp(hosts[i], label, key))
            copy_part(app->host, sizeof app->host, value, value_len);
    if (key == 3 && !memcmp(label, "job", 3))
        app->job = (uint32_t)strtoul(value, NULL, 10);
}

void pyroscope_name(const char *text, struct pyroscope_app *app)
{
    static const char *const events[] = {"cpu",           "alloc_objects", "alloc_space",
                                         "inuse_objects", "inuse_space",   "goroutines",
                                         "itimer",        "wall",          "lock_count"};
    const char *labels = strchrnul(text, '{');
    copy_part(app->name, sizeof app->name, text, (size_t)(labels - text));
    char *dot = strrchr(app->name, '.');
    for (size_t i = 0; dot && i < sizeof events / sizeof *events; i++)
        if (!strcmp(dot + 1, events[i])) {
            copy_part(app->event, sizeof app->event, dot + 1, strlen(dot + 1));
            *dot = 0;
            break;
        }
    while (*labels && *labels != '}') {
        labels++;
        size_t len = strcspn(labels, ",}");
        take_label(app, labels, len);
        labels += len;
    }
}

void pyroscope_unwrap(const char *type, const char **body, size_t *len)
{
    const char *mark =
        type && strstr(type, "multipart/form-data") ? strstr(type, "boundary=") : NULL;
    if (!mark)
        return;
    struct text edge = TEXT_INIT;
    mark += strlen("boundary=");
    text_add(&edge, "--");
    text_add_len(&edge, mark + (*mark == '"'), strcspn(mark + (*mark == '"'), "\";"));
    const char *end = *body + *len, *at = memmem(*body, *len, edge.data, edge.len);
    while (at) {
        const char *head = at + edge.len;
        const char *data = memmem(head, (size_t)(end - head), "\r\n\r\n", 4);
        const char *next = data ? memmem(data, (size_t)(end - data), edge.data, edge.len) : NULL;
        if (!next)
            break;
        if (memmem(head, (size_t)(data - head), "name=\"profile\"", 14)) {
            *body = data + 4;
            *len = next - 2 > data + 4 ? (size_t)(next - 2 - (data + 4)) : 0;
            break;
        }
        at = next;
    }
    text_release(&edge);
}

void pyroscope_count_lines(const char *body, size_t len, struct text *out)
{
    const char *end = body + len;
    while (body < end) {
        const char *stop = memchr(body, '\n', (size_t)(end - body));
        stop = stop ? stop : end;
        if (stop > body) {
            text_add_len(out, body, (size_t)(stop - body));
            text_add(out, " 1\n");
        }
        body = stop + 1;
    }
}
