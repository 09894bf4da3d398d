/* The live process, from inside. */
#ifndef SONDE_LIVE_LIVE_INTERNAL_H
#define SONDE_LIVE_LIVE_INTERNAL_H

#include "live/live.h"

/* Runs until the recording has ended: `from` is the pipe of struct live_process, `to` takes the
 * address or why there is none, and is closed then. */
void live_main(const struct live_options *o, int from, int to);

#endif
