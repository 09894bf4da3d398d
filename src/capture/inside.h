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

/* Sets up the session socket and what the command's environment needs. FAULT_SYSTEM where the agent
 * cannot work: its library is missing, or the program is statically linked. */
int inside_open(struct session *s, struct error *err);
/* "K=V" strings for the command, NULL-terminated. */
/* The same beside perf: the agent wakes up in processes that run Python, and only there. Opens
 * nothing, and s->agents stays NULL, if no event is sampled by time. */
int inside_open_for_python(struct session *s, struct error *err);
const char *const *inside_environment(const struct session *s);
int inside_fd(const struct session *s);
void inside_collect(struct session *s);
void inside_finish(struct session *s);
/* Writes the samples that were taken before `until`. */
void inside_write(struct session *s, uint64_t until);
/* Whether a sample of perf's is one that the agent takes itself. */
bool inside_covers(const struct session *s, size_t event, pid_t pid, pid_t tid, uint64_t time);
/* Another program runs from now on, perhaps one without the agent. */
void inside_on_exec(struct session *s, pid_t pid, uint64_t time);
void inside_close(struct session *s); /* NULL-safe */

#endif
