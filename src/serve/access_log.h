/* A line of JSON for each answer, for machines that gather logs. */
#ifndef SONDE_SERVE_ACCESS_LOG_H
#define SONDE_SERVE_ACCESS_LOG_H

#include "serve/http.h"

/* {"time": "2026-01-31T14:25:01.123Z", "peer": ..., "method": ..., "path": ..., "status": 200,
 *  "bytes": 12, "ms": 0.4, "role": "read"} and a line feed. No token is ever in it. */
void access_log_line(const struct http_entry *e, struct text *out);
/* {"time": ..., "level": "error", "message": ...}: what else is worth noting. */
void access_log_message(uint64_t time, const char *level, const char *message, struct text *out);
/* As http_options.log: `context` is an int *, the descriptor to write to. */
void access_log_to_fd(void *context, const struct http_entry *e);

#endif
