/* What is watched, as views: for a look once, and for machines. */
#ifndef SONDE_WATCH_TABLES_H
#define SONDE_WATCH_TABLES_H

#include "analyze/view.h"
#include "base/error.h"
#include "monitor/listing.h"
#include "monitor/sockets.h"

/* The machine's facts. */
void tables_machine(struct view *v, const struct watch *w);
/* At most `top` rows; 0 for all. Reads details of those that are shown. */
void tables_processes(struct view *v, struct watch *w, const struct listing *rows, size_t top);
void tables_mounts(struct view *v);
/* Of the processes in `rows`. */
int tables_files(struct view *v, const struct listing *rows, struct error *err);
/* Sockets on one local port (0: any), or held by the processes in `rows` (NULL: by anyone).
 * Returns how many there are that somebody may hold. */
size_t tables_sockets(struct view *v, const struct watch *w, const struct listing *rows,
                      uint64_t port, bool listening_only);
const char *tables_user(uid_t user); /* its name; holds until the next call */

#endif
