/* What `run` and `attach` have in common: options of a recording, progress, closing words. */
#ifndef SONDE_RECORD_COMMANDS_H
#define SONDE_RECORD_COMMANDS_H

#include "capture/resident.h"
#include "capture/session.h"
#include "cmd/option.h"

struct record_options {
    const char *output, *html;
    struct option_list events;
    uint64_t rate, duration;
    double budget;
    bool force, wall, kernel, symbols, debuginfod, quiet, gil, waiting, native, samples;
    uint64_t rss_rate;
    bool live;
    const char *live_bind, *redis;
    uint64_t live_port, live_linger, interval, limit;
};

#define RECORD_DEFAULTS                                                                            \
    {                                                                                              \
        .rate = 499, .kernel = true, .symbols = true, .native = true, .samples = true,             \
        .rss_rate = RESIDENT_UNASKED, .interval = 20000000000ull, .limit = 20                      \
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
        {"budget",                                                                                 \
         0,                                                                                        \
         OPTION_PERCENT_AT(type, at.budget),                                                       \
         .placeholder = "PERCENT",                                                                 \
         .low = 0.01,                                                                              \
         .high = 100,                                                                              \
         .group = "What to record",                                                                \
         .default_text = "none",                                                                   \
         .help = "Keep to this share of the CPU time that the target uses, such as 1%: fewer "     \
                 "samples are taken, of CPU and heap (which is sampled then), as it turns out to " \
                 "need; the report says what was given up."},                                      \
        {"event",                                                                                  \
         'e',                                                                                      \
         OPTION_LIST_AT(type, at.events),                                                          \
         .placeholder = "EVENT",                                                                   \
         .group = "What to record",                                                                \
         .default_text = "cpu",                                                                    \
         .help = "Sample on this event: cpu, cycles, cache-misses, page-faults, a tracepoint; "    \
                 "several separated by commas. With :u or :k one side only, with @N every N-th."}, \
        {"samples",                                                                                \
         0,                                                                                        \
         OPTION_FLAG_AT(type, at.samples),                                                         \
         .negatable = true,                                                                        \
         .group = "What to record",                                                                \
         .help = "Samples of the events; without, only what else is asked for."},                  \
        {"rss-rate",                                                                               \
         0,                                                                                        \
         OPTION_UNSIGNED_AT(type, at.rss_rate),                                                    \
         .placeholder = "HZ",                                                                      \
         .max = 1000,                                                                              \
         .group = "What to record",                                                                \
         .default_text = "often at first, then twice a second",                                    \
         .help = "How often to look at each process's resident memory, page faults and switches, " \
                 "for their curves; 0 for none. With --heap, memory is looked at in any case."},   \
        {"wall", 'w', OPTION_FLAG_AT(type, at.wall), .group = "What to record",                    \
         .help = "Blocked time as well, with the stack that blocks and its cause."},               \
        {"gil", 0, OPTION_FLAG_AT(type, at.gil), .group = "Python",                                \
         .help = "Only threads that hold their interpreter's lock."},                              \
        {"waiting", 0, OPTION_FLAG_AT(type, at.waiting), .group = "Python",                        \
         .help = "As --wall; time that threads wait for the interpreter's lock or a mutex is "     \
                 "charged to the stack of who holds it as well, as the event waited-for."},        \
        {"native",                                                                                 \
         0,                                                                                        \
         OPTION_FLAG_AT(type, at.native),                                                          \
         .negatable = true,                                                                        \
         .group = "Python",                                                                        \
         .help = "Native frames in stacks that have Python ones."},                                \
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
        {"live", 0, OPTION_FLAG_AT(type, at.live), .group = "Live",                                \
         .help =                                                                                   \
             "Serve the page while it records: prints an address on this machine, with a token."}, \
        {"live-port",                                                                              \
         0,                                                                                        \
         OPTION_UNSIGNED_AT(type, at.live_port),                                                   \
         .placeholder = "PORT",                                                                    \
         .max = 65535,                                                                             \
         .group = "Live",                                                                          \
         .default_text = "any that is free",                                                       \
         .help = "With --live: the port."},                                                        \
        {"live-bind",                                                                              \
         0,                                                                                        \
         OPTION_TEXT_AT(type, at.live_bind),                                                       \
         .placeholder = "ADDRESS",                                                                 \
         .group = "Live",                                                                          \
         .default_text = "127.0.0.1",                                                              \
         .help = "With --live: the address to listen at. The token crosses the network as it is: " \
                 "beyond this machine, use it through a tunnel."},                                 \
        {"live-linger",                                                                            \
         0,                                                                                        \
         OPTION_DURATION_AT(type, at.live_linger),                                                 \
         .placeholder = "TIME",                                                                    \
         .group = "Live",                                                                          \
         .default_text = "0",                                                                      \
         .help = "With --live: keep the page this long after the end."},                           \
        {"redis",                                                                                  \
         0,                                                                                        \
         OPTION_TEXT_AT(type, at.redis),                                                           \
         .placeholder = "URL",                                                                     \
         .group = "Live",                                                                          \
         .help = "Publish the top functions to Redis, redis://[:PASSWORD@]HOST[:PORT][/DB], and "  \
                 "take commands from there; see docs/LIVE.md."},                                   \
        {"interval",                                                                               \
         0,                                                                                        \
         OPTION_DURATION_AT(type, at.interval),                                                    \
         .placeholder = "TIME",                                                                    \
         .group = "Live",                                                                          \
         .min = 1000000000,                                                                        \
         .default_text = "20s",                                                                    \
         .help = "With --redis: between two tables."},                                             \
        {"limit",                                                                                  \
         0,                                                                                        \
         OPTION_UNSIGNED_AT(type, at.limit),                                                       \
         .placeholder = "N",                                                                       \
         .group = "Live",                                                                          \
         .min = 1,                                                                                 \
         .max = 10000,                                                                             \
         .help = "With --redis: rows of a table."},                                                \
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
