/* Several profiles as one: what `sonde merge` and commands with several files do. */
#ifndef SONDE_MERGE_H
#define SONDE_MERGE_H

#include "base/error.h"
#include "profile/profile.h"

/*
 * Adds all of `from` to `into`. Processes and threads stay apart even where their numbers are
 * equal; modules, functions, frames and stacks that are equal become one, and so do events of the
 * same name. If both have a wall clock, times of `from` are moved onto the monotonic clock of
 * `into`. Of two trees' peaks of the heap the higher stays. FAULT_INPUT, before anything is
 * changed, if an event has different units in the two.
 */
int profile_merge(struct profile *into, const struct profile *from, struct error *err);

#endif
