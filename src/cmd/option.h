/*
 * Options of a command, declared as a table ended by {0}:
 *
 *     struct run_options { uint64_t rate; bool follow; const char *output; };
 *     static const struct option options[] = {
 *         {"rate", 'r', OPTION_UNSIGNED_AT(struct run_options, rate), .placeholder = "HZ",
 *          .min = 1, .max = 4000, .help = "Samples a second and CPU."},
 *         {"follow", 0, OPTION_FLAG_AT(struct run_options, follow), .negatable = true,
 *          .help = "Follow forks."},
 *         {0}};
 *
 * Names are those of the command line (--rate) and of sonde.conf (rate = 99).
 * The _AT macros refuse a field of the wrong type at compile time.
 */
#ifndef SONDE_OPTION_H
#define SONDE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"

enum option_kind {
    OPTION_FLAG,     /* bool */
    OPTION_UNSIGNED, /* uint64_t; with .suffix also 10k, 2M, 1G (decimal) */
    OPTION_DOUBLE,   /* double */
    OPTION_PERCENT,  /* double, "1%" or "1", kept as 1.0 */
    OPTION_DURATION, /* uint64_t nanoseconds: 500ms, 10s, 2m, 1.5h; a bare number is seconds */
    OPTION_SIZE,     /* uint64_t bytes: 512K, 64M, 1G (powers of 1024); a bare number is bytes */
    OPTION_TEXT,     /* const char *, as given */
    OPTION_LIST,     /* struct option_list: may be given several times */
    OPTION_CHOICE,   /* int or enum: index into .choices */
};

struct option_list {
    const char **data;
    size_t len, cap;
};

struct option {
    const char *name;
    char letter; /* 0: none; 'h' is --help everywhere */
    enum option_kind kind;
    size_t offset;              /* into the command's options struct */
    const char *placeholder;    /* "HZ"; FILE and DIR make the shell complete file names */
    const char *help;           /* a sentence or two; default and range are added when shown */
    const char *group;          /* heading; NULL: "Options" */
    const char *default_text;   /* shown in place of the default value ("all", "automatic") */
    bool negatable;             /* flag: --no-NAME too */
    bool suffix;                /* unsigned: k, M, G allowed */
    uint64_t min, max;          /* unsigned, duration, size; max 0: no bound */
    double low, high;           /* double, percent; both 0: no bounds */
    const char *const *choices; /* ended by NULL */
    const char *alone; /* its value when none is glued to it (--NAME), never a word apart */
};

/* sizeof(char[1]) where the field has the wanted type, a compile error elsewhere. */
#define OPTION_OFFSET(type, field, wanted)                                                         \
    (offsetof(type, field) + 0 * sizeof(char[_Generic(((type *)0)->field, wanted : 1)]))

#define OPTION_FLAG_AT(type, field) OPTION_FLAG, OPTION_OFFSET(type, field, bool)
#define OPTION_UNSIGNED_AT(type, field) OPTION_UNSIGNED, OPTION_OFFSET(type, field, uint64_t)
#define OPTION_DOUBLE_AT(type, field) OPTION_DOUBLE, OPTION_OFFSET(type, field, double)
#define OPTION_PERCENT_AT(type, field) OPTION_PERCENT, OPTION_OFFSET(type, field, double)
#define OPTION_DURATION_AT(type, field) OPTION_DURATION, OPTION_OFFSET(type, field, uint64_t)
#define OPTION_SIZE_AT(type, field) OPTION_SIZE, OPTION_OFFSET(type, field, uint64_t)
#define OPTION_TEXT_AT(type, field) OPTION_TEXT, OPTION_OFFSET(type, field, const char *)
#define OPTION_LIST_AT(type, field) OPTION_LIST, OPTION_OFFSET(type, field, struct option_list)
#define OPTION_CHOICE_AT(type, field)                                                              \
    OPTION_CHOICE, offsetof(type, field) +                                                         \
                       0 * sizeof(char[_Generic(((type *)0)->field, int : 1, unsigned : 1)])

enum option_source { OPTION_UNSET, OPTION_FROM_CONF, OPTION_FROM_LINE };

/* The options of one invocation: table, values and where each value came from. */
struct option_set {
    const struct option *options; /* may be NULL */
    void *values;                 /* not owned */
    enum option_source *source;   /* by index */
    bool ended;                   /* by "--" */
    struct arena arena;           /* holds what sonde.conf said */
};

void option_set_init(struct option_set *set, const struct option *options, void *values);
void option_set_release(struct option_set *set); /* also the lists in the values */

/* The option of that name, or NULL; `len` bytes of `name` count. */
const struct option *option_find(const struct option *options, const char *name, size_t len);
bool option_given(const struct option_set *set, const char *name);

/*
 * Parses argv[0..argc): options are stored, operands moved to the front in their order and counted
 * in *operands. `--` ends the options, as does the first operand if `operands_end`. *help is set,
 * and parsing ends, at --help or -h. A fault names the offending word and what is allowed.
 */
int option_parse(struct option_set *set, int argc, char **argv, bool operands_end, int *operands,
                 bool *help, struct error *err);

/* Stores what sonde.conf says of `o`; flags take yes/no, on/off, true/false, 1/0. */
int option_configure(struct option_set *set, const struct option *o, const char *value,
                     struct error *err);

/* "a whole number from 1 to 4000": what a value of `o` may be. */
void option_describe(const struct option *o, struct text *out);
/* The default of `o` in `defaults`, as it would be typed; nothing if there is none to speak of. */
void option_default(const struct option *o, const void *defaults, struct text *out);

#endif
