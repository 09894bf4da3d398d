/*
 * The code that is loaded into this process: what dl_iterate_phdr shows, with unwind rows for it,
 * kept in the map that samples are walked with and in the segment's module table.
 */
#ifndef SONDE_AGENT_MODULES_H
#define SONDE_AGENT_MODULES_H

#include <stdbool.h>
#include <stdint.h>

/* Looks again at what is loaded; cheap when nothing changed. Takes the loader's list lock and may
 * read files: at start and after dlopen, never in a handler. When another thread is doing this,
 * it is asked to look once more and this one goes on. */
void modules_refresh(void);

/* Whether something loaded has a DT_RPATH. */
bool modules_have_rpath(void);

/* Copies the table to the segment. Signal-safe: if a refresh is under way, it will do it. */
void modules_show(void);

#endif
