/* Statements to ClickHouse over HTTP; see clickhouse.c. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/clickhouse_internal.h"

#define ANSWER_MAX ((size_t)2 << 30)

static size_t take_answer(char *data, size_t size, size_t count, void *context)
{
    struct text *out = context;
    if (out->len + size * count > ANSWER_MAX)
        return 0;
    text_add_len(out, data, size * count);
    return size * count;
}

int clickhouse_code(const struct error *err)
{
    const char *at = strstr(err->text, "Code: ");
    return at ? (int)strtol(at + 6, NULL, 10) : 0;
}

/* "Code: 57, e.displayText() = DB::Exception: Table … already exists., e.what() = …" */
static int refused(const char *host, const struct text *answer, struct error *err)
{
    int len = (int)strcspn(answer->data, "\n");
    char *what = memory_strndup(answer->data, (size_t)(len < 400 ? len : 400));
    char *tail = strstr(what, ", e.what()");
    if (tail)
        *tail = 0;
    error_set(err, FAULT_SYSTEM, "ClickHouse at %s: %s", host, what);
    int code = clickhouse_code(err);
    if (code == 243 || strstr(what, "No space left")) /* NOT_ENOUGH_SPACE */
        err->fault = FAULT_LIMIT;
    else if (code == 193 || code == 192 || code == 194) /* wrong password or user */
        err->fault = FAULT_USAGE;
    free(what);
    return err->fault;
}

static int perform(struct clickhouse *c, const char *host, const char *query, const void *body,
                   size_t len, struct text *answer, struct error *err)
{
    struct text url = TEXT_INIT, own = TEXT_INIT, *out = answer ? answer : &own;
    char why[CURL_ERROR_SIZE] = "";
    long status = 0;
    text_format(&url, "%s://%s/?insert_distributed_sync=1&max_query_size=4194304",
                c->tls ? "https" : "http", host);
    if (query) {
        char *escaped = curl_easy_escape(c->curl, query, 0);
        text_format(&url, "&query=%s", escaped);
        curl_free(escaped);
    }
    curl_easy_reset(c->curl);
    curl_easy_setopt(c->curl, CURLOPT_URL, url.data);
    curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, c->headers);
    curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
    curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, take_answer);
    curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, out);
    curl_easy_setopt(c->curl, CURLOPT_ERRORBUFFER, why);
    curl_easy_setopt(c->curl, CURLOPT_CONNECTTIMEOUT, 3L);
    curl_easy_setopt(c->curl, CURLOPT_TIMEOUT, 60L);
    curl_easy_setopt(c->curl, CURLOPT_NOSIGNAL, 1L);
    if (*c->url.ca)
        curl_easy_setopt(c->curl, CURLOPT_CAINFO, c->url.ca);
    CURLcode code = curl_easy_perform(c->curl);
    curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
    int rc = code ? error_set(err, FAULT_SYSTEM, "cannot reach ClickHouse at %s: %s", host,
                              *why ? why : curl_easy_strerror(code))
             : status != 200 ? refused(host, out, err)
                             : 0;
    text_release(&url);
    text_release(&own);
    return rc;
}

int clickhouse_run(struct clickhouse *c, const char *host, const char *sql, struct text *answer,
                   struct error *err)
{
    return perform(c, host ? host : c->hosts[0], NULL, sql, strlen(sql), answer, err);
}

int clickhouse_format(struct clickhouse *c, struct text *answer, struct error *err,
                      const char *format, ...)
{
    struct text sql = TEXT_INIT;
    va_list args;
    va_start(args, format);
    text_vformat(&sql, format, args);
    va_end(args);
    int rc = clickhouse_run(c, NULL, sql.data, answer, err);
    text_release(&sql);
    return rc;
}

int clickhouse_insert(struct clickhouse *c, const char *table, const struct text *rows,
                      struct error *err)
{
    struct text sql = TEXT_INIT;
    text_format(&sql, "INSERT INTO %s (" CLICKHOUSE_COLUMNS ") FORMAT RowBinary", table);
    int rc = perform(c, c->hosts[0], sql.data, rows->data, rows->len, NULL, err);
    text_release(&sql);
    return rc;
}

void clickhouse_quote(struct text *sql, const char *text)
{
    text_add(sql, "unhex('");
    for (; *text; text++)
        text_format(sql, "%02X", (unsigned char)*text);
    text_add(sql, "')");
}
