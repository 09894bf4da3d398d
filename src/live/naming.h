/*
 * Names for the frames of a profile that still grows. Looking them up takes long (debug
 * information of a large program: seconds), so it is done in three steps, of which the second
 * touches nothing of the profile and may run on another thread. Names from symbol tables come first
 * and at once, lines and inlined functions when there is time for them.
 */
#ifndef SONDE_LIVE_NAMING_H
#define SONDE_LIVE_NAMING_H

#include "profile/profile.h"

struct naming;

struct naming *naming_new(void);
void naming_free(struct naming *n); /* NULL-safe */

/* Gathers the frames that nobody has asked for yet, and those of just-in-time code that had no name
 * some seconds ago. False if there is nothing to do. */
bool naming_gather(struct naming *n, const struct profile *p);
/* Looks them up. */
void naming_run(struct naming *n);
/* Puts what was found into the profile. */
void naming_apply(struct naming *n, struct profile *p);

#endif
