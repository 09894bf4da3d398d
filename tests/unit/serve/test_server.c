/* The server from outside, over real sockets: who gets in, what is refused, what a viewer gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <zlib.h>

#include "serve/access_log.h"
#include "serve/files.h"
#include "serve/http.h"
#include "serve/stream.h"
#include "serve/token.h"

struct fixture {
    struct event_base *base;
    struct http_server *server;
    struct stream *stream;
    pthread_t thread;
    struct text log;
    unsigned counter;
};

static enum http_role check(void *context, const char *token)
{
    (void)context;
    return !token                         ? HTTP_ROLE_NONE
           : token_equal(token, "reader") ? HTTP_ROLE_READ
           : token_equal(token, "admin")  ? HTTP_ROLE_ADMIN
                                          : HTTP_ROLE_NONE;
}

static void keep_log(void *context, const struct http_entry *e)
{
    struct fixture *f = context;
    access_log_line(e, &f->log);
}

static void echo(struct http_request *q, void *context)
{
    size_t len;
    const char *body = http_body(q, &len);
    (void)context;
    http_reply(q, 200, "text/plain", body, len);
}

static void show_param(struct http_request *q, void *context)
{
    (void)context;
    const char *id = http_param(q, "id");
    http_reply(q, 200, "text/plain", id, strlen(id));
}

static void page(struct http_request *q, void *context)
{
    static const struct files_entry files[] = {{"/", "text/html", "<p>page", 7, false}};
    (void)context;
    assert_true(files_answer(q, files, 1));
}

static void join(struct http_request *q, void *context)
{
    struct fixture *f = context;
    stream_join(f->stream, q);
}

static const struct http_route routes[] = {
    {HTTP_GET, "/", HTTP_ROLE_READ, page, false, 0},
    {HTTP_GET, "/open", HTTP_ROLE_NONE, echo, false, 0},
    {HTTP_POST, "/echo", HTTP_ROLE_READ, echo, false, 1000},
    {HTTP_POST, "/slow/echo", HTTP_ROLE_READ, echo, true, 0},
    {HTTP_GET, "/things/{id}/name", HTTP_ROLE_READ, show_param, false, 0},
    {HTTP_DELETE, "/things/{id}", HTTP_ROLE_ADMIN, show_param, false, 0},
    {HTTP_GET, "/events", HTTP_ROLE_READ, join, false, 0},
};

static void present(void *context, struct text *out)
{
    struct fixture *f = context;
    text_format(out, "{\"n\": %u}", f->counter);
}

static void *loop(void *context)
{
    struct fixture *f = context;
    event_base_loop(f->base, EVLOOP_NO_EXIT_ON_EMPTY);
    return NULL;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct error err;
    text_init(&f->log);
    f->base = event_base_new();
    struct http_options o = {.check = check,
                             .log = keep_log,
                             .context = f,
                             .inflated_max = 100000,
                             .head_seconds = 1,
                             .viewer_lag = 1 << 20};
    assert_int_equal(http_server_new(&o, f->base, &f->server, &err), 0);
    http_server_routes(f->server, routes, sizeof routes / sizeof *routes, f);
    f->stream = stream_new(f->server, &(struct stream_options){.present = present, .context = f});
    pthread_create(&f->thread, NULL, loop, f);
    *state = f;
    return 0;
}

static void stop(void *context)
{
    struct fixture *f = context;
    http_server_stop(f->server, 2000);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    http_server_post(f->server, stop, f);
    pthread_join(f->thread, NULL);
    stream_free(f->stream);
    http_server_free(f->server);
    event_base_free(f->base);
    text_release(&f->log);
    free(f);
    return 0;
}

static int dial(const struct fixture *f)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(http_server_port(f->server)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = 10};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void say(int fd, const void *bytes, size_t len)
{
    assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), len);
}

/* Until the other side closes, or `until` has come. */
static char *hear(int fd, const char *until)
{
    struct text t = TEXT_INIT;
    char part[4096];
    ssize_t n;
    while ((!until || !strstr(t.data, until)) && (n = recv(fd, part, sizeof part, 0)) > 0)
        text_add_len(&t, part, (size_t)n);
    return text_take(&t);
}

static char *ask_raw(const struct fixture *f, const void *bytes, size_t len)
{
    int fd = dial(f);
    say(fd, bytes, len);
    char *answer = hear(fd, NULL);
    close(fd);
    return answer;
}

/* `more` are further headers, each with its end. */
static char *ask(const struct fixture *f, const char *what, const char *more, const char *body)
{
    struct text t = TEXT_INIT;
    text_format(&t, "%s HTTP/1.1\r\nConnection: close\r\n%s", what, more);
    if (!strstr(more, "Host:"))
        text_add(&t, "Host: localhost\r\n");
    if (body)
        text_format(&t, "Content-Length: %zu\r\n", strlen(body));
    text_format(&t, "\r\n%s", body ? body : "");
    char *answer = ask_raw(f, t.data, t.len);
    text_release(&t);
    return answer;
}

