/*
 * Profiles that come in requests, of any kind that sonde reads: unpacked within bounds, read, and
 * reduced to the counts of a batch. For any thread.
 */
#ifndef SONDE_SERVE_READING_H
#define SONDE_SERVE_READING_H

#include "formats/format.h"
#include "recording/loader.h"
#include "store/batch.h"

#define READING_MAX ((size_t)48 << 20) /* bytes of an unpacked profile */

/* The profile in `data`, into one that the caller has initialised and releases; `format` NULL: told
 * apart by content. FAULT_INPUT if it is none, FAULT_LIMIT if it is too large. */
int reading_profile(const char *data, size_t len, const struct format *format,
                    const struct load_options *how, struct profile *p, struct error *err);

/* Counts and stacks of the profile in `data`, in the same way. */
int reading_batch(struct batch *b, const struct format *format, const char *data, size_t len,
                  struct error *err);

/* A key that the same bytes from the same peer to the same place always give. */
const char *reading_key(struct arena *a, const char *path, const char *peer, const void *data,
                        size_t len);

#endif
