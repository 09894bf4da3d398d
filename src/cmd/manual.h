/*
 * What the command table says, for readers: help on a terminal (80 columns),
 * manual pages (roff), completion (bash). Nothing about a command is written
 * anywhere but in its table.
 */
#ifndef SONDE_MANUAL_H
#define SONDE_MANUAL_H

#include <stdio.h>

#include "base/text.h"
#include "cmd/command.h"

/* Help on a terminal; bold headings if `out` is one and NO_COLOR is not set. */
void manual_print_help(const struct command *command, FILE *out);
void manual_print_overview(const struct command *const *table, FILE *out);

/* roff with the man macros: sonde-CMD(1), sonde(1), sonde.conf(5). */
void manual_roff_command(const struct command *command, struct text *out);
void manual_roff_overview(const struct command *const *table, struct text *out);
void manual_roff_conf(const struct command *const *table, struct text *out);

/* A bash script that completes commands, options, choices and file names. */
void manual_bash(const struct command *const *table, struct text *out);

/* --help, which every command has without listing it. */
extern const struct option manual_help_option;

/* Statuses that every command has: 0, 1 and 2. Ended by {0}, that is by a NULL meaning. */
extern const struct command_status manual_statuses[];

const char *manual_group(const struct option *o); /* its heading */
/* Is `o` the first of its group? Groups are shown in the order in which they first appear. */
bool manual_opens_group(const struct option *options, const struct option *o);
/* What is worth knowing beside the sentence: "Default 99; a whole number from 1 to 4,000." */
void manual_add_remarks(const struct command *command, const struct option *o, struct text *out);

#endif
