/* A server of jobs; see remote.h. */
#include "cmd/remote.h"

#include <curl/curl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "store/spool.h"

#define ANSWER_MAX ((size_t)1 << 30)
#define SPOOL_MAX ((uint64_t)1 << 30)
#define CONNECT_SECONDS 5L
#define STALL_SECONDS 30L /* without a byte */

struct remote {
    char *url;
    CURL *curl;
    struct curl_slist *headers;
    struct spool *spool;
    bool stale;
    uint64_t stale_seconds;
};

static const char *address(const char *url)
{
    const char *named = url ? url : secure_getenv("SONDE_SERVER");
    return named && *named ? named : "http://127.0.0.1:10000";
}

int remote_open(const char *url, struct remote **out, struct error *err)
{
    static bool ready;
    url = address(url);
    if (!text_starts(url, "http://") && !text_starts(url, "https://"))
        return error_set(err, FAULT_USAGE, "'%s' is no server: say http://HOST:PORT", url);
    if (!ready && curl_global_init(CURL_GLOBAL_DEFAULT))
        return error_set(err, FAULT_SYSTEM, "libcurl cannot be used");
    ready = true;
    struct remote *r = memory_alloc(sizeof *r);
    r->url = memory_strdup(url);
    while (text_ends(r->url, "/"))
        r->url[strlen(r->url) - 1] = 0;
    r->curl = curl_easy_init();
    const char *token = secure_getenv("SONDE_TOKEN");
    if (token && *token) {
        struct text line = TEXT_INIT;
        text_format(&line, "Authorization: Bearer %s", token);
        r->headers = curl_slist_append(r->headers, line.data);
        text_release(&line);
    }
    r->headers = curl_slist_append(r->headers, "Expect:");
    *out = r;
    return 0;
}

void remote_free(struct remote *r)
{
    if (!r)
        return;
    curl_slist_free_all(r->headers);
    curl_easy_cleanup(r->curl);
    spool_free(r->spool);
    free(r->url);
    free(r);
}

const char *remote_url(const struct remote *r)
{
    return r->url;
}

static size_t take_answer(char *data, size_t size, size_t count, void *context)
{
    struct text *out = context;
    if (out->len + size * count > ANSWER_MAX)
        return 0;
    text_add_len(out, data, size * count);
    return size * count;
}

static size_t take_header(char *data, size_t size, size_t count, void *context)
{
    static const char name[] = "Sonde-Stale:";
    struct remote *r = context;
    if (size * count > sizeof name && !strncasecmp(data, name, sizeof name - 1)) {
        r->stale = true;
        r->stale_seconds = strtoull(data + sizeof name - 1, NULL, 10); /* a line end stops it */
    }
    return size * count;
}

bool remote_was_stale(const struct remote *r, uint64_t *seconds)
{
    *seconds = r->stale_seconds;
    return r->stale;
}

/* The server's own words, {"error": "..."}. */
static void sentence_of(const struct text *answer, long status, struct text *out)
{
    json_t *root = json_loadb(answer->data, answer->len, 0, NULL);
    const char *said = json_string_value(json_object_get(root, "error"));
    if (said)
        text_add_printable(out, said);
    else
        text_format(out, "it answered with status %ld", status);
    json_decref(root);
}

static int fault_of(struct remote *r, long status, const struct text *answer, struct error *err)
{
    struct text said = TEXT_INIT;
    enum fault fault = status == 404                    ? FAULT_MISSING
                       : status == 400 || status == 409 ? FAULT_USAGE
                       : status == 413                  ? FAULT_LIMIT
                                                        : FAULT_SYSTEM;
    sentence_of(answer, status, &said);
    if (status == 401 || status == 403)
        error_set(err, fault, "%s: %s (sonde takes it from SONDE_TOKEN)", r->url, said.data);
    else
        error_set(err, fault, "%s", said.data);
    text_release(&said);
    return fault;
}

