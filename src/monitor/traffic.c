/* Asking sock_diag, and finding holders; see traffic.h. */
#include "monitor/traffic.h"

#include <dirent.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

#define ANSWER_BYTES 65536
#define SCAN_EVERY 2000000000ull
#define SCAN_PART 1000 /* finding holders takes at most this part of the time */
#define ASK_PART 2000  /* and the kernel's walk through its table of connections this */
/* All but those that nobody holds (closed, waiting for the last packets) and those that listen. */
#define STATES (0xfffu & ~(1u << 6 | 1u << 7 | 1u << 10))

/* A connection. */
struct flow {
    uint64_t inode, received, sent; /* bytes in all */
    uint64_t received_before, sent_before;
    uint64_t look;
    pid_t pid;    /* who holds it, 0: not known (yet) */
    bool scanned; /* nobody who could be asked does */
};

struct traffic {
    int fd; /* or -1: not to be had */
    VECTOR(struct flow) flows;
    struct map by_inode; /* -> index */
    uint64_t looks, last, next_scan, next_ask;
    ino_t namespace;
    char *answer;
};

static ino_t namespace_of(const char *process)
{
    char path[64];
    struct stat s;
    snprintf(path, sizeof path, "/proc/%s/ns/net", process);
    return stat(path, &s) == 0 ? s.st_ino : 0;
}

struct traffic *traffic_new(void)
{
    struct traffic *t = memory_alloc(sizeof *t);
    t->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    t->namespace = namespace_of("self");
    t->answer = memory_alloc(ANSWER_BYTES);
    return t;
}

void traffic_free(struct traffic *t)
{
    if (!t)
        return;
    if (t->fd >= 0)
        close(t->fd);
    vector_release(&t->flows);
    map_release(&t->by_inode);
    free(t->answer);
    free(t);
}

static void take_flow(struct traffic *t, uint64_t inode, const struct tcp_info *info)
{
    bool added;
    uint64_t *at = map_put(&t->by_inode, inode, 0, t->flows.len, &added);
    if (added)
        *vector_push(&t->flows) = (struct flow){.inode = inode};
    struct flow *f = &t->flows.data[*at];
    f->received_before = added ? 0 : f->received;
    f->sent_before = added ? 0 : f->sent;
    f->received = info->tcpi_bytes_received;
    f->sent = info->tcpi_bytes_acked;
    f->look = t->looks;
}

/* One connection: a header, then attributes, of which one is the kernel's struct tcp_info. */
static void take_message(struct traffic *t, const struct nlmsghdr *h)
{
    const struct inet_diag_msg *m = NLMSG_DATA(h);
    if (h->nlmsg_len < NLMSG_LENGTH(sizeof *m) || !m->idiag_inode)
        return;
    unsigned left = (unsigned)(h->nlmsg_len - NLMSG_LENGTH(sizeof *m));
    const struct rtattr *a = (const struct rtattr *)(m + 1);
    for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
        struct tcp_info info = {0};
        size_t size = RTA_PAYLOAD(a);
        if (a->rta_type != INET_DIAG_INFO)
            continue;
        memcpy(&info, RTA_DATA(a), size < sizeof info ? size : sizeof info);
        take_flow(t, m->idiag_inode, &info);
    }
}

/*
 * In the way of old, which answers for both families of addresses at once: the kernel walks its
 * whole table, thousands of places however few are taken, for each question.
 */
