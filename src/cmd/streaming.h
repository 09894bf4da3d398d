/*
 * Recording for a job of a server: a second process pushes what the recording gains while it
 * grows (see following.h), so that neither the recorder nor the target ever waits for a network.
 */
#ifndef SONDE_STREAMING_H
#define SONDE_STREAMING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct streaming_options {
    const char *to; /* URL; NULL: no server */
    uint64_t job;
    bool keep;
};

#define STREAMING_OPTIONS(type, at)                                                                \
    {"to",                                                                                         \
     0,                                                                                            \
     OPTION_TEXT_AT(type, at.to),                                                                  \
     .placeholder = "URL",                                                                         \
     .group = "Server",                                                                            \
     .help = "Add the counts of each function to a job of this server, while it runs. Without -o " \
             "the recording itself is not left here."},                                            \
        {"job",                                                                                    \
         0,                                                                                        \
         OPTION_UNSIGNED_AT(type, at.job),                                                         \
         .placeholder = "N",                                                                       \
         .min = 2001,                                                                              \
         .max = 9999,                                                                              \
         .group = "Server",                                                                        \
         .help = "The job to add to."},                                                            \
    {                                                                                              \
        "keep", 0, OPTION_FLAG_AT(type, at.keep), .group = "Server",                               \
                                                  .help = "Keep the recording on the server too."  \
    }

struct streaming {
    pid_t pid;        /* of the pusher; 0: there is none */
    const char *path; /* the recording */
    char *output;     /* the same, where it is a temporary one; else NULL */
};

/* Asks the server for the job and starts the pusher on what `output` will be; with NULL, a
 * temporary file is made, and is s->output. FAULT_MISSING if there is no such job; a server that is
 * away is told of and is no fault. */
int streaming_start(struct streaming *s, const struct streaming_options *o, const char *command,
                    const char *output, bool quiet, struct error *err);
/* After the recording has ended, in whatever way. Waits for the pusher, removes what is temporary.
 * Returns false if something could not be handed over; the pusher has said what. */
bool streaming_finish(struct streaming *s);
/* After that: how many parts wait on disk for a server that is away, and why it is. */
unsigned streaming_waiting(const struct streaming_options *o, struct error *why);

#endif
