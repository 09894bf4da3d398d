/* Any bytes as what a client of Pyroscope sends: a name, a type and a body, a line each but the
 * last. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "serve/pyroscope.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The next line as a text of its own, so that a step beyond its end is seen. */
static char *take_line(const char **at, size_t *left)
{
    const char *end = *left ? memchr(*at, '\n', *left) : NULL;
    size_t len = end ? (size_t)(end - *at) : *left;
    char *line = memory_strndup(*at, len);
    *at += len + (end != NULL);
    *left -= len + (end != NULL);
    return line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *at = size ? (const char *)data : "";
    struct pyroscope_app app = {0};
    struct text lines = TEXT_INIT;
    char *name = take_line(&at, &size), *type = take_line(&at, &size);
    char *body = memory_dup(size ? at : "", size + (size == 0));
    const char *inner = body;
    size_t len = size;
    pyroscope_name(name, &app);
    pyroscope_unwrap(type, &inner, &len);
    if (inner < body || len > size || (size_t)(inner - body) > size - len)
        abort();
    pyroscope_count_lines(inner, len, &lines);
    if (lines.len > 4 * len + 3)
        abort();
    text_release(&lines);
    free(name);
    free(type);
    free(body);
    return 0;
}
