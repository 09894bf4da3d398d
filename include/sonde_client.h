/*
 * A client of `sonde serve` in a few calls; link with -lcurl.
 *
 *     struct sonde_client *c = sonde_client_open(NULL, NULL);     // $SONDE_SERVER, $SONDE_TOKEN
 *     int job = sonde_client_create(c, 0, "parser, new table");   // or a number from 2001 to 9999
 *     sonde_client_count(c, "app", "parse", "cache-misses", 10);  // gathers
 *     if (sonde_client_send(c, job) < 0)                          // sends all that has gathered
 *         fputs(sonde_client_error(c), stderr);
 *     sonde_client_close(c);
 *
 * What has gathered is sent as one batch with one key: when no answer came, send it again, it
 * counts once. Functions return 0 or more, or -1 with a sentence in sonde_client_error. A client
 * is for one thread at a time. $SONDE_CA names a file of certificates to trust.
 */
#ifndef SONDE_CLIENT_H
#define SONDE_CLIENT_H

#include <curl/curl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sonde_client {
    CURL *curl;
    struct curl_slist *headers;
    char url[1024], key[33], error[512];
    char *counts, *answer; /* gathered rows; the last answer */
    size_t counts_len, answer_len;
};

static inline const char *sonde_client_error(const struct sonde_client *c)
{
    return c->error;
}

static inline int sonde_client_append(char **to, size_t *len, const char *data, size_t count)
{
    char *more = (char *)realloc(*to, *len + count + 1);
    if (!more)
        return -1;
    memcpy(more + *len, data, count);
    more[*len + count] = 0;
    *to = more;
    *len += count;
    return 0;
}

static inline size_t sonde_client_take(char *data, size_t size, size_t count, void *context)
{
    struct sonde_client *c = (struct sonde_client *)context;
    return sonde_client_append(&c->answer, &c->answer_len, data, size * count) ? 0 : size * count;
}

static inline void sonde_client_new_key(struct sonde_client *c)
{
    unsigned char bytes[16] = {0};
    FILE *f = fopen("/dev/urandom", "rb");
    size_t have = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    if (f)
        fclose(f);
    c->key[0] = 0; /* without chance there is no key, and the server refuses it */
    for (size_t i = 0; have == sizeof bytes && i < sizeof bytes; i++)
        snprintf(c->key + 2 * i, 3, "%02x", bytes[i]);
}

/* NULL for the environment's, or this machine's. NULL if there is no memory. */
static inline struct sonde_client *sonde_client_open(const char *url, const char *token)
{
    struct sonde_client *c = (struct sonde_client *)calloc(1, sizeof *c);
    char line[1024];
    if (!c)
        return NULL;
    url = url ? url : getenv("SONDE_SERVER");
    token = token ? token : getenv("SONDE_TOKEN");
    snprintf(c->url, sizeof c->url, "%s", url && *url ? url : "http://127.0.0.1:10000");
    c->curl = curl_easy_init();
    c->headers = curl_slist_append(NULL, "Content-Type: application/json");
    if (token && *token) {
        snprintf(line, sizeof line, "Authorization: Bearer %s", token);
        c->headers = curl_slist_append(c->headers, line);
    }
    sonde_client_new_key(c);
    return c;
}

static inline void sonde_client_close(struct sonde_client *c)
{
    if (!c)
        return;
    curl_slist_free_all(c->headers);
    curl_easy_cleanup(c->curl);
    free(c->counts);
    free(c->answer);
    free(c);
}