static void set_up(struct remote *r, const char *method, const char *path, struct text *answer)
{
    const char *ca = secure_getenv("SONDE_CA");
    struct text url = TEXT_INIT;
    text_format(&url, "%s%s", r->url, path);
    curl_easy_reset(r->curl);
    curl_easy_setopt(r->curl, CURLOPT_URL, url.data);
    curl_easy_setopt(r->curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(r->curl, CURLOPT_HTTPHEADER, r->headers);
    curl_easy_setopt(r->curl, CURLOPT_WRITEFUNCTION, take_answer);
    curl_easy_setopt(r->curl, CURLOPT_WRITEDATA, answer);
    curl_easy_setopt(r->curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(r->curl, CURLOPT_HEADERDATA, r);
    curl_easy_setopt(r->curl, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
    curl_easy_setopt(r->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(r->curl, CURLOPT_LOW_SPEED_TIME, STALL_SECONDS);
    curl_easy_setopt(r->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(r->curl, CURLOPT_PROTOCOLS_STR, "http,https");
    if (ca && *ca)
        curl_easy_setopt(r->curl, CURLOPT_CAINFO, ca);
    text_release(&url);
}

/* libcurl says of a refused connection that it could not connect, twice; the system says why. */
static int unreachable(struct remote *r, CURLcode code, const char *why, struct error *err)
{
    long number = 0;
    curl_easy_getinfo(r->curl, CURLINFO_OS_ERRNO, &number);
    const char *words = code == CURLE_COULDNT_CONNECT && number ? strerror((int)number)
                        : *why                                  ? why
                                                                : curl_easy_strerror(code);
    return error_set(err, FAULT_SYSTEM, "cannot reach the server at %s: %s; %s", r->url, words,
                     code == CURLE_PEER_FAILED_VERIFICATION
                         ? "name a file with the certificate to trust in SONDE_CA"
                         : "is 'sonde serve' running there?");
}

int remote_send(struct remote *r, const char *method, const char *path, const void *data,
                size_t len, struct text *answer, struct error *err)
{
    char why[CURL_ERROR_SIZE] = "";
    struct text own = TEXT_INIT, *out = answer ? answer : &own;
    long status = 0;
    set_up(r, method, path, out);
    curl_easy_setopt(r->curl, CURLOPT_ERRORBUFFER, why);
    if (data) {
        curl_easy_setopt(r->curl, CURLOPT_POSTFIELDS, data);
        curl_easy_setopt(r->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
    }
    CURLcode code = curl_easy_perform(r->curl);
    curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &status);
    int rc = 0;
    if (code)
        rc = unreachable(r, code, why, err);
    else if (status < 200 || status > 299)
        rc = fault_of(r, status, out, err);
    text_release(&own);
    return rc;
}

int remote_get(struct remote *r, const char *path, struct text *answer, struct error *err)
{
    return remote_send(r, "GET", path, NULL, 0, answer, err);
}

/* `known`: was it there already? */
static int send_batch(struct remote *r, uint32_t job, const char *data, size_t len, bool *known,
                      struct error *err)
{
    char path[64];
    struct text answer = TEXT_INIT;
    snprintf(path, sizeof path, "/api/jobs/%u/batches", job);
    int rc = remote_send(r, "POST", path, data, len, &answer, err);
    json_t *root = rc ? NULL : json_loadb(answer.data, answer.len, 0, NULL);
    *known = json_is_true(json_object_get(root, "duplicate"));
    json_decref(root);
    text_release(&answer);
    return rc;
}

int remote_push_now(struct remote *r, uint32_t job, const struct batch *b, struct error *err)
{
    struct text body = TEXT_INIT;
    batch_write(b, &body);
    text_add_len(&body, b->recording, b->recording_size);
    bool known;
    int rc = send_batch(r, job, body.data, body.len, &known, err);
    text_release(&body);
    return rc;
}

static int open_spool(struct remote *r, struct error *err)
{
    struct text path = TEXT_INIT;
    const char *named = secure_getenv("SONDE_SPOOL"), *state = secure_getenv("XDG_STATE_HOME");
    const char *home = secure_getenv("HOME");
    if (r->spool)
        return 0;
    if (named && *named)
        text_add(&path, named);
    else if (state && state[0] == '/')
        text_format(&path, "%s/sonde/spool", state);
    else if (home && home[0] == '/')
        text_format(&path, "%s/.local/state/sonde/spool", home);
    else
        text_format(&path, "/tmp/sonde-spool-%d", (int)getuid());
    int rc = spool_open(path.data, SPOOL_MAX, &r->spool, err);
    text_release(&path);
    return rc;
}

/* A part is "URL JOB KEY\n" and what is to be sent; those of other servers are left alone. */
static const char *part_body(const struct remote *r, const char *data, size_t len, uint32_t *job,
                             char key[BATCH_KEY_MAX + 1])
{
    const char *line = memchr(data, '\n', len);
    size_t url = strlen(r->url);
    if (!line || (size_t)(line - data) <= url || memcmp(data, r->url, url) || data[url] != ' ')
        return NULL;
    char *end;
    *job = (uint32_t)strtoul(data + url + 1, &end, 10);
    if (*end != ' ' || line - end - 1 > BATCH_KEY_MAX)
        return NULL;
    memcpy(key, end + 1, (size_t)(line - end - 1));
    key[line - end - 1] = 0;
    return line + 1;
}

/* Is it of no use to send it again? */
static bool is_final(int rc)
{
    return rc == FAULT_USAGE || rc == FAULT_INPUT || rc == FAULT_MISSING || rc == FAULT_LIMIT;
}

/* `mine`: the key whose refusal is the caller's own. */
static int flush(struct remote *r, const char *mine, struct remote_pushed *done, struct error *err)
{
    char *name = NULL, *data, *next;
    size_t len;
    int result = 0;
    bool away = false;
    while (spool_next(r->spool, name, &next, &data, &len, err) == 1) {
        uint32_t job = 0;
        char key[BATCH_KEY_MAX + 1] = "";
        struct error why = {0};
        const char *body = part_body(r, data, len, &job, key);
        bool known = false;
        int rc = !body || away
                     ? FAULT_SYSTEM
                     : send_batch(r, job, body, len - (size_t)(body - data), &known, &why);
        if (body && rc == FAULT_SYSTEM) {
            away = true;
            done->waiting++;
            if (why.fault && !err->fault)
                *err = why;
        } else if (body) {
            done->sent += rc == 0;
            done->known += known;
            done->refused += is_final(rc);
            spool_remove(r->spool, next);
            if (rc && mine && !strcmp(mine, key)) {
                *err = why;
                result = rc;
            }
        }
        free(data);
        free(name);
        name = next;
    }
    free(name);
    return result;
}

int remote_push(struct remote *r, uint32_t job, const struct batch *b, struct remote_pushed *done,
                struct error *err)
{
    struct text head = TEXT_INIT;
    *done = (struct remote_pushed){0};
    int rc = open_spool(r, err);
    if (rc)
        return rc;
    text_format(&head, "%s %u %s\n", r->url, job, b->key);
    batch_write(b, &head);
    struct spool_piece pieces[] = {{head.data, head.len}, {b->recording, b->recording_size}};
    rc = spool_put(r->spool, b->key, pieces, b->recording_name ? 2 : 1, err);
    text_release(&head);
    return rc ? rc : flush(r, b->key, done, err);
}

int remote_flush(struct remote *r, struct remote_pushed *done, struct error *err)
{
    *done = (struct remote_pushed){0};
    int rc = open_spool(r, err);
    return rc ? rc : flush(r, NULL, done, err);
}

int remote_check_job(struct remote *r, uint32_t job, const char *what, bool quiet,
                     struct error *err)
{
    char path[64];
    struct text answer = TEXT_INIT;
    snprintf(path, sizeof path, "/api/jobs/%u", job);
    int rc = remote_get(r, path, &answer, err);
    text_release(&answer);
    if (rc == FAULT_MISSING)
        return error_set(err, FAULT_MISSING,
                         "%s has no job %u: 'sonde job create --id %u' makes it", r->url, job, job);
    if (rc == FAULT_SYSTEM && !quiet)
        fprintf(stderr, "sonde: %s; %s waits on disk\n", err->text, what);
    *err = (struct error){0};
    return 0;
}

void remote_say_waiting(const char *who, unsigned waiting, const struct error *why)
{
    fprintf(stderr,
            "sonde %s: %u part%s wait%s on disk until the server is there ('sonde push --flush' "
            "tries again): %s\n",
            who, waiting, waiting == 1 ? "" : "s", waiting == 1 ? "s" : "", why->text);
}

void remote_host(char *out, size_t size)
{
    if (gethostname(out, size) < 0)
        *out = 0;
    out[size - 1] = 0;
}
