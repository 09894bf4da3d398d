/* See tracing.h. */
#include "cmd/tracing.h"

#include <string.h>

#define PATTERNS_MAX 1000 /* bytes that an agent has room for */

static int join(const struct option_list *list, const char *option, struct text *out,
                struct error *err)
{
    for (size_t i = 0; i < list->len; i++)
        text_format(out, "%s%s", i ? ":" : "", list->data[i]);
    if (out->len > PATTERNS_MAX)
        return error_set(err, FAULT_USAGE, "the patterns of --%s are longer than %d bytes together",
                         option, PATTERNS_MAX);
    return 0;
}

/* "module:function" as the agent knows it, "module.function": the colon separates patterns. */
static int join_lines(const struct option_list *list, struct text *out, struct error *err)
{
    for (size_t i = 0; i < list->len; i++) {
        const char *colon = strchr(list->data[i], ':');
        if (!colon && list->data[i][0] != '@')
            return error_set(err, FAULT_USAGE,
                             "--lines takes MODULE:FUNCTION, such as 'app:main' or '*:parse_*', or "
                             "'@profile'; not '%s'",
                             list->data[i]);
        text_format(out, "%s%s", i ? ":" : "", list->data[i]);
        if (colon)
            out->data[out->len - strlen(colon)] = '.';
    }
    if (out->len > PATTERNS_MAX)
        return error_set(err, FAULT_USAGE, "the patterns of --lines are longer than %d bytes",
                         PATTERNS_MAX);
    return 0;
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
    int rc = join(&o->only, "trace-only", &t->only, err);
    if (!rc)
        rc = join(&o->skip, "trace-skip", &t->skip, err);
    if (!rc)
        rc = join_lines(&o->lines, &t->lines, err);
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
