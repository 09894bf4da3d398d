/*
 * Which process sends and receives how much. The kernel counts bytes of TCP connections (asked by
 * a socket of netlink's sock_diag, all at once); who holds a connection is found in /proc/PID/fd,
 * which costs more and is looked up seldom. Of UDP nobody counts, so it is not in here, nor is what
 * belongs to other network namespaces.
 */
#ifndef SONDE_WATCH_TRAFFIC_H
#define SONDE_WATCH_TRAFFIC_H

#include "monitor/watch.h"

struct traffic;

struct traffic *traffic_new(void);
void traffic_free(struct traffic *t); /* NULL-safe */
/* Sets net_known, net_in and net_out of every process in `w`, from what went by since the look
 * before. Call after each watch_look. */
void traffic_look(struct traffic *t, struct watch *w);

#endif
