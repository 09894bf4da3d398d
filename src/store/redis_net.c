/* One connection to a Redis server, with and without TLS; see redis_net.h. */
#include "store/redis_net.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "store/redis_internal.h"

#define CONNECT_MS 3000
#define ANSWER_MS 8000

void redis_word(struct redis_command *c, const char *text)
{
    redis_bytes(c, text, strlen(text));
}

void redis_bytes(struct redis_command *c, const void *data, size_t len)
{
    *vector_push(&c->words) = data;
    *vector_push(&c->lens) = len;
}

void redis_format(struct redis_command *c, const char *format, ...)
{
    struct text t = TEXT_INIT;
    va_list args;
    va_start(args, format);
    text_vformat(&t, format, args);
    va_end(args);
    redis_bytes(c, arena_strndup(&c->arena, t.data, t.len), t.len);
    text_release(&t);
}

void redis_number(struct redis_command *c, int64_t number)
{
    char *digits = arena_alloc(&c->arena, 24);
    int len = snprintf(digits, 24, "%lld", (long long)number);
    redis_bytes(c, digits, (size_t)len);
}

void redis_command_clear(struct redis_command *c)
{
    c->words.len = c->lens.len = 0;
    arena_release(&c->arena);
}

void redis_command_release(struct redis_command *c)
{
    vector_release(&c->words);
    vector_release(&c->lens);
    arena_release(&c->arena);
}

void redis_node_close(struct redis_node *n)
{
    if (n->ssl)
        SSL_free(n->ssl);
    if (n->fd >= 0)
        close(n->fd);
    if (n->reader)
        redisReaderFree(n->reader);
    n->ssl = NULL;
    n->reader = NULL;
    n->fd = -1;
}

static int wait_for(int fd, short events, int ms)
{
    struct pollfd p = {.fd = fd, .events = events};
    int rc;
    while ((rc = poll(&p, 1, ms)) < 0 && errno == EINTR)
        ;
    if (rc == 0)
        errno = ETIMEDOUT;
    return rc > 0 ? 0 : -1;
}

static int connect_to(const struct addrinfo *a)
{
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;
    if (fd < 0)
        return -1;
    int failed = 0;
    socklen_t size = sizeof failed;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, a->ai_addr, a->ai_addrlen) == 0)
        return fd;
    if (errno == EINPROGRESS && wait_for(fd, POLLOUT, CONNECT_MS) == 0 &&
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size) == 0 && !failed)
        return fd;
    if (failed)
        errno = failed;
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

/* -1: no good; 0: done; else what to wait for. */
static int tls_wants(struct redis_node *n, int result)
{
    int why = SSL_get_error(n->ssl, result);
    if (why == SSL_ERROR_WANT_READ)
        return POLLIN;
    if (why == SSL_ERROR_WANT_WRITE)
        return POLLOUT;
    errno = ECONNRESET;
    return -1;
}

static int start_tls(struct redis_net *l, struct redis_node *n)
{
    if (!l->tls)
        return 0;
    n->ssl = SSL_new(l->tls);
    SSL_set_fd(n->ssl, n->fd);
    SSL_set1_host(n->ssl, n->host);
    SSL_set_tlsext_host_name(n->ssl, n->host);
    for (;;) {
        int rc = SSL_connect(n->ssl);
        if (rc == 1)
            return 0;
        int wants = tls_wants(n, rc);
        if (wants < 0 || wait_for(n->fd, (short)wants, CONNECT_MS) < 0)
            return -1;
    }
}

static int fail(struct redis_node *n, const char *doing, struct error *err)
{
    const char *why = errno == ETIMEDOUT && n->fd >= 0 ? "it does not answer" : strerror(errno);
    error_set(err, FAULT_SYSTEM, "cannot %s Redis at %s:%u: %s", doing, n->host, n->port, why);
    redis_node_close(n);
    return FAULT_SYSTEM;
}

