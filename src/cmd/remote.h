/*
 * A server of jobs, as commands call it. The address comes from --server, $SONDE_SERVER or is that
 * of this machine; the token from $SONDE_TOKEN; $SONDE_CA names a file of certificates to trust.
 *
 * What is pushed goes to a spool on disk first and leaves it when the server has it: a server that
 * is away, or a client that dies, delays it and no more. $SONDE_SPOOL names the folder.
 */
#ifndef SONDE_REMOTE_H
#define SONDE_REMOTE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"
#include "store/batch.h"

struct remote;

int remote_open(const char *url, struct remote **out, struct error *err);
void remote_free(struct remote *r); /* NULL is fine */
const char *remote_url(const struct remote *r);

/* `path` begins with '/'. The answer's body; a status other than 2xx is a fault with the server's
 * own sentence: FAULT_MISSING for 404, FAULT_USAGE for 400 and 409, FAULT_LIMIT for 413, and
 * FAULT_SYSTEM for all that may be different later: it cannot be reached, is full, or knows no such
 * token. */
int remote_get(struct remote *r, const char *path, struct text *answer, struct error *err);
int remote_send(struct remote *r, const char *method, const char *path, const void *data,
                size_t len, struct text *answer, struct error *err);

/* The server's store was away at one of these: the answer was what it knew so many seconds ago. */
bool remote_was_stale(const struct remote *r, uint64_t *seconds);

struct remote_pushed {
    unsigned sent, waiting; /* parts: got there; are on disk, for a server that is away */
    unsigned known;         /* of those sent: were there already, and count once */
    unsigned refused;       /* by the server, for good: they are gone */
};

/* Puts a batch whose key is set into the spool, then sends what is there for this server. A server
 * that is away is no fault: done->waiting says so. FAULT_* if the batch itself was refused. */
int remote_push(struct remote *r, uint32_t job, const struct batch *b, struct remote_pushed *done,
                struct error *err);
/* Sends what waits for this server. */
int remote_flush(struct remote *r, struct remote_pushed *done, struct error *err);
/* One batch alone, without the spool: 0, or the fault. */
int remote_push_now(struct remote *r, uint32_t job, const struct batch *b, struct error *err);

/* Is the job there? FAULT_MISSING says how to make it. A server that is away is no fault, but
 * unless `quiet` it is told that `what` waits on disk. */
int remote_check_job(struct remote *r, uint32_t job, const char *what, bool quiet,
                     struct error *err);
/* One sentence on what became of pushes by the command `who`: `waiting` parts are on disk. */
void remote_say_waiting(const char *who, unsigned waiting, const struct error *why);

/* The name of this machine, "" if it has none. */
void remote_host(char *out, size_t size);

#endif
