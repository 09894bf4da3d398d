/*
 * What went wrong, as a sentence for the person who asked. A function that can
 * fail takes a `struct error *` last and returns 0 or a negative enum fault; the
 * caller either handles it or passes it up to cmd/, which prints it.
 */
#ifndef SONDE_ERROR_H
#define SONDE_ERROR_H

enum fault {
    FAULT_NONE = 0,
    FAULT_USAGE = -1,   /* the command line is wrong: status 2 */
    FAULT_INPUT = -2,   /* a file or stream is malformed, foreign or missing: status 1 */
    FAULT_SYSTEM = -3,  /* the system refused: status 1 */
    FAULT_LIMIT = -4,   /* a bound of ours was met: status 1 */
    FAULT_MISSING = -5, /* what was asked for is not there: status 1 */
};

struct error {
    enum fault fault;
    char text[600];
};

/* Formats the sentence and returns `fault`, so that callers can `return error_set(...)`.
 * `err` may be NULL. Control characters in the result are replaced: names come from outside. */
int error_set(struct error *err, enum fault fault, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, with ": " and the text of errno appended. */
int error_errno(struct error *err, enum fault fault, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts a prefix before what is there ("while opening x: ..."); returns err->fault. */
int error_prefix(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
