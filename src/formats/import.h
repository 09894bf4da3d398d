/*
 * What readers share: finding or making processes, threads, modules and frames in a
 * fresh profile, and the bounds on them. Values are checked so that no sum overflows;
 * samples with times are held to the range that was asked for.
 */
#ifndef SONDE_IMPORT_H
#define SONDE_IMPORT_H

#include "formats/format.h"

#define IMPORT_STACKS_MAX ((size_t)1 << 24) /* nodes */
#define IMPORT_DEPTH_MAX ((size_t)1 << 16)  /* frames of one stack */
#define IMPORT_INLINED_MAX 256              /* places at one address */
#define IMPORT_MODULES_MAX ((size_t)1 << 14)
#define IMPORT_THREADS_MAX ((size_t)1 << 18)
#define IMPORT_EVENTS_MAX ((size_t)256)
#define IMPORT_NOTES_MAX ((size_t)200)
#define IMPORT_STRING_MAX ((size_t)32768) /* longer names are cut */
#define IMPORT_TIME_MAX 600000000000ull   /* ns for a file, and ... */
#define IMPORT_TIME_BYTE 1000             /* ... for each byte of it */

struct import {
    struct profile *profile;
    struct source *source;
    struct import_options options;
    struct map processes; /* pid -> process */
    struct map threads;   /* (process, tid) -> thread */
    struct map modules;   /* (path, kind) -> module */
    uint64_t first, last; /* times of samples seen; first is UINT64_MAX before any */
    bool untimed;         /* values without times came */
    uint64_t deadline;    /* when to give up */
    uint32_t pushes;
};

void import_init(struct import *im, struct profile *p, struct source *in,
                 const struct import_options *options);
void import_release(struct import *im);

/* Interned, cut at IMPORT_STRING_MAX. */
uint32_t import_string(struct import *im, const char *text, size_t len);

/* PROFILE_NONE when there are too many: import_too_many says so. */
uint32_t import_process(struct import *im, int32_t pid, const char *name);
/* Of a file that is of one process and does not name it: called as its command is, where that is
 * known by now, else as the file. */
uint32_t import_only_process(struct import *im, int32_t pid);
uint32_t import_thread(struct import *im, uint32_t process, int32_t tid, const char *name);
uint32_t import_module(struct import *im, const char *path);
uint32_t import_event(struct import *im, const char *name, enum value_unit unit, uint64_t period);
int import_too_many(const struct import *im, const char *what, size_t limit, struct error *err);

/* A frame known by name: `module` "" if nobody knows, `file` "" and `line` 0 likewise. */
uint32_t import_frame(struct import *im, uint32_t module, const char *function, const char *file,
                      uint32_t start_line, uint32_t line);
/* Puts a frame on top of *stack. */
int import_push(struct import *im, uint32_t *stack, uint32_t frame, struct error *err);

/* A value without a time. */
int import_count(struct import *im, uint32_t event, uint32_t thread, uint32_t stack, uint64_t count,
                 uint64_t value, struct error *err);
/* One sample at `time`, ns on any clock that runs forward. */
int import_sample(struct import *im, uint32_t event, uint64_t time, uint32_t thread, uint32_t stack,
                  uint64_t value, struct error *err);

void import_note(struct import *im, enum note_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A warning that the file itself is not whole. */
void import_damage(struct import *im, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* For text that has no other end: says so if the last line has none, and may lack a part. */
void import_check_line_end(struct import *im);
/* Puts times, order and completeness right; `format` is named in the profile's meta data. */
void import_finish(struct import *im, const char *format);

/* Is `word` in the bytes? For readers that tell whether a file is theirs. */
bool import_holds(const uint8_t *bytes, size_t len, const char *word);

/* What a path stands for: "[kernel.kallsyms]", "[vdso]", "x.py", "perf-1.map", "/usr/bin/x". */
enum code_kind import_kind(const char *path);

#endif
