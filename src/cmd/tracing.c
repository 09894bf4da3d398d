/* See tracing.h. */
#include "cmd/tracing.h"

#include <string.h>

#define PATTERNS_MAX 1000 /* bytes that an agent has room for */

/* "module:function" as the agent knows it, "module.function": the colon separates patterns. */
static int add_function(const char *pattern, int len, struct text *out, struct error *err)
{
    const char *colon = memchr(pattern, ':', (size_t)len);
    if (!colon && pattern[0] != '@')
        return error_set(err, FAULT_USAGE,
                         "--lines takes MODULE:FUNCTION, such as 'app:main' or '*:parse_*', or "
                         "'@profile'; not '%.*s'",
                         len, pattern);
    size_t start = out->len;
    text_format(out, "%.*s", len, pattern);
    if (colon)
        out->data[start + (size_t)(colon - pattern)] = '.';
    return 0;
}

static int add_file(const char *pattern, int len, struct text *out, struct error *err)
{
    (void)err;
    text_format(out, "%.*s", len, pattern);
    return 0;
}

/* Patterns, each option's separated by commas, one after another with colons between them. */
static int join(const struct option_list *list, const char *option,
                int (*add)(const char *, int, struct text *, struct error *), struct text *out,
                struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < list->len; i++) {
        for (const char *at = list->data[i]; *at && !rc; at += *at == ',') {
            int len = (int)strcspn(at, ",");
            if (len && out->len)
                text_add_char(out, ':');
            if (len)
                rc = add(at, len, out, err);
            at += len;
        }
    }
    if (!rc && out->len > PATTERNS_MAX)
        rc = error_set(err, FAULT_USAGE, "the patterns of --%s are longer than %d bytes together",
                       option, PATTERNS_MAX);
    return rc;
}

int tracing_apply(const struct tracing_options *o, struct tracing *t,
                  struct session_options *session, struct error *err)
{
    *t = (struct tracing){
        .trace = {.calls = o->calls, .no_builtins = !o->builtins, .depth = (uint32_t)o->depth}};
    text_init(&t->only);
    text_init(&t->skip);
    text_init(&t->lines);
    session->trace = &t->trace; /* spans that programs mark themselves, at least */
    session->trace_entries = o->all ? 0 : o->entries;
    if (!o->calls && !o->lines.len)
        return o->line_memory || o->rss
                   ? error_set(err, FAULT_USAGE, "--line-memory and --rss go with --lines")
                   : 0;
    int rc = join(&o->only, "trace-only", add_file, &t->only, err);
    if (!rc)
        rc = join(&o->skip, "trace-skip", add_file, &t->skip, err);
    if (!rc)
        rc = join(&o->lines, "lines", add_function, &t->lines, err);
    if (rc)
        return rc;
    t->trace.only = t->only.len ? t->only.data : NULL;
    t->trace.skip = t->skip.len ? t->skip.data : NULL;
    t->trace.lines = t->lines.len ? t->lines.data : NULL;
    t->trace.rss = o->rss;
    session->trace_min = o->min;
    if (o->line_memory && session->heap == HEAP_OFF)
        session->heap = HEAP_EXACT;
    return 0;
}

void tracing_release(struct tracing *t)
{
    text_release(&t->only);
    text_release(&t->skip);
    text_release(&t->lines);
}
