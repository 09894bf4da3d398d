/*
 * The text of /proc/PID/maps, as profiles of gperftools carry it: which file an address was in, and
 * what address of the file that is.
 */
#ifndef SONDE_MAPS_H
#define SONDE_MAPS_H

#include "base/ranges.h"
#include "formats/import.h"

/* Takes a line, if it is one of an executable mapping; others are passed over. Ranges are numbered
 * by module. */
int maps_line(struct ranges *m, struct import *im, const char *line, struct error *err);
/* Where the mapping of a line ends, executable or not; *end stays as it is if it is no such line.
 */
void maps_end(const char *line, uint64_t *end);
/* The frame at an address of the process. */
uint32_t maps_frame(const struct ranges *m, struct import *im, uint64_t address);

/* What to take off an address in a mapping at `start` of a file's offset to get one of the file;
 * asks the file, if it is here and (where the id is known) the same build. */
uint64_t maps_bias(const char *path, const uint8_t *build_id, size_t len, uint64_t start,
                   uint64_t offset);
/* The file, if it is a regular one and of that build; -1 if not. */
int maps_open(const char *path, const uint8_t *build_id, size_t len);

#endif
