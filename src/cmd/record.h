/* What `run` and `attach` have in common: options of a recording, progress, closing words. */
#ifndef SONDE_RECORD_COMMANDS_H
#define SONDE_RECORD_COMMANDS_H

#include "capture/session.h"
#include "cmd/option.h"

struct record_options {
    const char *output, *html;
    struct option_list events;
    uint64_t rate, duration;
    bool force, wall, kernel, symbols, debuginfod, quiet;
};

#define RECORD_DEFAULTS                                                                            \
    {                                                                                              \
        .rate = 499, .kernel = true, .symbols = true                                               \
    }

#define RECORD_OPTIONS(type, at)                                                                   \
    {"output",                                                                                     \
     'o',                                                                                          \
     OPTION_TEXT_AT(type, at.output),                                                              \
     .placeholder = "FILE",                                                                        \
     .default_text = "a name from command and time",                                               \
     .help = "The recording to write."},                                                           \
        {"force", 'f', OPTION_FLAG_AT(type, at.force), .help = "Replace the file if it exists."},  \
        {"duration",                                                                               \
         'd',                                                                                      \
         OPTION_DURATION_AT(type, at.duration),                                                    \
         .placeholder = "TIME",                                                                    \
         .default_text = "until the end",                                                          \
         .help = "Stop recording after this long; what is recorded runs on."},                     \
        {"html", 0, OPTION_TEXT_AT(type, at.html), .placeholder = "FILE",                          \
         .help = "Write a page of the recording too, as sonde graph --kind page does."},           \
        {"quiet", 'q', OPTION_FLAG_AT(type, at.quiet), .help = "No progress, no closing words."},  \
        {"rate",                                                                                   \
         'r',                                                                                      \
         OPTION_UNSIGNED_AT(type, at.rate),                                                        \
         .placeholder = "HZ",                                                                      \
         .min = 1,                                                                                 \
         .max = 10000,                                                                             \
         .group = "What to record",                                                                \
         .help = "Samples a second of CPU time."},                                                 \
        {"event",                                                                                  \
         'e',                                                                                      \
         OPTION_LIST_AT(type, at.events),                                                          \
         .placeholder = "EVENT",                                                                   \
         .group = "What to record",                                                                \
         .default_text = "cpu",                                                                    \
         .help = "Sample on this event: cpu, cycles, cache-misses, page-faults, a tracepoint; "    \
                 "several separated by commas. With :u or :k one side only, with @N every N-th."}, \
        {"wall", 'w', OPTION_FLAG_AT(type, at.wall), .group = "What to record",                    \
         .help = "Blocked time as well, with the stack that blocks and its cause."},               \
        {"kernel",                                                                                 \
         0,                                                                                        \
         OPTION_FLAG_AT(type, at.kernel),                                                          \
         .negatable = true,                                                                        \
         .group = "What to record",                                                                \
         .help = "Kernel time and frames, where permitted."},                                      \
        {"symbols",                                                                                \
         0,                                                                                        \
         OPTION_FLAG_AT(type, at.symbols),                                                         \
         .negatable = true,                                                                        \
         .group = "What to record",                                                                \
         .help = "Put names and lines into the recording; see sonde symbolize for later."},        \
    {                                                                                              \
        "debuginfod", 0, OPTION_FLAG_AT(type, at.debuginfod),                                      \
            .group = "What to record",                                                             \
            .help = "Ask the servers in DEBUGINFOD_URLS for debug information."                    \
    }

/* Records with these options; `session` holds what to start or attach to. `name` makes the default
 * file name. Says on stderr how it goes, and where the recording is. */
int record(const struct record_options *o, struct session_options *session, const char *name,
           struct session_result *result, struct error *err);

#endif
