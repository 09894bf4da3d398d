/*
 * The heaps of a recording without an end. What a process held is written when it ends; if the
 * recorder was killed before, the history of its stacks (DETAIL_GREW, DETAIL_SHRANK) is there up to
 * the last point, and its heap is put together from that: totals, what was live, and the peaks
 * among the history's points.
 */
#ifndef SONDE_PROFILE_RESCUE_H
#define SONDE_PROFILE_RESCUE_H

#include "profile/profile.h"

/* Adds what is missing of the heaps, and a note of that. Nothing if none is. */
void profile_rescue_heaps(struct profile *p);

#endif
