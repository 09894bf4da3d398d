/*
 * What a program can mark in its own recording: spans, instants and counters, on the timeline of
 * the thread that says so. As with sonde.h nothing has to be linked; where sonde's library is not
 * in the process, each is a test of a pointer.
 *
 *     SONDE_SPAN_BEGIN("load");   ...   SONDE_SPAN_END("load");
 *     SONDE_MARK("ready");
 *     SONDE_COUNTER("queue", length);
 *
 * Names are copied, at most 1,024 bytes. Spans of a thread lie in one another; one that ends ends
 * those within it. From any thread, not from signal handlers.
 */
#ifndef SONDE_SPANS_H
#define SONDE_SPANS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int sonde_is_traced(void) __attribute__((weak, visibility("default")));
void sonde_span_begin(const char *name) __attribute__((weak, visibility("default")));
void sonde_span_end(const char *name) __attribute__((weak, visibility("default")));
void sonde_mark(const char *name) __attribute__((weak, visibility("default")));
void sonde_counter(const char *name, int64_t value) __attribute__((weak, visibility("default")));

#define SONDE_IS_TRACED() (sonde_is_traced ? sonde_is_traced() : 0)
#define SONDE_SPAN_BEGIN(name) (sonde_span_begin ? sonde_span_begin(name) : (void)0)
#define SONDE_SPAN_END(name) (sonde_span_end ? sonde_span_end(name) : (void)0)
#define SONDE_MARK(name) (sonde_mark ? sonde_mark(name) : (void)0)
#define SONDE_COUNTER(name, value) (sonde_counter ? sonde_counter(name, value) : (void)0)

#ifdef __cplusplus
}
#endif

#endif
