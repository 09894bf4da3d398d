/* From what a person types to a session that runs. */
#ifndef SONDE_CMD_SESSIONS_H
#define SONDE_CMD_SESSIONS_H

#include "base/error.h"
#include "base/text.h"
#include "capture/control.h"

/* The path of file `name` (see capture/rendezvous.h) of the session `who`: its own process number,
 * or that of a process that it records. NULL: the only session there is. */
int sessions_find(const char *who, const char *name, struct text *path, struct error *err);

#endif
