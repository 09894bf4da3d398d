/*
 * From a profile to a recording: what `import` and `merge` write. Loading the file
 * again gives the same profile: the same tables in the same order, the same sums, and the
 * samples where the profile has them.
 */
#ifndef SONDE_SAVE_H
#define SONDE_SAVE_H

#include "profile/profile.h"
#include "recording/writer.h"

/*
 * Writes everything into a writer that nothing was written to yet; the caller then frees it with
 * p->end as the end. Cells of which the samples are known (profile.samples, where the profile was
 * loaded with keep_samples) are written as samples with their times, the rest as sums. FAULT_LIMIT
 * if samples and cells contradict each other.
 */
int recording_save(const struct profile *p, struct writer *w, struct error *err);

#endif
