/*
 * The socket through which a session takes commands while it runs. One command a line, each
 * answered by one line: "ok SENTENCE" or "error SENTENCE".
 *
 *     status                     what is true now, as JSON
 *     start cpu|heap [PID]       sampling, or recording of allocations; of one process or of all
 *     stop cpu|heap [PID]
 *     snapshot cpu|heap [PID]    what there is up to now, in the file; of the heap: who holds what
 *     rate HZ
 *     mark TEXT
 *
 * Nothing here waits: the collector calls it between two rounds.
 */
#ifndef SONDE_CONTROL_H
#define SONDE_CONTROL_H

#include "base/error.h"
#include "base/text.h"

struct control;

/* Adds the answer to `answer`, without the line's end. */
typedef void control_fn(void *context, char *line, struct text *answer);

/* Makes the session's folder and the socket in it. */
int control_new(struct control **out, struct error *err);
void control_free(struct control *c);    /* NULL-safe; removes the folder */
int control_fd(const struct control *c); /* to poll for reading; -1 for NULL */
void control_take(struct control *c, control_fn *on_line, void *context);

/* The other side: sends one line and waits for the answer, for at most `seconds`. 0 and the
 * sentence if it worked; FAULT_MISSING if nobody listens there, FAULT_INPUT with the sentence if
 * the session refused. */
int control_ask(const char *socket, const char *line, unsigned seconds, struct text *answer,
                struct error *err);

#endif