#define READER "Authorization: Bearer reader\r\n"

static void expect(const struct fixture *f, const char *what, const char *more, const char *body,
                   int status, const char *part)
{
    char *answer = ask(f, what, more, body);
    char line[32];
    snprintf(line, sizeof line, "HTTP/1.1 %d ", status);
    if (strncmp(answer, line, strlen(line)) != 0 || (part && !strstr(answer, part)))
        fail_msg("%s: wanted %d with \"%s\", got %.600s", what, status, part ? part : "", answer);
    free(answer);
}

static void every_route_needs_a_token(void **state)
{
    static const char *const asked[] = {
        "GET /",       "POST /echo",  "POST /slow/echo", "GET /things/1/name", "DELETE /things/1",
        "GET /events", "GET /nothing"};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        expect(*state, asked[i], "", NULL, 401, "a token is needed");
        expect(*state, asked[i], "Authorization: Bearer wrong\r\n", NULL, 401, "not known");
    }
    expect(*state, "GET /open", "", NULL, 200, NULL);
    expect(*state, "GET /?token=reader", "", NULL, 200, "Set-Cookie: sonde-");
    expect(*state, "DELETE /things/1", READER, NULL, 403, "may not");
    expect(*state, "DELETE /things/7", "Authorization: Bearer admin\r\n", NULL, 200, "\r\n\r\n7");
}

static void a_cookie_reads_and_does_not_write(void **state)
{
    const struct fixture *f = *state;
    char cookie[128], both[256];
    snprintf(cookie, sizeof cookie, "Cookie: a=b; sonde-%u=reader\r\n",
             http_server_port(f->server));
    expect(f, "GET /", cookie, NULL, 200, "<p>page");
    expect(f, "POST /echo", cookie, "x", 401, NULL);
    snprintf(both, sizeof both, "%sOrigin: http://localhost\r\n", cookie);
    expect(f, "POST /echo", both, "x", 200, "\r\n\r\nx");
}

static void foreign_names_and_pages_are_refused(void **state)
{
    expect(*state, "GET /", READER "Host: evil.example\r\n", NULL, 421, "Host");
    expect(*state, "GET /", READER "Host: 127.0.0.1.evil.example:80\r\n", NULL, 421, NULL);
    expect(*state, "GET /", READER "Host: 127.0.0.1:1234\r\n", NULL, 200, NULL);
    expect(*state, "GET /", READER "Host: [::1]:1234\r\n", NULL, 200, NULL);
    expect(*state, "GET /", READER "Origin: http://evil.example\r\n", NULL, 403, "origins");
    expect(*state, "GET /", READER "Origin: null\r\n", NULL, 403, NULL);
    expect(*state, "GET /", READER "Origin: http://localhost\r\n", NULL, 200, NULL);
}

static void answers_carry_their_guards(void **state)
{
    expect(*state, "GET /", READER, NULL, 200, "script-src 'self'");
    expect(*state, "GET /", READER, NULL, 200, "X-Content-Type-Options: nosniff");
    expect(*state, "GET /nothing", READER, NULL, 404,
           "{\"error\":\"there is nothing at /nothing\"");
    expect(*state, "PUT /echo", READER, NULL, 405, "Allow: POST");
    char *answer = ask(*state, "GET /", READER, NULL);
    assert_null(strstr(answer, "unsafe-inline"));
    free(answer);
}

static void routes_take_their_parts(void **state)
{
    expect(*state, "GET /things/a%2Fb/name", READER, NULL, 404, NULL);
    expect(*state, "GET /things/a%20b/name", READER, NULL, 200, "\r\n\r\na b");
    expect(*state, "GET /things//name", READER, NULL, 404, NULL);
    expect(*state, "GET /things/1", READER, NULL, 405, NULL);
}

static void bodies_are_bounded(void **state)
{
    struct fixture *f = *state;
    char large[1200];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = 0;
    expect(f, "POST /echo", READER, large, 413, "more than");
    expect(f, "POST /slow/echo", READER, large, 200, "xxxxx");
    struct text t = TEXT_INIT;
    text_add(&t, "POST /echo HTTP/1.1\r\nHost: localhost\r\n" READER
                 "Transfer-Encoding: chunked\r\n\r\n4b0\r\n");
    text_add(&t, large);
    char *answer = ask_raw(f, t.data, t.len);
    assert_non_null(strstr(answer, "413"));
    free(answer);
    text_release(&t);
}

/* A few bytes that stand for very many. */
static void bombs_are_refused(void **state)
{
    struct text t = TEXT_INIT;
    uLong raw = 10 << 20;
    uLongf packed = compressBound(raw);
    Bytef *zeros = calloc(raw, 1), *bomb = malloc(packed);
    assert_int_equal(compress(bomb, &packed, zeros, raw), Z_OK);
    text_format(&t,
                "POST /slow/echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" READER
                "Content-Encoding: deflate\r\nContent-Length: %lu\r\n\r\n",
                (unsigned long)packed);
    text_add_len(&t, bomb, packed);
    char *answer = ask_raw(*state, t.data, t.len);
    assert_non_null(strstr(answer, "HTTP/1.1 413 "));
    free(answer);
    free(zeros);
    free(bomb);
    text_release(&t);
}

