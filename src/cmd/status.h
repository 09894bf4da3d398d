/*
 * What `sonde` returns to its caller. The manual pages print this list, so a
 * status added here is documented there.
 */
#ifndef SONDE_STATUS_H
#define SONDE_STATUS_H

enum status {
    STATUS_OK = 0,
    STATUS_FAILED = 1,           /* what was asked for could not be done */
    STATUS_USAGE = 2,            /* the command line or sonde.conf is wrong */
    STATUS_GROWN = 3,            /* diff --fail-above: something grew by more than that */
    STATUS_LEAKED = 4,           /* report --leaks --fail-on-leak: something was not freed */
    STATUS_WRONG = 5,            /* verify: something is beyond its bound */
    STATUS_NOT_STARTED = 125,    /* sonde failed before the program was started */
    STATUS_NOT_EXECUTABLE = 126, /* the program was found but could not be executed */
    STATUS_NOT_FOUND = 127,      /* the program was not found */
    STATUS_SIGNAL = 128,         /* plus the number of the signal that ended the program */
};

#endif
