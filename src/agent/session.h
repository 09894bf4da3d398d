/* The agent's half of the session: one message to the collector. Signal-safe, never blocks. */
#ifndef SONDE_AGENT_SESSION_H
#define SONDE_AGENT_SESSION_H

#include <stdint.h>

#include "wire/session.h"

/* Connects, sends, closes. `fd` is the segment's memfd, or -1. 0 or a negative errno: -EAGAIN when
 * the collector's queue is full just now, -ECONNREFUSED or -ENOENT when there is none. */
int session_send(enum session_kind kind, enum session_reason reason, int error, int fd);

#endif
