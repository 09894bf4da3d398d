/* Settings from sonde.conf; see conf.h. */
#include "cmd/conf.h"

#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/text.h"
#include "cmd/spelling.h"

#define CONF_MAX (1 << 20)

struct reader {
    const char *path;
    const char *next; /* what is left of the file */
    int line;         /* the one inih works on */
    int too_long;     /* first line that does not fit its buffer, or 0 */
    const struct command *const *table;
    const struct command *command;
    struct option_set *set;
    struct error *err;
    int result; /* of the first fault */
};

static bool is_readable(const char *path)
{
    return access(path, R_OK) == 0;
}

char *conf_path(void)
{
    const char *named = secure_getenv("SONDE_CONF");
    if (named)
        return *named ? strdup(named) : NULL;
    struct text path = TEXT_INIT;
    const char *folder = secure_getenv("XDG_CONFIG_HOME");
    const char *home = secure_getenv("HOME");
    if (folder && folder[0] == '/')
        text_format(&path, "%s/sonde/sonde.conf", folder);
    else if (home && home[0] == '/')
        text_format(&path, "%s/.config/sonde/sonde.conf", home);
    if (path.len && is_readable(path.data))
        return text_take(&path);
    text_clear(&path);
    text_add(&path, "/etc/sonde/sonde.conf");
    if (is_readable(path.data))
        return text_take(&path);
    text_release(&path);
    return NULL;
}

/*
 * Hands inih one line at a time, so that we know which one it works on. Indentation is dropped:
 * inih would take an indented line for more of the value above it.
 */
static char *next_line(char *buffer, int size, void *context)
{
    struct reader *r = context;
    if (!*r->next)
        return NULL;
    r->line++;
    size_t len = strcspn(r->next, "\n");
    const char *start = r->next;
    r->next += len + (r->next[len] == '\n');
    size_t indent = strspn(start, " \t\r");
    indent = indent < len ? indent : len;
    start += indent;
    len -= indent;
    if (len + 2 > (size_t)size) {
        r->too_long = r->too_long ? r->too_long : r->line;
        len = 0;
    }
    memcpy(buffer, start, len);
    buffer[len] = '\n';
    buffer[len + 1] = 0;
    return buffer;
}

static int refuse(struct reader *r, const char *what, const char *word, const char *nearest)
{
    if (nearest)
        r->result = error_set(r->err, FAULT_USAGE, "%s:%d: unknown %s '%s'; did you mean '%s'?",
                              r->path, r->line, what, word, nearest);
    else
        r->result =
            error_set(r->err, FAULT_USAGE, "%s:%d: unknown %s '%s'", r->path, r->line, what, word);
    return 0;
}

static int refuse_section(struct reader *r, const char *section)
{
    struct spelling spelling;
    spelling_init(&spelling, section);
    for (const struct command *const *c = r->table; *c; c++)
        spelling_offer(&spelling, (*c)->name);
    return refuse(r, *section ? "section" : "section (a key before any [command])", section,
                  spelling_nearest(&spelling));
}

static int refuse_key(struct reader *r, const struct command *command, const char *key)
{
    struct spelling spelling;
    spelling_init(&spelling, key);
    for (const struct option *o = command->options; o && o->name; o++)
        spelling_offer(&spelling, o->name);
    return refuse(r, "key", key, spelling_nearest(&spelling));
}

/* inih's callback; 0 is "error", and every one after the first fault is ignored. */
static int take_key(void *context, const char *section, const char *key, const char *value)
{
    struct reader *r = context;
    if (r->result)
        return 0;
    const struct command *command = command_find(r->table, section);
    if (!command || command->without_conf)
        return refuse_section(r, section);
    const struct option *o = option_find(command->options, key, strlen(key));
    if (!o)
        return refuse_key(r, command, key);
    if (command != r->command)
        return 1;
    r->result = option_configure(r->set, o, value ? value : "", r->err);
    if (r->result)
        error_prefix(r->err, "%s:%d", r->path, r->line);
    return r->result == 0;
}

int conf_read(const char *path, const struct command *const *table, const struct command *command,
              struct option_set *set, struct error *err)
{
    char *data;
    size_t len;
    int result = io_slurp(path, CONF_MAX, &data, &len, err);
    if (result)
        return result;
    struct reader r = {
        .path = path, .next = data, .table = table, .command = command, .set = set, .err = err};
    int bad_line = ini_parse_stream(next_line, &r, take_key, &r);
    result = r.result;
    if (!result && r.too_long)
        result = error_set(err, FAULT_USAGE, "%s:%d: the line is too long", path, r.too_long);
    else if (!result && strlen(data) != len)
        result = error_set(err, FAULT_USAGE, "%s holds a NUL byte: it is not a text file", path);
    else if (!result && bad_line)
        result = error_set(err, FAULT_USAGE, "%s:%d: neither '[command]' nor 'key = value'", path,
                           bad_line);
    free(data);
    return result;
}
