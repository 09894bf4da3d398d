/*
 * The collector goes before what it records, where it may: it needs little, but on a machine with
 * hundreds of threads that want to run it would come too late, and lose what the rings could not
 * hold. Only while it collects, and never its children.
 */
#ifndef SONDE_PRIORITY_H
#define SONDE_PRIORITY_H

#include <stdbool.h>

/* Of the calling thread. False if that is not allowed, or somebody has given us another priority
 * than the usual one, which then stays. */
bool priority_raise(void);
/* After a priority_raise that was true. */
void priority_restore(void);

#endif
