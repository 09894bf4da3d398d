/*
 * The text of /proc/PID/maps, as profiles of gperftools carry it: which file an address was in, and
 * what address of the file that is.
 */
#ifndef SONDE_MAPS_H
#define SONDE_MAPS_H

#include "formats/import.h"

struct maps_entry {
    uint64_t start, end, bias;
    uint32_t module;
};

struct maps {
    VECTOR(struct maps_entry) list; /* sorted by maps_finish */
};

/* Takes a line, if it is one of an executable mapping; others are passed over. */
int maps_line(struct maps *m, struct import *im, const char *line, struct error *err);
void maps_finish(struct maps *m);
/* The frame at an address of the process. */
uint32_t maps_frame(const struct maps *m, struct import *im, uint64_t address);
void maps_release(struct maps *m);

/* What to take off an address in a mapping at `start` of a file's offset to get one of the file;
 * asks the file, if it is here and (where the id is known) the same build. */
uint64_t maps_bias(const char *path, const uint8_t *build_id, size_t len, uint64_t start,
                   uint64_t offset);
/* The file, if it is a regular one and of that build; -1 if not. */
int maps_open(const char *path, const uint8_t *build_id, size_t len);

#endif
