/*
 * A command of `sonde`: one file in this folder that exports one
 * `const struct command command_<name>`, listed in main.c. The table is the only
 * description there is: parsing, --help, manual pages, shell completion and
 * sonde.conf all come from it.
 *
 * A command parses (declared here), calls other rooms, and prints what they
 * render to stdout. It never calls exit() and never prints its own errors.
 */
#ifndef SONDE_COMMAND_H
#define SONDE_COMMAND_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "cmd/option.h"
#include "cmd/status.h"

#define COMMAND_ANY UINT_MAX /* no upper bound on operands */

struct invocation {
    const struct command *command;
    const struct command *const *table; /* every command, ended by NULL */
    void *options;                      /* the command's own options struct, filled in */
    struct option_set set;              /* where each value came from */
    int argc;                           /* operands: what is neither option nor its argument */
    char **argv;                        /* ended by NULL */
    struct error error;                 /* printed by dispatch as `sonde CMD: sentence` */
};

struct command_example {
    const char *line;    /* as typed: "sonde run -- ./app" */
    const char *meaning; /* half a sentence */
};

struct command_status {
    int status;
    const char *meaning;
};

struct command {
    const char *name;
    const char *summary;     /* one line, at most 60 columns, no full stop */
    const char *usage;       /* what follows the name: "[OPTION]... [--] COMMAND [ARGUMENT]..." */
    const char *description; /* paragraphs with an empty line between them, wrapped when shown */
    const struct option *options; /* ended by {0}; NULL for none */
    size_t options_size;          /* of the command's own options struct */
    const void *defaults;         /* such a struct to start from; NULL for zeros */
    unsigned operands_min, operands_max;
    const char *operand;                    /* what an operand is, in capitals: "RECORDING" */
    bool operands_end_options;              /* the first operand ends the options: `run ls -l` */
    bool without_conf;                      /* sonde.conf is not read */
    const struct command_example *examples; /* ended by {0}; may be NULL */
    const struct command_status *statuses;  /* beyond 0, 1 and 2; ended by {0}; may be NULL */
    const char *const *see_also;            /* names of commands, ended by NULL; may be NULL */

    /*
     * Returns the exit status, or a negative enum fault with inv->error set: FAULT_USAGE becomes
     * status 2, any other 1. A status of 0 or more with inv->error set is returned as it is, and
     * the sentence is printed.
     */
    int (*run)(struct invocation *inv);
};

/* What every table begins with: the file's own `options`, which fill a `type`, from `defaults`. */
#define COMMAND_OPTIONS(type)                                                                      \
    .options = options, .options_size = sizeof(type), .defaults = &defaults
#define COMMAND_OPERANDS(least, most, what)                                                        \
    .operands_min = (least), .operands_max = (most), .operand = (what)

/* Was the option given, on the command line or in sonde.conf? */
bool invocation_given(const struct invocation *inv, const char *option);

/* The command of that name, or NULL. */
const struct command *command_find(const struct command *const *table, const char *name);

#endif
