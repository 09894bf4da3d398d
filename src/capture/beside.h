/* Files that belong to sonde, found from where it is itself: in the build folder, or installed. */
#ifndef SONDE_BESIDE_H
#define SONDE_BESIDE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* The path of `name`, which the build has in the folder `built` beside sonde's own ("agent").
 * FAULT_SYSTEM if it is not there. */
int beside_find(const char *built, const char *name, char *out, size_t size, struct error *err);

#endif