/* POSTs `body`; the answer is in c->answer. */
static inline int sonde_client_post(struct sonde_client *c, const char *path, const char *body)
{
    char url[1200];
    long status = 0;
    const char *ca = getenv("SONDE_CA");
    snprintf(url, sizeof url, "%s%s", c->url, path);
    c->answer_len = 0;
    curl_easy_reset(c->curl);
    if (ca && *ca)
        curl_easy_setopt(c->curl, CURLOPT_CAINFO, ca);
    curl_easy_setopt(c->curl, CURLOPT_URL, url);
    curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, c->headers);
    curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, sonde_client_take);
    curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, c);
    curl_easy_setopt(c->curl, CURLOPT_TIMEOUT, 30L);
    curl_easy_setopt(c->curl, CURLOPT_NOSIGNAL, 1L);
    CURLcode code = curl_easy_perform(c->curl);
    curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
    if (code == CURLE_OK && status >= 200 && status < 300)
        return 0;
    snprintf(c->error, sizeof c->error, "%.150s: %.300s", url,
             code != CURLE_OK ? curl_easy_strerror(code)
             : c->answer      ? c->answer
                              : "refused");
    return -1;
}

/* `text` as a JSON string, appended. */
static inline int sonde_client_quote(char **to, size_t *len, const char *text)
{
    char escaped[8];
    int rc = sonde_client_append(to, len, "\"", 1);
    for (; !rc && *text; text++) {
        if (*text == '"' || *text == '\\' || (unsigned char)*text < 0x20) {
            snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned char)*text);
            rc = sonde_client_append(to, len, escaped, 6);
        } else {
            rc = sonde_client_append(to, len, text, 1);
        }
    }
    return rc ? rc : sonde_client_append(to, len, "\"", 1);
}

/* Makes a job: with that number, or with the next free one for 0. Returns its number. */
static inline int sonde_client_create(struct sonde_client *c, int id, const char *info)
{
    char *body = NULL, number[32] = "";
    size_t len = 0;
    if (id)
        snprintf(number, sizeof number, "\"id\":%d,", id);
    int rc = sonde_client_append(&body, &len, "{", 1);
    rc = rc ? rc : sonde_client_append(&body, &len, number, strlen(number));
    rc = rc ? rc : sonde_client_append(&body, &len, "\"info\":", 7);
    rc = rc ? rc : sonde_client_quote(&body, &len, info ? info : "");
    rc = rc ? rc : sonde_client_append(&body, &len, "}", 1);
    rc = rc ? rc : sonde_client_post(c, "/api/jobs", body);
    free(body);
    const char *at = !rc && c->answer ? strstr(c->answer, "\"id\":") : NULL;
    return at ? (int)strtol(at + 5, NULL, 10) : -1;
}

/* Gathers: `value` more of `event` in `function` of `executable`. */
static inline int sonde_client_count(struct sonde_client *c, const char *executable,
                                     const char *function, const char *event, int64_t value)
{
    char **to = &c->counts, number[32];
    size_t *len = &c->counts_len;
    snprintf(number, sizeof number, ":%lld}}", (long long)value);
    int rc = *len ? sonde_client_append(to, len, ",", 1) : 0;
    rc = rc ? rc : sonde_client_append(to, len, "{\"executable\":", 14);
    rc = rc ? rc : sonde_client_quote(to, len, executable);
    rc = rc ? rc : sonde_client_append(to, len, ",\"function\":", 12);
    rc = rc ? rc : sonde_client_quote(to, len, function);
    rc = rc ? rc : sonde_client_append(to, len, ",\"events\":{", 11);
    rc = rc ? rc : sonde_client_quote(to, len, event);
    return rc ? rc : sonde_client_append(to, len, number, strlen(number));
}

/* Sends what has gathered. After -1 it is still gathered, and may be sent again. */
static inline int sonde_client_send(struct sonde_client *c, int job)
{
    char path[64], head[80], *body = NULL;
    size_t len = 0;
    snprintf(path, sizeof path, "/api/jobs/%d/batches", job);
    snprintf(head, sizeof head, "{\"key\":\"%s\",\"counts\":[", c->key);
    int rc = sonde_client_append(&body, &len, head, strlen(head));
    rc = rc ? rc : sonde_client_append(&body, &len, c->counts ? c->counts : "", c->counts_len);
    rc = rc ? rc : sonde_client_append(&body, &len, "]}", 2);
    rc = rc ? rc : sonde_client_post(c, path, body);
    free(body);
    if (!rc) {
        c->counts_len = 0;
        sonde_client_new_key(c);
    }
    return rc;
}

#endif