static int write_all(struct redis_node *n, const char *data, size_t len)
{
    while (len) {
        ssize_t done = n->ssl ? SSL_write(n->ssl, data, (int)(len < (1 << 20) ? len : 1 << 20))
                              : send(n->fd, data, len, MSG_NOSIGNAL);
        if (done > 0) {
            data += done;
            len -= (size_t)done;
            continue;
        }
        int wants = n->ssl                              ? tls_wants(n, (int)done)
                    : errno == EAGAIN || errno == EINTR ? POLLOUT
                                                        : -1;
        if (wants < 0 || wait_for(n->fd, (short)wants, ANSWER_MS) < 0)
            return -1;
    }
    return 0;
}

static int read_some(struct redis_node *n)
{
    char buffer[65536];
    for (;;) {
        ssize_t got = n->ssl ? SSL_read(n->ssl, buffer, sizeof buffer)
                             : recv(n->fd, buffer, sizeof buffer, 0);
        if (got > 0)
            return redisReaderFeed(n->reader, buffer, (size_t)got) == REDIS_OK ? 0 : -1;
        if (got == 0 && !n->ssl) {
            errno = ECONNRESET;
            return -1;
        }
        int wants = n->ssl                              ? tls_wants(n, (int)got)
                    : errno == EAGAIN || errno == EINTR ? POLLIN
                                                        : -1;
        if (wants < 0 || wait_for(n->fd, (short)wants, ANSWER_MS) < 0)
            return -1;
    }
}

int redis_node_ask(struct redis_node *n, const struct redis_command *c, redisReply **out,
                   struct error *err)
{
    char *text;
    int len = redisFormatCommandArgv(&text, (int)c->words.len, c->words.data, c->lens.data);
    if (len < 0)
        return error_set(err, FAULT_LIMIT, "the command for Redis is too large");
    int rc = write_all(n, text, (size_t)len);
    free(text);
    if (rc < 0)
        return fail(n, "write to", err);
    for (;;) {
        void *reply = NULL;
        if (redisReaderGetReply(n->reader, &reply) != REDIS_OK) {
            errno = EPROTO;
            return fail(n, "understand", err);
        }
        if (reply) {
            *out = reply;
            return 0;
        }
        if (read_some(n) < 0)
            return fail(n, "read from", err);
    }
}

static int log_in(struct redis_net *l, struct redis_node *n, struct error *err)
{
    struct redis_command c = {0};
    redisReply *r = NULL;
    if (!*l->url.password)
        return 0;
    redis_word(&c, "AUTH");
    if (*l->url.user)
        redis_word(&c, l->url.user);
    redis_word(&c, l->url.password);
    int rc = redis_node_ask(n, &c, &r, err);
    if (!rc && r->type == REDIS_REPLY_ERROR) {
        rc = error_set(err, FAULT_USAGE, "Redis at %s:%u refuses the password: %s", n->host,
                       n->port, r->str);
        redis_node_close(n);
    }
    if (r)
        freeReplyObject(r);
    redis_command_release(&c);
    return rc;
}

int redis_node_connect(struct redis_net *l, struct redis_node *n, struct error *err)
{
    struct addrinfo *list = NULL, hints = {.ai_socktype = SOCK_STREAM};
    char port[8];
    if (n->fd >= 0)
        return 0;
    snprintf(port, sizeof port, "%u", n->port);
    int code = getaddrinfo(n->host, port, &hints, &list);
    if (code)
        return error_set(err, FAULT_SYSTEM, "cannot find the Redis server %s: %s", n->host,
                         gai_strerror(code));
    errno = ECONNREFUSED;
    for (struct addrinfo *a = list; a && n->fd < 0; a = a->ai_next)
        n->fd = connect_to(a);
    freeaddrinfo(list);
    if (n->fd < 0)
        return fail(n, "reach", err);
    n->reader = redisReaderCreate();
    if (start_tls(l, n) < 0)
        return fail(n, "speak TLS with", err);
    return log_in(l, n, err);
}
