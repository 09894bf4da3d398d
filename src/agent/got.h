/*
 * Hooks for a library that came too late to be asked first: the tables through which loaded modules
 * call the malloc family (their GOTs) are made to point here, and back again.
 */
#ifndef SONDE_AGENT_GOT_H
#define SONDE_AGENT_GOT_H

#include <stdbool.h>

/* Every module that is loaded now; again after more have come. False when nothing could be done.
 * Not for signal handlers. */
bool got_hook(void);
/* As it was; may run while other threads are inside the hooks, and inside any allocation. False:
 * somebody else is at the tables just now. */
bool got_unhook(void);

#endif
