/*
 * Sampling from inside the target, where perf is not to be had: the agents' words turned into
 * the recording's. The agent is preloaded into every process of the tree that is dynamically
 * linked.
 */
#ifndef SONDE_INSIDE_H
#define SONDE_INSIDE_H

#include "base/error.h"
#include "capture/agents.h"

struct session;

/* Sets up the session socket and what the command's environment needs; `sampling` by timers, or for
 * the heap alone. FAULT_SYSTEM where the agent cannot work: its library is missing, or the program
 * is statically linked. */
int inside_open(struct session *s, bool sampling, struct error *err);
/* "K=V" strings for the command, NULL-terminated. */
const char *const *inside_environment(const struct session *s);
int inside_fd(const struct session *s);
void inside_collect(struct session *s);
void inside_finish(struct session *s);
void inside_close(struct session *s); /* NULL-safe */

#endif
