/*
 * Other tools' files, in and out: one vtable, one file an implementation, the list
 * in format.c. The room opens onto profile, base and wire; open.h, which every
 * command uses to read whatever it is given, onto recording as well.
 */
#ifndef SONDE_FORMAT_H
#define SONDE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "formats/sink.h"
#include "formats/source.h"
#include "profile/profile.h"

enum weight {
    WEIGHT_AUTOMATIC, /* bytes as bytes, waits as time, everything else in samples */
    WEIGHT_SAMPLES,
    WEIGHT_VALUE,
};

struct export_options {
    uint32_t event;  /* PROFILE_NONE: all of them, or the main one where a format holds but one */
    bool by_process; /* folded: the process is the outermost frame */
    bool by_thread;  /* folded: the thread is */
    enum weight weight;
    double min; /* per cent of the total under which a node is left out of a picture */
};

struct import_options {
    uint64_t from, to;  /* ns since the first sample; to 0: no bound. Without times: all is read */
    bool keep_samples;  /* fill profile.samples, where the file has times */
    bool keep_spans;    /* and profile.spans, where it has spans */
    bool samples_apart; /* of samples only they: no sums by stack of what has a time */
    uint64_t deadline;  /* on the clock of base/clock.h; 0: by the file's size */
};

struct format {
    const char *name;  /* as typed after --format */
    const char *alias; /* may be typed instead, or NULL */
    const char *description;
    const char *const *extensions; /* with their dot, ended by NULL; the first one is usual */
    bool binary;                   /* not for a terminal */
    bool timed;                    /* its writer shows times: spans are wanted */
    bool by_address;               /* its writer leaves out frames that have no address */

    /* How surely the first bytes of a file (at most SOURCE_PEEK_MAX, unpacked) are of this format:
     * 0 no, 50 it looks like it, 100 its magic is there. NULL: cannot be read. Must not assume that
     * the bytes end with a NUL. */
    int (*detect)(const uint8_t *bytes, size_t len);

    /* Writes the whole profile. Takes memory for the profile's tables only, never for the output.
     * Need not check the sink; the caller finishes it. NULL: cannot be written. */
    int (*write)(const struct profile *p, const struct export_options *options, struct sink *out,
                 struct error *err);

    /* Fills a fresh profile from the start of `in`. Malformed input is FAULT_INPUT through
     * source_bad, a bound that was met FAULT_LIMIT; the caller throws the profile away then. Time
     * and memory are linear in the input and bounded by import.h. NULL: cannot be read. */
    int (*read)(struct source *in, const struct import_options *options, struct profile *p,
                struct error *err);
};

/* Every format, ended by NULL. */
const struct format *const *format_list(void);
const struct format *format_find(const char *name);     /* or NULL */
const struct format *format_for_path(const char *path); /* a writer, by extension; or NULL */
/* The reader that is surest of these bytes, or NULL. */
const struct format *format_detect(const uint8_t *bytes, size_t len);
/* "pprof, folded and perf-script": those that can be written, or read. */
void format_names(bool written, struct text *out);

/* The event a picture of one event shows: "cpu" or "inuse_space" if there is any of it, else the
 * first of which there is. */
uint32_t format_main_event(const struct profile *p);
/* A cell's weight in a format that has but one number. */
uint64_t format_weight(const struct profile *p, const struct profile_cell *c, enum weight weight);
/* What a frame without symbols is called: "[module+0x12]", "[unknown]". */
void format_address(const struct profile *p, uint32_t frame, struct text *out);

#endif
