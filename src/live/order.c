/* Commands in JSON; see order.h. */
#include "live/order.h"

#include <jansson.h>
#include <string.h>

static int bad(struct error *err, const char *why)
{
    return error_set(err, FAULT_INPUT, "this is no command: %s", why);
}

static int add_object(json_t *root, const char *command, struct text *line, struct error *err)
{
    const char *what = json_string_value(json_object_get(root, "what"));
    json_t *pid = json_object_get(root, "pid");
    what = what ? what : "cpu";
    if (strcmp(what, "cpu") != 0 && strcmp(what, "heap") != 0)
        return bad(err, "\"what\" is \"cpu\" or \"heap\"");
    text_format(line, "%s %s", command, what);
    if (!pid || json_is_null(pid))
        return 0;
    json_int_t number = json_integer_value(pid);
    if (number <= 0 || number > INT32_MAX)
        return bad(err, "\"pid\" is the number of a process");
    text_format(line, " %lld", (long long)number);
    return 0;
}

static int add_mark(json_t *root, struct text *line, struct error *err)
{
    const char *text = json_string_value(json_object_get(root, "text"));
    if (!text || !*text)
        return bad(err, "a mark needs a \"text\"");
    text_add(line, "mark ");
    for (; *text; text++) /* one line, whatever it holds */
        text_add_char(line, (unsigned char)*text < ' ' ? ' ' : *text);
    return 0;
}

static int add_line(json_t *root, struct text *line, struct error *err)
{
    const char *command = json_string_value(json_object_get(root, "command"));
    if (!command)
        return bad(err, "it has no \"command\"");
    if (strcmp(command, "start") == 0 || strcmp(command, "stop") == 0 ||
        strcmp(command, "snapshot") == 0)
        return add_object(root, command, line, err);
    if (strcmp(command, "mark") == 0)
        return add_mark(root, line, err);
    if (strcmp(command, "rate") == 0) {
        json_int_t hz = json_integer_value(json_object_get(root, "hz"));
        text_format(line, "rate %lld", (long long)hz);
        return 0;
    }
    if (strcmp(command, "status") != 0)
        return bad(err, "\"command\" is start, stop, snapshot, rate, mark or status");
    text_add(line, command);
    return 0;
}

int order_parse(const char *json, size_t len, struct text *line, struct error *err)
{
    json_error_t why;
    json_t *root = json_loadb(json, len, JSON_REJECT_DUPLICATES, &why);
    int rc = !root                  ? bad(err, why.text)
             : json_is_object(root) ? add_line(root, line, err)
                                    : bad(err, "it is not an object");
    json_decref(root);
    return rc;
}
