/*
 * Which job the profiles of an application went to last, so that each need not look through all
 * jobs. Bounded; for any thread. What it says may have changed since: whoever asks looks.
 */
#ifndef SONDE_SERVE_APPLICATIONS_H
#define SONDE_SERVE_APPLICATIONS_H

#include <stdint.h>

struct applications;

struct applications *applications_new(void);
void applications_free(struct applications *a); /* NULL is fine */
/* 0 if it is not known. */
uint32_t applications_find(struct applications *a, const char *name);
void applications_note(struct applications *a, const char *name, uint32_t job);

#endif
