/*
 * From argv to an exit status: finds the command, reads sonde.conf and the
 * options, runs it, prints its error as `sonde CMD: sentence`, checks that all
 * output was written.
 */
#ifndef SONDE_DISPATCH_H
#define SONDE_DISPATCH_H

#include "cmd/command.h"

/* `table` is ended by NULL. Returns the exit status. argv is reordered. */
int dispatch(const struct command *const *table, int argc, char **argv);

#endif
