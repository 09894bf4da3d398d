/* Figures of a live session; see feed.h. */
#include "top/feed.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"

#define ANSWER_MAX ((size_t)64 << 20)
#define SECONDS 15L
#define ROWS 200

struct feed {
    pthread_mutex_t lock;
    pthread_cond_t news, wake;
    pthread_t thread;
    uint64_t interval;
    int32_t pid;
    bool closing, asked_anew;
    struct text answer; /* empty: nothing new */
    char trouble[200];
    char *base; /* "http://host:port" */
    struct curl_slist *headers;
    CURL *curl;
};

static size_t on_data(char *data, size_t one, size_t len, void *context)
{
    struct text *t = context;
    if (t->len + one * len > ANSWER_MAX)
        return 0;
    text_add_len(t, data, one * len);
    return one * len;
}

static bool ask(struct feed *s, int32_t pid, struct text *answer, char trouble[200])
{
    char url[600];
    long status = 0;
    snprintf(url, sizeof url, "%s/api/top?rows=%d&pid=%d", s->base, ROWS, pid);
    curl_easy_setopt(s->curl, CURLOPT_URL, url);
    curl_easy_setopt(s->curl, CURLOPT_WRITEDATA, answer);
    CURLcode rc = curl_easy_perform(s->curl);
    curl_easy_getinfo(s->curl, CURLINFO_RESPONSE_CODE, &status);
    if (rc == CURLE_OK && status == 200)
        return true;
    if (rc == CURLE_OK && status == 503)
        trouble[0] = 0; /* it has only just begun */
    else if (rc == CURLE_COULDNT_CONNECT)
        snprintf(trouble, 200, "the session has ended");
    else if (rc != CURLE_OK)
        snprintf(trouble, 200, "no answer: %s", curl_easy_strerror(rc));
    else
        snprintf(trouble, 200, "the session answers with status %ld", status);
    return false;
}

static void wait_for_turn(struct feed *s)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + s->interval;
    until.tv_sec += (time_t)(ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    while (!s->closing && !s->asked_anew && pthread_cond_timedwait(&s->wake, &s->lock, &until) == 0)
        ;
    s->asked_anew = false;
}

static void *work(void *context)
{
    struct feed *s = context;
    pthread_mutex_lock(&s->lock);
    while (!s->closing) {
        struct text answer = TEXT_INIT;
        char trouble[200] = "";
        int32_t pid = s->pid;
        pthread_mutex_unlock(&s->lock);
        bool good = ask(s, pid, &answer, trouble);
        pthread_mutex_lock(&s->lock);
        memcpy(s->trouble, trouble, sizeof trouble);
        if (good && pid == s->pid) {
            text_release(&s->answer);
            s->answer = answer;
        } else {
            text_release(&answer);
        }
        pthread_cond_signal(&s->news);
        wait_for_turn(s);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* "http://host:port/?token=x" into address and header. */
static int take_apart(struct feed *s, const char *url, struct error *err)
{
    const char *token = strstr(url, "token=");
    const char *path = strstr(url, "://");
    if (!path || (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0))
        return error_set(err, FAULT_USAGE,
                         "'%s' is not the address of a live session, http://HOST:PORT/?token=TOKEN",
                         url);
    s->base = memory_strndup(url, (size_t)(path + 3 - url) + strcspn(path + 3, "/?"));
    if (strlen(s->base) > 400)
        return error_set(err, FAULT_USAGE, "the address of the session is too long");
    if (token) {
        struct text header = TEXT_INIT;
        text_add(&header, "Authorization: Bearer ");
        text_add_len(&header, token + 6, strcspn(token + 6, "&#\r\n"));
        s->headers = curl_slist_append(NULL, header.data);
        text_release(&header);
    }
    return 0;
}

int feed_new(const char *url, uint64_t interval, struct feed **out, struct error *err)
{
    struct feed *s = memory_alloc(sizeof *s);
    s->interval = interval;
    text_init(&s->answer);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    s->curl = curl_easy_init();
    int rc = s->curl ? take_apart(s, url, err)
                     : error_set(err, FAULT_SYSTEM, "cannot start an HTTP client");
    if (rc) {
        curl_easy_cleanup(s->curl);
        free(s->base);
        free(s);
        return rc;
    }
    curl_easy_setopt(s->curl, CURLOPT_HTTPHEADER, s->headers);
    curl_easy_setopt(s->curl, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(s->curl, CURLOPT_TIMEOUT, SECONDS);
    curl_easy_setopt(s->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(s->curl, CURLOPT_NOPROXY, "*");
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->news, NULL);
    pthread_cond_init(&s->wake, NULL);
    pthread_create(&s->thread, NULL, work, s);
    *out = s;
    return 0;
}

void feed_free(struct feed *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    curl_easy_cleanup(s->curl);
    curl_slist_free_all(s->headers);
    text_release(&s->answer);
    free(s->base);
    free(s);
}

void feed_select(struct feed *s, int32_t pid)
{
    pthread_mutex_lock(&s->lock);
    s->pid = pid;
    s->asked_anew = true;
    text_release(&s->answer);
    text_init(&s->answer);
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

bool feed_take(struct feed *s, unsigned ms, struct text *json)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + ms * 1000000ull;
    until.tv_sec += (time_t)(ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    pthread_mutex_lock(&s->lock);
    while (ms && !s->answer.len && !s->trouble[0] &&
           pthread_cond_timedwait(&s->news, &s->lock, &until) == 0)
        ;
    bool some = s->answer.len > 0;
    if (some) {
        text_release(json);
        *json = s->answer;
        text_init(&s->answer);
    }
    pthread_mutex_unlock(&s->lock);
    return some;
}

void feed_trouble(struct feed *s, char out[200])
{
    pthread_mutex_lock(&s->lock);
    memcpy(out, s->trouble, sizeof s->trouble);
    pthread_mutex_unlock(&s->lock);
}
