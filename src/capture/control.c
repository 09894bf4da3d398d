/* The socket for commands; see control.h. */
#include "capture/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "capture/rendezvous.h"

#define CLIENTS_MAX 16
#define LINE_MAX_BYTES 4096
#define ANSWER_MAX (1 << 20)

struct client {
    int fd; /* -1: free */
    size_t len;
    char line[LINE_MAX_BYTES];
};

struct control {
    int epoll, listener;
    struct client clients[CLIENTS_MAX];
};

static bool address_of(const char *path, struct sockaddr_un *to)
{
    *to = (struct sockaddr_un){.sun_family = AF_UNIX};
    size_t len = strlen(path);
    if (len >= sizeof to->sun_path)
        return false;
    memcpy(to->sun_path, path, len + 1);
    return true;
}

static void watch(struct control *c, int fd, size_t number)
{
    struct epoll_event e = {.events = EPOLLIN, .data.u64 = number};
    epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &e);
}

static int open_listener(struct control *c, struct error *err)
{
    struct text path = TEXT_INIT;
    struct sockaddr_un at;
    rendezvous_path(getpid(), "control", &path);
    bool fits = address_of(path.data, &at);
    c->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t mask = umask(0177);
    int rc = 0;
    if (!fits || c->listener < 0 || bind(c->listener, (struct sockaddr *)&at, sizeof at) < 0 ||
        listen(c->listener, CLIENTS_MAX) < 0)
        rc = error_errno(err, FAULT_SYSTEM, "cannot listen at %s", path.data);
    umask(mask);
    text_release(&path);
    return rc;
}

int control_new(struct control **out, struct error *err)
{
    struct control *c = memory_alloc(sizeof *c);
    for (size_t i = 0; i < CLIENTS_MAX; i++)
        c->clients[i].fd = -1;
    c->listener = -1;
    c->epoll = epoll_create1(EPOLL_CLOEXEC);
    int rc = rendezvous_open(err);
    if (!rc)
        rc = open_listener(c, err);
    if (rc) {
        control_free(c);
        return rc;
    }
    watch(c, c->listener, CLIENTS_MAX);
    *out = c;
    return 0;
}

void control_free(struct control *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < CLIENTS_MAX; i++)
        if (c->clients[i].fd >= 0)
            close(c->clients[i].fd);
    if (c->listener >= 0)
        close(c->listener);
    if (c->epoll >= 0)
        close(c->epoll);
    rendezvous_close();
    free(c);
}

int control_fd(const struct control *c)
{
    return c ? c->epoll : -1;
}

static void drop(struct client *k)
{
    close(k->fd);
    k->fd = -1;
    k->len = 0;
}

static void accept_clients(struct control *c)
{
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        if (c->clients[i].fd >= 0)
            continue;
        int fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        c->clients[i] = (struct client){.fd = fd};
        watch(c, fd, i);
    }
    /* Every place is taken: who waits longest to say something is let go. */
    int fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0)
        close(fd);
}

/* Whoever does not take its answer in one go is too slow for us. */
static bool answer_line(struct client *k, control_fn *on_line, void *context)
{
    struct text answer = TEXT_INIT;
    on_line(context, k->line, &answer);
    for (size_t i = 0; i < answer.len; i++)
        if (answer.data[i] == '\n')
            answer.data[i] = ' ';
    text_add_char(&answer, '\n');
    bool sent =
        send(k->fd, answer.data, answer.len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)answer.len;
    text_release(&answer);
    return sent;
}

static void serve(struct client *k, control_fn *on_line, void *context)
{
    ssize_t n = recv(k->fd, k->line + k->len, sizeof k->line - 1 - k->len, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        drop(k);
        return;
    }
    k->len += (size_t)n;
    for (char *end; (end = memchr(k->line, '\n', k->len));) {
        size_t used = (size_t)(end - k->line) + 1;
        *end = 0;
        if (!answer_line(k, on_line, context)) {
            drop(k);
            return;
        }
        k->len -= used;
        memmove(k->line, k->line + used, k->len);
    }
    if (k->len == sizeof k->line - 1)
        drop(k);
}

void control_take(struct control *c, control_fn *on_line, void *context)
{
    struct epoll_event ready[CLIENTS_MAX + 1];
    int n = c ? epoll_wait(c->epoll, ready, CLIENTS_MAX + 1, 0) : 0;
    for (int i = 0; i < n; i++) {
        if (ready[i].data.u64 == CLIENTS_MAX)
            accept_clients(c);
        else if (c->clients[ready[i].data.u64].fd >= 0)
            serve(&c->clients[ready[i].data.u64], on_line, context);
    }
}

static int hear_answer(int fd, struct text *answer, struct error *err)
{
    char part[4096];
    while (!memchr(answer->data, '\n', answer->len)) {
        ssize_t n = recv(fd, part, sizeof part, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || answer->len > ANSWER_MAX)
            return error_set(err, FAULT_SYSTEM, "the session did not answer");
        text_add_len(answer, part, (size_t)n);
    }
    answer->len = strcspn(answer->data, "\n");
    answer->data[answer->len] = 0;
    return 0;
}

static int connect_to(const char *socket_path, unsigned seconds, struct error *err)
{
    struct sockaddr_un to;
    struct timeval patience = {.tv_sec = seconds};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return error_errno(err, FAULT_SYSTEM, "cannot make a socket");
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (address_of(socket_path, &to) && connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return error_errno(err, FAULT_MISSING, "no session listens at %s", socket_path);
}

int control_ask(const char *socket_path, const char *line, unsigned seconds, struct text *answer,
                struct error *err)
{
    struct text whole = TEXT_INIT, said = TEXT_INIT;
    int fd = connect_to(socket_path, seconds, err), rc = fd < 0 ? fd : 0;
    text_format(&whole, "%s\n", line);
    if (!rc && send(fd, whole.data, whole.len, MSG_NOSIGNAL) != (ssize_t)whole.len)
        rc = error_errno(err, FAULT_SYSTEM, "the session does not take commands");
    if (!rc)
        rc = hear_answer(fd, &said, err);
    if (!rc && text_starts(said.data, "ok "))
        text_add(answer, said.data + 3);
    else if (!rc)
        rc = error_set(err, FAULT_INPUT, "%s",
                       text_starts(said.data, "error ") ? said.data + 6 : said.data);
    if (fd >= 0)
        close(fd);
    text_release(&whole);
    text_release(&said);
    return rc;
}
