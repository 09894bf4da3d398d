/*
 * Brings the agent into a process that runs already. One of its threads, stopped for about a
 * millisecond where it can hold no lock of the loader or the allocator (in a wait, or in the
 * program's own code), is made to call dlopen, and then the agent's sonde_attach_begin.
 *
 * The call returns through a signal frame that we put on the stack: the kernel restores everything
 * by itself, so from the moment in which the thread is let go nothing depends on us any more.
 */
#ifndef SONDE_CAPTURE_INJECT_H
#define SONDE_CAPTURE_INJECT_H

#include <sys/types.h>

#include "base/error.h"

struct session;

/* `settings` are "NAME=value" lines for the agent. A fault says, by name, why it is not safe. */
int inject_agent(struct session *s, pid_t pid, const char *library, const char *settings,
                 struct error *err);

#endif
