/* A sink into what -o names; see base/output.h. */
#ifndef SONDE_SINK_FILE_H
#define SONDE_SINK_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/sink.h"

struct sink_file;

/* An existing file is refused unless `replace`. */
int sink_file_new(const char *path, bool replace, struct sink_file **out, struct error *err);
struct sink *sink_file_sink(struct sink_file *f);
/* Called with the bytes written so far; `size` is always 0. */
void sink_file_watch(struct sink_file *f,
                     void (*progress)(void *context, uint64_t done, uint64_t size), void *context);
/* Did the reader of standard output go away? Then a failure is nobody's fault. */
bool sink_file_abandoned(const struct sink_file *f);
/* Frees. With `keep`, and if all bytes got there, the file gets its name; else nothing is left. */
int sink_file_free(struct sink_file *f, bool keep, struct error *err);

#endif
