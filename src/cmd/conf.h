/*
 * sonde.conf: the options of a command under its name in brackets, each by its
 * long name. Only one file is read, the first there is of:
 *
 *     $SONDE_CONF                            (must exist if set; empty: no file at all)
 *     $XDG_CONFIG_HOME/sonde/sonde.conf      (without the variable: ~/.config)
 *     /etc/sonde/sonde.conf
 *
 * never one in the current folder, which may belong to somebody else. The command
 * line wins over the file. What the file says wrongly is a fault with its line.
 */
#ifndef SONDE_CONF_H
#define SONDE_CONF_H

#include "cmd/command.h"

/* The path of the file to read, or NULL if there is none. The caller frees it. */
char *conf_path(void);

/* Stores what the file at `path` says of `command` into `set`. Section and option names are checked
 * for every command, values for this one. */
int conf_read(const char *path, const struct command *const *table, const struct command *command,
              struct option_set *set, struct error *err);

#endif
