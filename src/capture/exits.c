/* Listening to the process connector; see exits.h. */
#include "capture/exits.h"

#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RECEIVE_BYTES (1 << 20)

static int subscribe(int fd)
{
    struct {
        struct nlmsghdr head;
        struct cn_msg message;
        enum proc_cn_mcast_op op;
    } __attribute__((packed)) request;
    memset(&request, 0, sizeof request);
    request.head.nlmsg_len = sizeof request;
    request.head.nlmsg_type = NLMSG_DONE;
    request.head.nlmsg_pid = (uint32_t)getpid();
    request.message.id.idx = CN_IDX_PROC;
    request.message.id.val = CN_VAL_PROC;
    request.message.len = sizeof request.op;
    request.op = PROC_CN_MCAST_LISTEN;
    return send(fd, &request, sizeof request, 0) == sizeof request ? 0 : -1;
}

int exits_open(void)
{
    int fd = socket(PF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
    if (fd < 0)
        return -1;
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
    int bytes = RECEIVE_BYTES;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || subscribe(fd) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

void exits_read(int fd, void (*each)(void *context, pid_t pid, int status, uint64_t time),
                void *context)
{
    char buffer[4096] __attribute__((aligned(NLMSG_ALIGNTO)));
    ssize_t n;
    while ((n = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT)) > 0) {
        struct proc_event event;
        size_t body = NLMSG_HDRLEN + sizeof(struct cn_msg);
        if ((size_t)n < body + offsetof(struct proc_event, event_data.exit.exit_signal))
            continue;
        memset(&event, 0, sizeof event);
        size_t have = (size_t)n - body;
        memcpy(&event, buffer + body, have < sizeof event ? have : sizeof event);
        if (event.what == PROC_EVENT_EXIT &&
            event.event_data.exit.process_pid == event.event_data.exit.process_tgid)
            each(context, event.event_data.exit.process_pid, (int)event.event_data.exit.exit_code,
                 event.timestamp_ns);
    }
}
