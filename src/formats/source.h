/*
 * Where a reader's bytes come from: a file, standard input or memory, with gzip taken
 * off on the way. Buffered, forward only, and bounded: a line, a whole and the
 * stream itself have limits, so a small file that unpacks without end is refused.
 * Offsets are those of the unpacked stream. A mark of UTF-8 before the first byte is left out.
 */
#ifndef SONDE_SOURCE_H
#define SONDE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define SOURCE_PEEK_MAX ((size_t)64 * 1024)  /* bytes that can be seen ahead */
#define SOURCE_LINE_MAX ((size_t)4 << 20)    /* bytes of a line */
#define SOURCE_WHOLE_MAX ((size_t)1 << 30)   /* bytes that source_rest gives */
#define SOURCE_TOTAL_MAX ((uint64_t)1 << 36) /* bytes of the unpacked stream */

struct source;

/* "-" is standard input. FAULT_MISSING if there is no such file. */
int source_open(const char *path, struct source **out, struct error *err);
/* Takes over the descriptor. */
int source_from_fd(int fd, const char *name, struct source **out, struct error *err);
/* On bytes of the caller's, which must outlive it. */
int source_from_memory(const void *data, size_t len, const char *name, struct source **out,
                       struct error *err);
void source_free(struct source *s);

const char *source_name(const struct source *s);
uint64_t source_offset(const struct source *s); /* of the next byte */
uint64_t source_size(const struct source *s);   /* of the file itself; 0: unknown */
/* Called while reading with the bytes consumed of the file's own; `size` 0 if unknown. */
void source_set_progress(struct source *s,
                         void (*progress)(void *context, uint64_t done, uint64_t size),
                         void *context);

/* Up to `want` (at most SOURCE_PEEK_MAX) coming bytes, fewer only at the end; not consumed.
 * Returns how many, or a negative fault. *data holds until the next call. */
ssize_t source_peek(struct source *s, size_t want, const uint8_t **data, struct error *err);
/* Exactly `len` bytes: 1, or 0 if none are left at all; FAULT_INPUT if the source ends between. */
int source_read(struct source *s, void *data, size_t len, struct error *err);
/* The same from any place of a plain file or of memory, without consuming: 1, or 0 if the source is
 * no such thing (a pipe, compressed) or ends before. */
int source_at(struct source *s, uint64_t offset, void *data, size_t len);
/* All of a plain file or of memory, as long as the source lives; NULL if it is no such thing. A
 * file that is cut short meanwhile reads as zeros from there on, and source_was_cut says so. */
const uint8_t *source_whole(struct source *s, uint64_t *size);
bool source_was_cut(const struct source *s);
/* Goes on at `offset` of a source that source_at can read. */
void source_seek(struct source *s, uint64_t offset);
int source_skip(struct source *s, uint64_t len, struct error *err);
/* The next line without its end ("\n" or "\r\n"), NUL-terminated, to be altered at will: 1, 0 at
 * the end, or a negative fault. Holds until the next call. */
int source_line(struct source *s, char **line, size_t *len, struct error *err);
/* Did the last line that was given have no end, so that it may have been cut? */
bool source_line_open(const struct source *s);
/* Everything left, at most SOURCE_WHOLE_MAX, NUL-terminated; the caller frees *data. */
int source_rest(struct source *s, uint8_t **data, size_t *len, struct error *err);

/* FAULT_INPUT with "NAME, byte OFFSET: reason". */
int source_bad(const struct source *s, uint64_t offset, struct error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
