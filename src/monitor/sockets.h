/* Sockets of this machine, as the kernel lists them, and which processes hold them. */
#ifndef SONDE_WATCH_SOCKETS_H
#define SONDE_WATCH_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/map.h"
#include "base/vector.h"

struct socket_entry {
    const char *protocol; /* "tcp", "tcp6", "udp", "udp6", "unix" */
    const char *state;    /* "LISTEN" ...; "" where there is none */
    char local[128], remote[64];
    uint16_t port; /* local; 0 for unix */
    uint64_t inode;
    uid_t user;
    uint64_t received, sent; /* bytes that wait in its queues */
    bool listening;
};

struct sockets {
    VECTOR(struct socket_entry) list;
    struct map by_inode; /* -> index */
    struct map holders;  /* inode, n-th -> pid */
    struct map counts;   /* inode -> how many hold it */
};

/* Those of our network namespace. */
void sockets_read(struct sockets *s);
/* Finds out who holds them; what this user may not see has no holder. */
void sockets_find_holders(struct sockets *s);
const struct socket_entry *sockets_of_inode(const struct sockets *s, uint64_t inode); /* or NULL */
size_t sockets_holders(const struct sockets *s, uint64_t inode);
pid_t sockets_holder(const struct sockets *s, uint64_t inode, size_t n);
void sockets_release(struct sockets *s);

#endif
