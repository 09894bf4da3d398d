/* What belongs to no process: see watch.h. */
#ifndef SONDE_WATCH_MACHINE_H
#define SONDE_WATCH_MACHINE_H

#include "monitor/watch.h"

void machine_init(struct watch *w);
void machine_look(struct watch *w);

/* A mounted file system with a disk behind it. */
struct watch_mount {
    char *device, *path, *type;
    uint64_t size, used, available; /* bytes */
};
struct watch_mounts {
    VECTOR(struct watch_mount) list;
};
void machine_mounts(struct watch_mounts *m);
void machine_mounts_release(struct watch_mounts *m);

#endif
