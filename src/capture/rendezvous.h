/*
 * Where sessions that run can be found: a folder for each, named after the recorder's process
 * number, below $XDG_RUNTIME_DIR/sonde or /tmp/sonde-UID. It is this user's alone (0700) and holds
 *
 *     control   a unix socket (0600) that takes commands, one a line; see control.h
 *     live      the address of the page, with its token (0600), while there is one
 */
#ifndef SONDE_RENDEZVOUS_H
#define SONDE_RENDEZVOUS_H

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/text.h"
#include "base/vector.h"

struct rendezvous_list {
    pid_t *data;
    size_t len, cap;
};

/* "…/PID" or, with a name, "…/PID/NAME". */
void rendezvous_path(pid_t session, const char *name, struct text *out);
/* Makes this process's folder; folders of sessions that were killed are removed on the way. */
int rendezvous_open(struct error *err);
/* Puts `text` into a file of this process's folder. */
int rendezvous_put(const char *name, const char *text, struct error *err);
void rendezvous_close(void);
/* Sessions of this user that run now; the caller releases the vector. */
void rendezvous_sessions(struct rendezvous_list *out);

#endif
