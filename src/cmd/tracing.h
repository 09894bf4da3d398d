/* The options of `run` that say what is traced, and what they mean to a session. */
#ifndef SONDE_TRACING_OPTIONS_H
#define SONDE_TRACING_OPTIONS_H

#include "base/text.h"
#include "capture/agents.h"
#include "capture/session.h"
#include "cmd/option.h"

struct tracing_options {
    bool calls, builtins;
    uint64_t entries, depth, min;
    bool all;
    struct option_list only, skip, lines;
    bool line_memory, rss;
};

/* What a session needs of them, for as long as it runs. */
struct tracing {
    struct agents_trace trace;
    struct text only, skip, lines;
};

#define TRACING_DEFAULTS                                                                           \
    {                                                                                              \
        .entries = 1000000, .builtins = true                                                       \
    }

#define TRACING_OPTIONS(type, at)                                                                  \
    {"trace", 0, OPTION_FLAG_AT(type, at.calls), .group = "Tracing",                               \
     .help = "Every call and return of Python, C functions too, and of programs built with "       \
             "-finstrument-functions, with its time."},                                            \
        {"trace-c",                                                                                \
         0,                                                                                        \
         OPTION_FLAG_AT(type, at.builtins),                                                        \
         .negatable = true,                                                                        \
         .group = "Tracing",                                                                       \
         .help = "C functions that Python calls, too; without them tracing costs much less."},     \
        {"trace-entries",                                                                          \
         0,                                                                                        \
         OPTION_UNSIGNED_AT(type, at.entries),                                                     \
         .placeholder = "N",                                                                       \
         .min = 1000,                                                                              \
         .max = 1ull << 40,                                                                        \
         .group = "Tracing",                                                                       \
         .help = "Keep the latest N calls of each process for the timeline; sums are of all "      \
                 "calls in any case."},                                                            \
        {"trace-all", 0, OPTION_FLAG_AT(type, at.all), .group = "Tracing",                         \
         .help = "Keep every call for the timeline, on disk."},                                    \
        {"trace-min",                                                                              \
         0,                                                                                        \
         OPTION_DURATION_AT(type, at.min),                                                         \
         .placeholder = "TIME",                                                                    \
         .group = "Tracing",                                                                       \
         .help = "Leave calls that are shorter and call nothing longer out of the timeline."},     \
        {"trace-depth",                                                                            \
         0,                                                                                        \
         OPTION_UNSIGNED_AT(type, at.depth),                                                       \
         .placeholder = "N",                                                                       \
         .max = 1 << 20,                                                                           \
         .group = "Tracing",                                                                       \
         .default_text = "no limit",                                                               \
         .help = "Only the N outermost calls of each thread."},                                    \
        {"trace-only",                                                                             \
         0,                                                                                        \
         OPTION_LIST_AT(type, at.only),                                                            \
         .placeholder = "PATTERN",                                                                 \
         .group = "Tracing",                                                                       \
         .help = "Only functions of files that match, such as '*/app/*' or 'views.py'; several "   \
                 "separated by commas."},                                                          \
        {"trace-skip",                                                                             \
         0,                                                                                        \
         OPTION_LIST_AT(type, at.skip),                                                            \
         .placeholder = "PATTERN",                                                                 \
         .group = "Tracing",                                                                       \
         .help = "No functions of files that match."},                                             \
        {"lines",                                                                                  \
         0,                                                                                        \
         OPTION_LIST_AT(type, at.lines),                                                           \
         .placeholder = "MODULE:FUNCTION",                                                         \
         .group = "Tracing",                                                                       \
         .help = "Count and time each line of these Python functions; '*' and '?' stand for "      \
                 "other characters, '@profile' for functions so decorated."},                      \
        {"rss", 0, OPTION_FLAG_AT(type, at.rss), .group = "Tracing",                               \
         .help = "With --lines: how resident memory grows at each line. Costs a system call or "   \
                 "three a line."},                                                                 \
    {                                                                                              \
        "line-memory", 0, OPTION_FLAG_AT(type, at.line_memory),                                    \
            .group = "Tracing",                                                                    \
            .help = "With --lines: what each line allocates and frees as well."                    \
    }

/* Fills `t` and the session; tracing_release when the session is over. */
int tracing_apply(const struct tracing_options *o, struct tracing *t,
                  struct session_options *session, struct error *err);
void tracing_release(struct tracing *t);

#endif
