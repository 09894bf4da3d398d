/* From a path to a route: patterns are compared part by part. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "serve/http_internal.h"

/* Does the path fit? Fills q's parameters as it goes. */
static bool fits(const char *pattern, struct http_request *q)
{
    char *path = q->param_bytes;
    q->param_count = 0;
    for (;;) {
        if (*pattern != '/' || *path != '/')
            return !*pattern && !*path;
        pattern++;
        path++;
        size_t want = strcspn(pattern, "/"), have = strcspn(path, "/");
        if (want == 1 && *pattern == '*') {
            q->params[q->param_count++] = (struct head_pair){"*", path};
            return true;
        }
        if (*pattern == '{') {
            if (!have || q->param_count == PARAMS_MAX - 1)
                return false;
            q->params[q->param_count++] = (struct head_pair){pattern, path};
        } else if (want != have || memcmp(pattern, path, want) != 0) {
            return false;
        }
        pattern += want;
        path += have;
    }
}

/* The parameters' values still run on to the end of the path: cuts them. */
static void cut_params(struct http_request *q)
{
    for (size_t i = q->param_count; i-- > 0;)
        if (*q->params[i].name != '*')
            ((char *)q->params[i].value)[strcspn(q->params[i].value, "/")] = 0;
}

const struct http_route *route_find(const struct http_server *s, struct http_request *q,
                                    unsigned *allowed, void **context)
{
    unsigned method = q->head.method == HTTP_HEAD ? HTTP_GET : q->head.method;
    *allowed = 0;
    free(q->param_bytes);
    q->param_bytes = memory_strdup(q->head.path);
    for (size_t t = 0; t < s->tables.len; t++) {
        const struct route_table *table = &s->tables.data[t];
        for (size_t i = 0; i < table->count; i++) {
            const struct http_route *r = &table->routes[i];
            if (!fits(r->pattern, q))
                continue;
            *allowed |= r->methods;
            if (!(r->methods & method))
                continue;
            cut_params(q);
            *context = table->context;
            return r;
        }
    }
    q->param_count = 0;
    return NULL;
}

const char *http_param(const struct http_request *q, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < q->param_count; i++) {
        const char *is = q->params[i].name;
        if (strcmp(name, "*") == 0
                ? *is == '*'
                : *is == '{' && strncmp(is + 1, name, len) == 0 && is[len + 1] == '}')
            return q->params[i].value;
    }
    return NULL;
}