static void several_requests_on_one_connection(void **state)
{
    static const char two[] = "POST /echo HTTP/1.1\r\nHost: localhost\r\n" READER
                              "Content-Length: 3\r\n\r\noneGET /things/two/name HTTP/1.1\r\n"
                              "Host: localhost\r\nConnection: close\r\n" READER "\r\n";
    char *answer = ask_raw(*state, two, sizeof two - 1);
    assert_non_null(strstr(answer, "\r\n\r\none"));
    assert_non_null(strstr(answer, "\r\n\r\ntwo"));
    free(answer);
}

static void slow_senders_are_given_up(void **state)
{
    int fd = dial(*state);
    say(fd, "GET / HT", 8);
    char *answer = hear(fd, NULL);
    assert_non_null(strstr(answer, "HTTP/1.1 408 "));
    free(answer);
    close(fd);
}

static void long_heads_are_refused(void **state)
{
    struct text t = TEXT_INIT;
    text_add(&t, "GET / HTTP/1.1\r\nHost: localhost\r\nX: ");
    text_add_repeat(&t, 'x', 40000);
    char *answer = ask_raw(*state, t.data, t.len);
    assert_non_null(strstr(answer, "HTTP/1.1 431 "));
    free(answer);
    text_release(&t);
}

static void tick(void *context)
{
    struct fixture *f = context;
    char data[32];
    snprintf(data, sizeof data, "{\"n\":%u}", ++f->counter);
    stream_send(f->stream, "change", data, strlen(data));
}

static void send_ticks(struct fixture *f, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        http_server_post(f->server, tick, f);
}

static int view(struct fixture *f, const char *last)
{
    struct text t = TEXT_INIT;
    text_format(&t, "GET /events HTTP/1.1\r\nHost: localhost\r\n" READER "%s%s%s\r\n",
                last ? "Last-Event-ID: " : "", last ? last : "", last ? "\r\n" : "");
    int fd = dial(f);
    say(fd, t.data, t.len);
    text_release(&t);
    return fd;
}

static void viewers_come_late_and_return(void **state)
{
    struct fixture *f = *state;
    send_ticks(f, 3);
    int fd = view(f, NULL);
    char *seen = hear(fd, "{\"n\": 3}\n\n");
    assert_non_null(strstr(seen, "event: present"));
    const char *id = strstr(seen, "id: ") + 4;
    char last[64] = "";
    memcpy(last, id, strcspn(id, "\n"));
    send_ticks(f, 2);
    free(hear(fd, "{\"n\":5}\n\n"));
    close(fd);
    send_ticks(f, 1);
    free(seen);
    fd = view(f, last);
    seen = hear(fd, "{\"n\":6}\n\n");
    assert_null(strstr(seen, "present"));
    assert_non_null(strstr(seen, "{\"n\":4}\n\n"));
    free(seen);
    close(fd);
    fd = view(f, "1234-2"); /* of another server */
    seen = hear(fd, "{\"n\": 6}\n\n");
    assert_non_null(strstr(seen, "event: present"));
    free(seen);
    close(fd);
}

static void send_large(void *context)
{
    struct fixture *f = context;
    char *large = malloc(600000);
    memset(large, 'x', 600000);
    stream_send(f->stream, "change", large, 600000);
    free(large);
}

static void viewers_that_do_not_read_are_dropped(void **state)
{
    struct fixture *f = *state;
    int idle = view(f, NULL), good = view(f, NULL);
    free(hear(good, "\n\n"));
    for (unsigned i = 0; i < 40 && http_server_counts(f->server)->viewers_dropped == 0; i++) {
        http_server_post(f->server, send_large, f);
        free(hear(good, "x\n\n"));
    }
    assert_int_equal(http_server_counts(f->server)->viewers_dropped, 1);
    send_ticks(f, 1);
    char *seen = hear(good, "\"n\":");
    assert_non_null(strstr(seen, "\"n\":"));
    free(seen);
    close(idle);
    close(good);
}

static void tokens_are_not_logged(void **state)
{
    struct fixture *f = *state;
    expect(f, "GET /?token=reader", "", NULL, 200, NULL);
    assert_non_null(strstr(f->log.data, "\"path\":\"/\",\"status\":200"));
    assert_null(strstr(f->log.data, "token"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(every_route_needs_a_token),
        TEST(a_cookie_reads_and_does_not_write),
        TEST(foreign_names_and_pages_are_refused),
        TEST(answers_carry_their_guards),
        TEST(routes_take_their_parts),
        TEST(bodies_are_bounded),
        TEST(bombs_are_refused),
        TEST(several_requests_on_one_connection),
        TEST(slow_senders_are_given_up),
        TEST(long_heads_are_refused),
        TEST(viewers_come_late_and_return),
        TEST(viewers_that_do_not_read_are_dropped),
        TEST(tokens_are_not_logged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
