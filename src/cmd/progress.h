/*
 * The line on standard error that says how far a long piece of work is. It comes only on a
 * terminal, and only once the work has taken most of a second; when the work ends it is gone.
 */
#ifndef SONDE_PROGRESS_H
#define SONDE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *doing; /* "reading" */
    uint64_t began, shown;
    bool wanted, on;
};

void progress_begin(struct progress *p, const char *doing);
/* A callback for whatever works: the context is the progress, `size` 0 if nobody knows. */
void progress_show(void *context, uint64_t done, uint64_t size);
void progress_end(struct progress *p);

#endif
