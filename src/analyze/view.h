/*
 * A view: what analyze/ says about a profile, in a form that every reader
 * understands. It is a list of sections; each holds facts, a table, notes, or
 * commands to type next. render/ writes it for a terminal, as JSON (which the page and the HTTP
 * API read too) or as CSV; nobody formats numbers before that.
 *
 * Everything in a view is its own: texts are copied, the profile may go away. Texts are
 * as they came from outside; the writers make them safe. Owned by one thread at a time.
 */
#ifndef SONDE_VIEW_H
#define SONDE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/vector.h"
#include "profile/profile.h"

enum view_kind {
    VIEW_TEXT,
    VIEW_NUMBER,   /* names something: a pid, a line; no thousands separators */
    VIEW_COUNT,    /* how many */
    VIEW_DURATION, /* ns */
    VIEW_BYTES,
    VIEW_PERCENT,
    VIEW_DATE, /* ns since 1970 */
    VIEW_REAL, /* a ratio or a measure; in `percent` */
};

/* Which member counts is said by the kind of the column or fact. */
struct view_value {
    bool known; /* false: "-" on a terminal, null in JSON, nothing in CSV */
    bool faint; /* of a change: chance may have made it, so it gets no colour */
    union {
        const char *text;
        uint64_t number;
        double percent;
        int64_t change; /* in a column of changes, but for percentages */
    };
};

/* Where a text that is too long gives way. */
enum view_cut { VIEW_CUT_MIDDLE, VIEW_CUT_END, VIEW_CUT_START };

struct view_column {
    const char *id;      /* for machines: "self_percent" */
    const char *heading; /* for people: "self %" */
    enum view_kind kind;
    /* Narrowest terminal that shows it; VIEW_MACHINES keeps it to JSON and CSV. */
    unsigned from_width;
    bool bar;    /* a percentage that wide terminals also draw */
    bool change; /* has a sign: more is worse. Not for texts, numbers and dates */
    bool fill;   /* takes the width that is left; without one, the first text does */
    enum view_cut cut;
};

#define VIEW_MACHINES UINT32_MAX

enum view_emphasis {
    VIEW_PLAIN,
    VIEW_STRONG, /* what the table is about */
    VIEW_REST,   /* stands for rows that are not shown */
};

struct view_row {
    unsigned depth; /* in a tree; 0 elsewhere */
    enum view_emphasis emphasis;
};

/*
 * One fact. On a terminal, facts with the same `line` share a line that starts with it:
 * `before`, value and `after` of each, with " · " between facts unless `glued`.
 */
struct view_fact {
    struct view_column as; /* id, heading, kind */
    struct view_value value;
    const char *line;
    const char *before, *after;
    bool glued;
    bool hidden; /* for machines alone */
};

struct view_note {
    enum note_level level;
    const char *text;
};

struct view_command {
    const char *line; /* as typed, quoted for a shell where needed */
    const char *meaning;
};

enum view_section_kind { VIEW_FACTS, VIEW_TABLE, VIEW_NOTES, VIEW_COMMANDS };

struct view_section {
    enum view_section_kind kind;
    const char *id;
    const char *title; /* stands in place of the first column's heading; may be "" */
    bool hidden;       /* for machines alone */
    struct arena *arena;
    VECTOR(struct view_fact) facts;
    struct view_column *columns;
    size_t column_count;
    bool tree; /* rows have depths */
    VECTOR(struct view_row) rows;
    VECTOR(struct view_value) cells; /* row by row */
    uint64_t omitted;                /* rows that a limit left out */
    VECTOR(struct view_note) notes;
    VECTOR(struct view_command) commands;
};

struct view {
    struct arena arena;
    const char *id;
    const char *title;
    const char *main;                       /* id of the table that CSV writes */
    VECTOR(struct view_section *) sections; /* stable addresses */
};

void view_init(struct view *v, const char *id, const char *title, const char *main);
void view_release(struct view *v);

struct view_section *view_add(struct view *v, enum view_section_kind kind, const char *id,
                              const char *title);
struct view_section *view_add_table(struct view *v, const char *id, const char *title,
                                    const struct view_column *columns, size_t count);
/* A new last row, all values unknown; holds until the next row. */
struct view_value *view_row(struct view_section *s, unsigned depth, enum view_emphasis emphasis);
/* The fact may be amended through the pointer until the next one. */
struct view_fact *view_fact(struct view_section *s, const char *line, const char *id,
                            const char *heading, enum view_kind kind, struct view_value value);
void view_note(struct view_section *s, enum note_level level, const char *text);
void view_command(struct view_section *s, const char *line, const char *meaning);

struct view_value view_text(struct view_section *s, const char *text); /* copies */
struct view_value view_number(uint64_t number);
struct view_value view_change(int64_t change);
struct view_value view_percent(uint64_t part, uint64_t whole); /* 0 of 0 is 0 */
struct view_value view_real(double value); /* for percentages too; unknown if not finite */
/* The same, unknown if 0. */
struct view_value view_nonzero(uint64_t number);

const struct view_section *view_find(const struct view *v, const char *id); /* or NULL */
const struct view_value *view_cell(const struct view_section *s, size_t row, const char *column);

/* The kind that shows values of that unit. */
enum view_kind view_kind_of(enum value_unit unit);
const char *view_kind_name(enum view_kind kind); /* "duration" ... as JSON says it */

#endif
