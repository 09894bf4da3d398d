/*
 * A recording as it grows, as a profile: what a file holds when it is finished, kept up to date
 * while it is written. Reading the file, which only ever grows by whole blocks, keeps the one who
 * writes it out of reach: whatever happens here, the collector does not notice.
 * Owned by one thread at a time.
 */
#ifndef SONDE_LIVE_FOLLOW_H
#define SONDE_LIVE_FOLLOW_H

#include "base/error.h"
#include "profile/profile.h"

struct follow;

/* `keep_samples` as in load_options. */
int follow_new(const char *path, bool keep_samples, struct follow **out, struct error *err);
void follow_free(struct follow *f); /* NULL-safe */
/* Takes in what has been written since; with `last`, what is cut at the end is damage. Returns how
 * many blocks, or a fault. */
int follow_read(struct follow *f, bool last, struct error *err);
struct profile *follow_profile(struct follow *f);
uint64_t follow_bytes(const struct follow *f); /* of the file, taken in */

#endif
