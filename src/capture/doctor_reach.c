/* What this process may do by its capabilities, and whether a Redis answers; see doctor.h. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io.h"
#include "base/text.h"
#include "capture/doctor.h"

#define ANSWER_MS 500

void doctor_capabilities(struct doctor *d)
{
    static const struct {
        unsigned bit;
        const char *name;
    } wanted[] = {
        {38, "CAP_PERFMON"}, {39, "CAP_BPF"}, {19, "CAP_SYS_PTRACE"}, {21, "CAP_SYS_ADMIN"}};
    char *status;
    struct text has = TEXT_INIT, lacks = TEXT_INIT;
    if (io_slurp("/proc/self/status", 65536, &status, NULL, NULL))
        return;
    const char *line = strstr(status, "\nCapEff:");
    uint64_t held = line ? strtoull(line + 8, NULL, 16) : 0;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        struct text *t = held >> wanted[i].bit & 1 ? &has : &lacks;
        text_format(t, "%s%s", t->len ? ", " : "", wanted[i].name);
    }
    if (!lacks.len || held >> 21 & 1)
        doctor_add(d, "capabilities", DOCTOR_WELL, "", "", "%s", has.data);
    else
        doctor_add(d, "capabilities", DOCTOR_LIMITED,
                   "records this user's own programs, as far as perf_event_paranoid lets it",
                   "run as root, or setcap cap_perfmon,cap_bpf,cap_sys_ptrace+ep on sonde",
                   "without %s", lacks.data);
    text_release(&has);
    text_release(&lacks);
    free(status);
}

/* Waits for the descriptor to be ready. */
static bool wait_for(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};
    return poll(&p, 1, ANSWER_MS) == 1 && (p.revents & events);
}

static const char *converse(int fd)
{
    char answer[64] = "";
    int code = 0;
    socklen_t len = sizeof code;
    if (!wait_for(fd, POLLOUT))
        return "nobody answers";
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &len) < 0 || code)
        return strerror(code ? code : errno);
    if (send(fd, "PING\r\n", 6, MSG_NOSIGNAL) != 6 || !wait_for(fd, POLLIN) ||
        recv(fd, answer, sizeof answer - 1, 0) <= 0)
        return "it takes connections and does not answer";
    /* One that wants a password, or TLS, is there all the same. */
    return *answer == '+' || *answer == '-' ? NULL : "what answers is no Redis";
}

/* "host:port", "redis://host:port/0", "host"; NULL if it answers, else why not. */
static const char *try_redis(const char *where)
{
    char host[256];
    const char *at = strstr(where, "://"), *why = "the name is not known";
    snprintf(host, sizeof host, "%s", at ? at + 3 : where);
    char *name = strrchr(host, '@') ? strrchr(host, '@') + 1 : host;
    name[strcspn(name, "/")] = 0;
    char *colon = strrchr(name, ':');
    if (colon)
        *colon = 0;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    if (getaddrinfo(name, colon ? colon + 1 : "6379", &hints, &list))
        return why;
    for (const struct addrinfo *a = list; a && why; a = a->ai_next) {
        int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
            continue;
        why = connect(fd, a->ai_addr, a->ai_addrlen) < 0 && errno != EINPROGRESS ? strerror(errno)
                                                                                 : converse(fd);
        close(fd);
    }
    freeaddrinfo(list);
    return why;
}

void doctor_redis(struct doctor *d, const char *where)
{
    const char *why = try_redis(where);
    if (why)
        doctor_add(d, "Redis", DOCTOR_MISSING,
                   "keeps jobs in SQLite; live figures stay on its own page",
                   "start redis-server there, or name another by --redis", "%s: %s", where, why);
    else
        doctor_add(d, "Redis", DOCTOR_WELL, "", "", "%s answers", where);
}
