/* The child's side of isolated reading: limits, then requests one after the other into a pipe. */
#ifndef SONDE_SYMBOL_CHILD_H
#define SONDE_SYMBOL_CHILD_H

#include "symbol/symbol.h"

/* How much is risked on a module: each failure goes one step down. */
enum child_level {
    CHILD_ALL,         /* debug information through libdw */
    CHILD_NO_DEBUG,    /* our own reader of symbol tables */
    CHILD_NO_DEMANGLE, /* and names as they are */
    CHILD_LEVELS,
};

struct child_task {
    size_t module; /* index of the request */
    enum child_level level;
};

/* Runs the tasks, writes their messages to `fd` and ends the process. */
_Noreturn void child_run(const struct symbol_request *request, const struct child_task *task,
                         size_t tasks, const struct symbol_options *options, int fd);

#endif
