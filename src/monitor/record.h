/* What is watched, look by look, as curves of a recording: they stand beside samples when
 * recordings are merged, and open in every view that shows curves. */
#ifndef SONDE_WATCH_RECORD_H
#define SONDE_WATCH_RECORD_H

#include "base/error.h"
#include "monitor/listing.h"

struct watch_record;

int watch_record_open(const char *path, bool replace, struct watch_record **out, struct error *err);
/* The processes in `rows`: CPU (thousandths of one), memory, disk I/O; and the machine's. */
void watch_record_look(struct watch_record *r, struct watch *w, const struct listing *rows);
int watch_record_close(struct watch_record *r, struct error *err);

#endif
