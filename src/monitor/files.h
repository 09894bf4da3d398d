/* What a process has open: descriptors, its folder, root and program. */
#ifndef SONDE_WATCH_FILES_H
#define SONDE_WATCH_FILES_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vector.h"

struct open_file {
    char fd[12];      /* a number, or "cwd", "root", "exe" */
    char access;      /* 'r', 'w', 'u' for both, '-' for none */
    const char *kind; /* "file", "folder", "socket", "pipe", "device", "other" */
    uint64_t inode;
    uint64_t size; /* of a file */
    uint64_t offset;
    char *name;
};

struct files {
    VECTOR(struct open_file) list;
};

/* FAULT_MISSING if there is no such process, FAULT_SYSTEM if this user may not look. */
int files_read(struct files *f, pid_t pid, struct error *err);
void files_release(struct files *f);

#endif
