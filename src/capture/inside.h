/*
 * What agents in the targets tell, turned into the recording's words: samples where perf is not to
 * be had; beside perf, samples of processes that run Python, and the heap. The agent is preloaded
 * into every process of the tree that is dynamically linked, and stays inert where it has no work.
 */
#ifndef SONDE_INSIDE_H
#define SONDE_INSIDE_H

#include "base/error.h"
#include "capture/agents.h"

struct session;

/* Sets up the session socket and what the command's environment needs. `sampling`: by timers in
 * every process; else what there is to do beside perf, and s->agents stays NULL if that is nothing.
 * FAULT_SYSTEM where the agent is needed and cannot work: its library is missing, or the program is
 * statically linked. */
/* Attached: the process itself is to load the agent and take part. */
int inside_expect(struct session *s, struct error *err);
/* Then, once all is ready: what it needs to know is written to the file options.invite, a line a
 * variable, then an empty one. */
int inside_invite(struct session *s, struct error *err);
int inside_open(struct session *s, bool sampling, struct error *err);
/* "K=V" strings for the command, NULL-terminated. */
/* Of processes that run already: their heaps alone, if they are wanted. */
int inside_open_late(struct session *s, struct error *err);
/* Brings the agent into one. */
int inside_enter(struct session *s, pid_t pid, struct error *err);

const char *const *inside_environment(const struct session *s);
int inside_fd(const struct session *s);
bool inside_traces(const struct session *s); /* some process writes a trace */
void inside_collect(struct session *s);
void inside_finish(struct session *s);
/* Writes the samples that were taken before `until`. */
void inside_write(struct session *s, uint64_t until);
/* Whether a sample of perf's is one that the agent takes itself. */
bool inside_covers(const struct session *s, size_t event, pid_t pid, pid_t tid, uint64_t time);
/* Whether an agent samples all threads of the process. */
bool inside_samples(const struct session *s, pid_t pid);
/* Where all threads of a process are sampled by its agent, the kernel need not do it as well. */
void inside_mute(struct session *s);
/* Another program runs from now on, perhaps one without the agent. */
void inside_on_exec(struct session *s, pid_t pid, uint64_t time);
void inside_close(struct session *s); /* NULL-safe */

#endif
