/*
 * The options that say which part of a recording a command is about, the same
 * in every command that reads one. A command puts a `struct filter` into its options
 * struct and FILTER_OPTIONS(struct x_options, filter) into its table.
 */
#ifndef SONDE_FILTER_H
#define SONDE_FILTER_H

#include "analyze/selection.h"
#include "cmd/option.h"

struct filter {
    struct option_list events, pids, threads;
    const char *function, *module;
    uint64_t from, to;
    bool inlined, interpreter;
};

#define FILTER_DEFAULTS                                                                            \
    {                                                                                              \
        .inlined = true                                                                            \
    }

/* clang-format off */
#define FILTER_OPTIONS(type, field)                                                                \
    {"event", 'e', OPTION_LIST_AT(type, field.events), .placeholder = "EVENT",                     \
     .group = "Filters", .default_text = "cpu",                                                    \
     .help = "What is counted, by name; wall is cpu and every off-cpu together."},                 \
    {"pid", 'p', OPTION_LIST_AT(type, field.pids), .placeholder = "PID", .group = "Filters",       \
     .help = "Only this process."},                                                                \
    {"thread", 't', OPTION_LIST_AT(type, field.threads), .placeholder = "THREAD",                  \
     .group = "Filters",                                                                           \
     .help = "Only threads with this id or name (*, ? and [] match)."},                             \
    {"function", 'f', OPTION_TEXT_AT(type, field.function), .placeholder = "FUNCTION",             \
     .group = "Filters",                                                                           \
     .help = "Only samples with such a function on the stack: a part of its name, or an extended " \
             "regular expression."},                                                               \
    {"module", 'm', OPTION_TEXT_AT(type, field.module), .placeholder = "MODULE",                   \
     .group = "Filters",                                                                           \
     .help = "Only samples with code of such a module on the stack."},                             \
    {"from", 0, OPTION_DURATION_AT(type, field.from), .placeholder = "TIME", .group = "Filters",   \
     .default_text = "the start", .help = "Only samples this long after the start or later."},     \
    {"to", 0, OPTION_DURATION_AT(type, field.to), .placeholder = "TIME", .group = "Filters",       \
     .default_text = "the end", .help = "Only samples before this time after the start."},         \
    {"inline", 0, OPTION_FLAG_AT(type, field.inlined), .negatable = true, .group = "Filters",      \
     .help = "Count inlined functions as functions of their own."},                                \
    {"interpreter", 0, OPTION_FLAG_AT(type, field.interpreter), .group = "Filters",                \
     .help = "Show what leads from one Python function to the next inside the interpreter."}
/* clang-format on */

/* What must hold before a recording is read. */
int filter_check(const struct filter *f, struct error *err);
/* The part of `p` that was asked for; the caller releases `s` if this succeeds. Times are not its
 * business: give `from` and `to` to the loader. */
int filter_select(const struct filter *f, const struct profile *p, struct selection *s,
                  struct error *err);

#endif
