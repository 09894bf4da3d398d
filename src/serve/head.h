/*
 * The head of an HTTP/1.1 request, as bytes from anyone: parsed in place, strictly. What is
 * ambiguous (two lengths, a folded header, a bare line feed) is refused and not guessed at.
 */
#ifndef SONDE_SERVE_HEAD_H
#define SONDE_SERVE_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAD_HEADERS_MAX 64
#define HEAD_QUERY_MAX 64

enum http_method {
    HTTP_GET = 1,
    HTTP_POST = 2,
    HTTP_PUT = 4,
    HTTP_DELETE = 8,
    HTTP_HEAD = 16,
    HTTP_OPTIONS = 32,
};

struct head_pair {
    const char *name, *value;
};

struct head {
    enum http_method method;
    const char *path; /* percent-decoded, begins with '/' */
    struct head_pair headers[HEAD_HEADERS_MAX];
    size_t header_count;
    struct head_pair query[HEAD_QUERY_MAX]; /* decoded */
    size_t query_count;
    const char *host;
    bool keep_alive, chunked, expects_continue;
    uint64_t length; /* of the body, 0 if chunked */
};

/* Parses the head in data[0..len), which ends with an empty line and is followed by a NUL that is
 * ours too; it is cut into strings that `out` points into. Returns 0, or the HTTP status of the
 * refusal with a sentence in *why. */
int head_parse(char *data, size_t len, struct head *out, const char **why);

/* The value of a header (any case of its name) or of a query's key, or NULL. */
const char *head_header(const struct head *h, const char *name);
const char *head_query(const struct head *h, const char *key);

const char *http_method_name(enum http_method method);

/* Decodes %xx (and '+' if `form`) in place; false for a malformed one or a NUL. */
bool head_unescape(char *text, bool form);

#endif