static bool ask(const struct traffic *t)
{
    struct {
        struct nlmsghdr header;
        struct inet_diag_req request;
    } q = {.header = {.nlmsg_len = sizeof q,
                      .nlmsg_type = TCPDIAG_GETSOCK,
                      .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
           .request = {.idiag_family = AF_INET,
                       .idiag_ext = 1 << (INET_DIAG_INFO - 1),
                       .idiag_states = STATES}};
    return send(t->fd, &q, sizeof q, 0) == (ssize_t)sizeof q;
}

static bool read_flows(struct traffic *t)
{
    if (!ask(t))
        return false;
    for (;;) {
        ssize_t n = recv(t->fd, t->answer, ANSWER_BYTES, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        unsigned left = (unsigned)n;
        const struct nlmsghdr *h = (const struct nlmsghdr *)(void *)t->answer;
        for (; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
            if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
                return h->nlmsg_type == NLMSG_DONE;
            take_message(t, h);
        }
    }
}

/* Those that are gone, so that their numbers may come back as others'. */
static void forget_gone(struct traffic *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->flows.len; i++) {
        struct flow f = t->flows.data[i];
        if (f.look != t->looks) {
            map_remove(&t->by_inode, f.inode, 0);
            continue;
        }
        if (kept != i)
            *map_put(&t->by_inode, f.inode, 0, kept, NULL) = kept;
        t->flows.data[kept++] = f;
    }
    t->flows.len = kept;
}

/* False if this user may not look. */
static bool scan_process(struct traffic *t, pid_t pid)
{
    char number[16], path[320], link[64];
    snprintf(number, sizeof number, "%d", pid);
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *d = opendir(path);
    if (!d)
        return false;
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        ssize_t n = readlinkat(dirfd(d), e->d_name, link, sizeof link - 1);
        link[n > 0 ? n : 0] = 0;
        if (strncmp(link, "socket:[", 8) != 0)
            continue;
        const uint64_t *at = map_get(&t->by_inode, strtoull(link + 8, NULL, 10), 0);
        if (at)
            t->flows.data[*at].pid = pid;
    }
    closedir(d);
    return namespace_of(number) == t->namespace;
}

static bool is_unknown(const struct flow *f)
{
    bool moved = f->received != f->received_before || f->sent != f->sent_before;
    return !f->pid && !f->scanned && moved;
}

/* Whenever somebody unknown sends, but not too often. */
static void find_holders(struct traffic *t, struct watch *w)
{
    bool wanted = t->next_scan == 0;
    for (size_t i = 0; i < t->flows.len && !wanted; i++)
        wanted = is_unknown(&t->flows.data[i]);
    if (!wanted || w->now < t->next_scan)
        return;
    uint64_t before = clock_own_cpu();
    for (size_t i = 0; i < w->tasks.len; i++) {
        struct watch_task *k = w->tasks.data[i];
        if (k->pid == k->tid)
            k->net_known = scan_process(t, k->pid);
    }
    for (size_t i = 0; i < t->flows.len; i++)
        t->flows.data[i].scanned = true;
    uint64_t pause = (clock_own_cpu() - before) * SCAN_PART;
    t->next_scan = w->now + (pause > SCAN_EVERY ? pause : SCAN_EVERY);
}

static void charge(const struct traffic *t, struct watch *w, double seconds)
{
    for (size_t i = 0; i < w->tasks.len; i++)
        w->tasks.data[i]->net_in = w->tasks.data[i]->net_out = 0;
    for (size_t i = 0; i < t->flows.len && seconds > 0; i++) {
        const struct flow *f = &t->flows.data[i];
        struct watch_task *k = f->pid ? watch_find(w, f->pid, f->pid) : NULL;
        if (!k)
            continue;
        k->net_known = true;
        if (f->received > f->received_before)
            k->net_in += (double)(f->received - f->received_before) / seconds;
        if (f->sent > f->sent_before)
            k->net_out += (double)(f->sent - f->sent_before) / seconds;
    }
}

void traffic_look(struct traffic *t, struct watch *w)
{
    double seconds = t->last ? (double)(w->now - t->last) / 1e9 : 0;
    if (t->fd < 0 || w->now < t->next_ask)
        return;
    uint64_t before = clock_own_cpu();
    t->looks++;
    t->last = w->now;
    if (!read_flows(t)) {
        close(t->fd); /* a kernel without it, or a filter */
        t->fd = -1;
        return;
    }
    if (t->looks > 1) /* two make the first rate */
        t->next_ask = w->now + (clock_own_cpu() - before) * ASK_PART;
    forget_gone(t);
    find_holders(t, w);
    charge(t, w, seconds);
}
