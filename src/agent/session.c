/*
 * Sends a process's hello to the collector by system calls alone, so that a forked child can do it
 * from inside its first sample. The socket is closed before this returns: no descriptor of ours
 * is there when the program opens, closes or inherits its own.
 */
#include "agent/session.h"

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "agent/agent.h"
#include "agent/arch.h"

static socklen_t address_fill(struct sockaddr_un *to)
{
    memset(to, 0, sizeof *to);
    to->sun_family = AF_UNIX;
    size_t len = strlen(agent_settings.address);
    memcpy(to->sun_path, agent_settings.address, len);
    if (to->sun_path[0] == '@')
        to->sun_path[0] = 0; /* abstract: the name ends where the length says */
    else
        len++;
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

static int send_on(int sock, const struct session_hello *hello, int fd)
{
    struct iovec part = {.iov_base = (void *)(uintptr_t)hello, .iov_len = sizeof *hello};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    memset(&control, 0, sizeof control);
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
    }
    long sent = raw3(SYS_sendmsg, sock, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent < 0 ? (int)sent : 0;
}

int session_send(enum session_kind kind, enum session_reason reason, int error, int fd)
{
    struct session_hello hello = {.magic = SESSION_MAGIC,
                                  .version = SESSION_VERSION,
                                  .kind = kind,
                                  .reason = reason,
                                  .error = error};
    struct sockaddr_un to;
    if (!agent_settings.address[0])
        return 0; /* nobody is there to hear it: see alone.h */
    socklen_t len = address_fill(&to);
    long sock = raw3(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (sock < 0)
        return (int)sock;
    long result = raw3(SYS_connect, sock, &to, len);
    if (result == 0)
        result = send_on((int)sock, &hello, fd);
    raw1(SYS_close, sock);
    return (int)result;
}
