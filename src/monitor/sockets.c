/* /proc/net and the links in /proc/PID/fd; see sockets.h. */
#include "monitor/sockets.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

#define FILE_MAX_BYTES (64u << 20)

static const char *const tcp_states[] = {"",           "ESTABLISHED", "SYN_SENT",  "SYN_RECV",
                                         "FIN_WAIT1",  "FIN_WAIT2",   "TIME_WAIT", "CLOSE",
                                         "CLOSE_WAIT", "LAST_ACK",    "LISTEN",    "CLOSING"};

static void add(struct sockets *s, const struct socket_entry *e)
{
    map_put(&s->by_inode, e->inode, 0, s->list.len, NULL);
    *vector_push(&s->list) = *e;
}

/* "0100007F:1F90": words of an address in the machine's order, then the port. */
static bool read_address(const char *text, char *out, size_t size, uint16_t *port)
{
    const char *colon = strchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : 0;
    char digits[9] = "", shown[INET6_ADDRSTRLEN] = "";
    uint32_t word[4];
    if (len != 8 && len != 32)
        return false;
    for (size_t i = 0; i < len / 8; i++) {
        memcpy(digits, text + 8 * i, 8);
        word[i] = (uint32_t)strtoul(digits, NULL, 16);
    }
    *port = (uint16_t)strtoul(colon + 1, NULL, 16);
    if (!inet_ntop(len == 8 ? AF_INET : AF_INET6, word, shown, sizeof shown))
        return false;
    bool any = !strcmp(shown, "0.0.0.0") || !strcmp(shown, "::");
    char number[8];
    snprintf(number, sizeof number, "%u", *port);
    snprintf(out, size, len == 8 || any ? "%s:%s" : "[%s]:%s", any ? "*" : shown,
             *port ? number : "*");
    return true;
}

static void read_line(struct sockets *s, const char *protocol, char *line)
{
    char *word[10], *rest = NULL;
    size_t n = 0;
    for (char *w = strtok_r(line, " ", &rest); w && n < 10; w = strtok_r(NULL, " ", &rest))
        word[n++] = w;
    if (n < 10)
        return;
    struct socket_entry e = {.protocol = protocol, .state = ""};
    uint16_t remote_port;
    if (!read_address(word[1], e.local, sizeof e.local, &e.port) ||
        !read_address(word[2], e.remote, sizeof e.remote, &remote_port))
        return;
    unsigned long state = strtoul(word[3], NULL, 16);
    bool tcp = protocol[0] == 't';
    if (tcp && state < sizeof tcp_states / sizeof *tcp_states)
        e.state = tcp_states[state];
    /* A datagram socket without a partner waits for anyone. */
    e.listening = tcp ? state == 10 : !remote_port;
    char *queues = word[4];
    e.sent = strtoull(queues, &queues, 16);
    e.received = *queues == ':' ? strtoull(queues + 1, NULL, 16) : 0;
    e.user = (uid_t)strtoul(word[7], NULL, 10);
    e.inode = strtoull(word[9], NULL, 10);
    add(s, &e);
}

/* "Num RefCount Protocol Flags Type St Inode Path" */
static void read_unix_line(struct sockets *s, char *line)
{
    char *word[7], *rest = NULL;
    size_t n = 0;
    for (char *w = strtok_r(line, " ", &rest); w; w = strtok_r(NULL, " ", &rest)) {
        word[n++] = w;
        if (n == 7)
            break;
    }
    if (n < 7)
        return;
    struct socket_entry e = {.protocol = "unix"};
    bool accepts = strtoul(word[3], NULL, 16) & 0x10000;
    e.state = accepts ? "LISTEN" : strtoul(word[5], NULL, 16) == 3 ? "CONNECTED" : "";
    e.listening = accepts;
    e.inode = strtoull(word[6], NULL, 10);
    snprintf(e.local, sizeof e.local, "%s", rest && *rest ? rest : "");
    add(s, &e);
}

static void read_file(struct sockets *s, const char *protocol)
{
    char path[32], *text, *rest = NULL;
    snprintf(path, sizeof path, "/proc/net/%s", protocol);
    if (io_slurp(path, FILE_MAX_BYTES, &text, NULL, NULL))
        return;
    char *line = strtok_r(text, "\n", &rest); /* the heading */
    while (line && (line = strtok_r(NULL, "\n", &rest))) {
        if (protocol[0] == 'u' && protocol[1] == 'n')
            read_unix_line(s, line);
        else
            read_line(s, protocol, line);
    }
    free(text);
}

void sockets_read(struct sockets *s)
{
    static const char *const protocols[] = {"tcp", "tcp6", "udp", "udp6", "unix"};
    *s = (struct sockets){0};
    for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++)
        read_file(s, protocols[i]);
}

static void note_holder(struct sockets *s, uint64_t inode, pid_t pid)
{
    uint64_t *count = map_put(&s->counts, inode, 0, 0, NULL);
    uint64_t n = (*count)++;
    /* The same process may hold it by several descriptors: told once. */
    for (uint64_t i = 0; i < n; i++)
        if (sockets_holder(s, inode, i) == pid) {
            (*count)--;
            return;
        }
    map_put(&s->holders, inode, n, (uint64_t)pid, NULL);
}

static void look_into(struct sockets *s, pid_t pid)
{
    char path[300], link[64];
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof path, "/proc/%d/fd/%s", pid, e->d_name);
        ssize_t n = readlink(path, link, sizeof link - 1);
        link[n > 0 ? n : 0] = 0;
        if (!strncmp(link, "socket:[", 8))
            note_holder(s, strtoull(link + 8, NULL, 10), pid);
    }
    if (d)
        closedir(d);
}

void sockets_find_holders(struct sockets *s)
{
    DIR *d = opendir("/proc");
    for (struct dirent *e; d && (e = readdir(d));)
        if (isdigit((unsigned char)e->d_name[0]))
            look_into(s, (pid_t)strtol(e->d_name, NULL, 10));
    if (d)
        closedir(d);
}

const struct socket_entry *sockets_of_inode(const struct sockets *s, uint64_t inode)
{
    const uint64_t *at = map_get(&s->by_inode, inode, 0);
    return at ? &s->list.data[*at] : NULL;
}

size_t sockets_holders(const struct sockets *s, uint64_t inode)
{
    const uint64_t *n = map_get(&s->counts, inode, 0);
    return n ? (size_t)*n : 0;
}

pid_t sockets_holder(const struct sockets *s, uint64_t inode, size_t n)
{
    const uint64_t *at = map_get(&s->holders, inode, n);
    return at ? (pid_t)*at : 0;
}

void sockets_release(struct sockets *s)
{
    vector_release(&s->list);
    map_release(&s->by_inode);
    map_release(&s->holders);
    map_release(&s->counts);
}
