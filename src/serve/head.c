/* The head of a request; see head.h. */
#include "serve/head.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define STATUS_BAD 400

static const struct {
    const char *name;
    enum http_method method;
} methods[] = {{"GET", HTTP_GET},       {"POST", HTTP_POST}, {"PUT", HTTP_PUT},
               {"DELETE", HTTP_DELETE}, {"HEAD", HTTP_HEAD}, {"OPTIONS", HTTP_OPTIONS}};

const char *http_method_name(enum http_method method)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (methods[i].method == method)
            return methods[i].name;
    return "-";
}

static int refuse(int status, const char *sentence, const char **why)
{
    *why = sentence;
    return status;
}

static bool is_token(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool head_unescape(char *text, bool form)
{
    char *out = text;
    for (char *in = text; *in; in++) {
        char c = *in == '+' && form ? ' ' : *in;
        if (c == '%') {
            int high = digit_of(in[1]), low = high < 0 ? -1 : digit_of(in[2]);
            if (low < 0 || !(high | low))
                return false;
            c = (char)(high << 4 | low);
            in += 2;
        }
        *out++ = c;
    }
    *out = 0;
    return true;
}

static int parse_query(char *query, struct head *out, const char **why)
{
    for (char *rest = query, *one; (one = strsep(&rest, "&"));) {
        if (!*one)
            continue;
        if (out->query_count == HEAD_QUERY_MAX)
            return refuse(414, "the address has too many parameters", why);
        char *value = strchr(one, '=');
        if (value)
            *value++ = 0;
        else
            value = one + strlen(one);
        if (!head_unescape(one, true) || !head_unescape(value, true))
            return refuse(STATUS_BAD, "the address has a malformed %-escape", why);
        out->query[out->query_count++] = (struct head_pair){one, value};
    }
    return 0;
}

static int parse_target(char *target, struct head *out, const char **why)
{
    if (*target != '/')
        return refuse(STATUS_BAD, "the address must begin with a slash", why);
    for (const char *c = target; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f)
            return refuse(STATUS_BAD, "the address has a control character", why);
    char *hash = strchr(target, '#');
    if (hash)
        *hash = 0;
    char *query = strchr(target, '?');
    if (query)
        *query++ = 0;
    if (!head_unescape(target, false))
        return refuse(STATUS_BAD, "the address has a malformed %-escape", why);
    out->path = target;
    return query ? parse_query(query, out, why) : 0;
}

static int parse_request_line(char *line, struct head *out, const char **why)
{
    char *target = strchr(line, ' ');
    char *version = target ? strchr(target + 1, ' ') : NULL;
    if (!version)
        return refuse(STATUS_BAD, "the first line is not that of an HTTP request", why);
    *target++ = 0;
    *version++ = 0;
    if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0)
        return refuse(505, "only HTTP/1.1 is spoken here", why);
    out->keep_alive = version[7] == '1';
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp(methods[i].name, line) == 0)
            out->method = methods[i].method;
    if (!out->method)
        return refuse(501, "this method is not known here", why);
    return parse_target(target, out, why);
}

static int parse_header(char *line, struct head *out, const char **why)
{
    char *colon = strchr(line, ':');
    if (!colon || colon == line)
        return refuse(STATUS_BAD, "a header has no name", why);
    *colon = 0;
    for (const char *c = line; *c; c++)
        if (!is_token((unsigned char)*c))
            return refuse(STATUS_BAD, "a header's name has a character that none may have", why);
    char *value = colon + 1;
    value += strspn(value, " \t");
    size_t len = strlen(value);
    while (len && (value[len - 1] == ' ' || value[len - 1] == '\t'))
        value[--len] = 0;
    for (const char *c = value; *c; c++)
        if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f)
            return refuse(STATUS_BAD, "a header has a control character", why);
    if (out->header_count == HEAD_HEADERS_MAX)
        return refuse(431, "the request has too many headers", why);
    out->headers[out->header_count++] = (struct head_pair){line, value};
    return 0;
}

/* The value if there is exactly one; *count says how many. */
static const char *only(const struct head *h, const char *name, size_t *count)
{
    const char *value = NULL;
    *count = 0;
    for (size_t i = 0; i < h->header_count; i++)
        if (strcasecmp(h->headers[i].name, name) == 0 && ++*count)
            value = h->headers[i].value;
    return value;
}

static bool parse_length(const char *text, uint64_t *out)
{
    size_t len = strlen(text);
    if (!len || len > 18 || strspn(text, "0123456789") != len)
        return false;
    *out = strtoull(text, NULL, 10);
    return true;
}

/* How long the body is: there must be one way to read it. */
static int frame_body(struct head *out, const char **why)
{
    size_t lengths, codings;
    const char *length = only(out, "content-length", &lengths);
    const char *coding = only(out, "transfer-encoding", &codings);
    if (lengths > 1 || codings > 1 || (lengths && codings))
        return refuse(STATUS_BAD, "the length of the body is given twice", why);
    if (length && !parse_length(length, &out->length))
        return refuse(STATUS_BAD, "Content-Length is not a number", why);
    if (coding && strcasecmp(coding, "chunked") != 0)
        return refuse(501, "of transfer encodings only 'chunked' is known here", why);
    out->chunked = coding != NULL;
    return 0;
}

static int digest_headers(struct head *out, const char **why)
{
    size_t hosts, count;
    out->host = only(out, "host", &hosts);
    if (hosts != 1)
        return refuse(STATUS_BAD, "a request needs one Host header", why);
    int status = frame_body(out, why);
    if (status)
        return status;
    const char *connection = only(out, "connection", &count);
    if (connection && strcasestr(connection, "close"))
        out->keep_alive = false;
    else if (connection && strcasestr(connection, "keep-alive"))
        out->keep_alive = true;
    const char *expect = only(out, "expect", &count);
    if (expect && strcasecmp(expect, "100-continue") != 0)
        return refuse(417, "of expectations only '100-continue' is known here", why);
    out->expects_continue = expect != NULL;
    return 0;
}

int head_parse(char *data, size_t len, struct head *out, const char **why)
{
    *out = (struct head){0};
    if (memchr(data, 0, len))
        return refuse(STATUS_BAD, "the request's head has a NUL byte", why);
    bool first = true;
    for (char *at = data, *end = data + len; at < end;) {
        char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop || stop == at || stop[-1] != '\r')
            return refuse(STATUS_BAD, "lines of a request end with carriage return and line feed",
                          why);
        stop[-1] = 0;
        if (!*at && !first)
            break;
        int status = first ? parse_request_line(at, out, why) : parse_header(at, out, why);
        if (status)
            return status;
        first = false;
        at = stop + 1;
    }
    return first ? refuse(STATUS_BAD, "the request is empty", why) : digest_headers(out, why);
}

const char *head_header(const struct head *h, const char *name)
{
    for (size_t i = 0; i < h->header_count; i++)
        if (strcasecmp(h->headers[i].name, name) == 0)
            return h->headers[i].value;
    return NULL;
}

const char *head_query(const struct head *h, const char *key)
{
    for (size_t i = 0; i < h->query_count; i++)
        if (strcmp(h->query[i].name, key) == 0)
            return h->query[i].value;
    return NULL;
}
