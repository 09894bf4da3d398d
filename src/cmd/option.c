/* Options from a table; see option.h. */
#include "cmd/option.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/vector.h"
#include "cmd/quantity.h"
#include "cmd/spelling.h"

static size_t option_count(const struct option *options)
{
    size_t n = 0;
    while (options && options[n].name)
        n++;
    return n;
}

void option_set_init(struct option_set *set, const struct option *options, void *values)
{
    *set = (struct option_set){.options = options, .values = values};
    set->source = memory_array(option_count(options) + 1, sizeof *set->source);
}

static void *value_at(const struct option_set *set, const struct option *o)
{
    return (char *)set->values + o->offset;
}

void option_set_release(struct option_set *set)
{
    for (const struct option *o = set->options; o && o->name; o++) {
        struct option_list *list = value_at(set, o);
        if (o->kind == OPTION_LIST)
            vector_release(list);
    }
    free(set->source);
    arena_release(&set->arena);
    *set = (struct option_set){0};
}

const struct option *option_find(const struct option *options, const char *name, size_t len)
{
    for (const struct option *o = options; o && o->name; o++)
        if (strlen(o->name) == len && memcmp(o->name, name, len) == 0)
            return o;
    return NULL;
}

bool option_given(const struct option_set *set, const char *name)
{
    const struct option *o = option_find(set->options, name, strlen(name));
    return o && set->source[o - set->options] != OPTION_UNSET;
}

/* A list on the command line replaces the one of sonde.conf; every other value is overwritten. */
static void note_source(struct option_set *set, const struct option *o, enum option_source from)
{
    enum option_source *source = &set->source[o - set->options];
    struct option_list *list = value_at(set, o);
    if (o->kind == OPTION_LIST && *source != from)
        list->len = 0;
    *source = from;
}

static bool choose(const struct option *o, const char *text, int *index)
{
    for (int i = 0; o->choices[i]; i++) {
        if (strcmp(o->choices[i], text) == 0) {
            *index = i;
            return true;
        }
    }
    return false;
}

static bool store_whole(const struct option *o, const char *text, uint64_t *target)
{
    uint64_t v;
    bool good = o->kind == OPTION_DURATION ? quantity_duration(text, &v)
                : o->kind == OPTION_SIZE   ? quantity_size(text, &v)
                                           : quantity_unsigned(text, o->suffix, &v);
    if (!good || v < o->min || (o->max && v > o->max))
        return false;
    *target = v;
    return true;
}

static bool store_real(const struct option *o, const char *text, double *target)
{
    double v;
    bool good = o->kind == OPTION_PERCENT ? quantity_percent(text, &v) : quantity_double(text, &v);
    bool bounded = o->low != 0 || o->high != 0;
    if (!good || (bounded && (v < o->low || v > o->high)))
        return false;
    *target = v;
    return true;
}

/* False when `text` is not a value that `o` allows; nothing is changed then. */
static bool store(struct option_set *set, const struct option *o, const char *text)
{
    void *target = value_at(set, o);
    struct option_list *list = target;
    switch (o->kind) {
    case OPTION_UNSIGNED:
    case OPTION_DURATION:
    case OPTION_SIZE:
        return store_whole(o, text, target);
    case OPTION_DOUBLE:
    case OPTION_PERCENT:
        return store_real(o, text, target);
    case OPTION_CHOICE:
        return choose(o, text, target);
    case OPTION_TEXT:
        *(const char **)target = text;
        return true;
    case OPTION_LIST:
        *vector_push(list) = text;
        return true;
    case OPTION_FLAG:
        break;
    }
    return false;
}

/* As it is typed: without separators. */
static void add_plain(struct text *out, uint64_t number)
{
    text_format(out, "%llu", (unsigned long long)number);
}

void option_describe(const struct option *o, struct text *out)
{
    static const char *const kinds[] = {
        [OPTION_FLAG] = "yes or no",
        [OPTION_UNSIGNED] = "a whole number",
        [OPTION_DOUBLE] = "a number",
        [OPTION_PERCENT] = "a percentage such as 1%",
        [OPTION_DURATION] = "a duration such as 500ms, 10s or 2m",
        [OPTION_SIZE] = "a size such as 512K, 64M or 1G",
        [OPTION_TEXT] = "a text",
        [OPTION_LIST] = "a text",
        [OPTION_CHOICE] = "one of ",
    };
    text_add(out, kinds[o->kind]);
    if (o->kind == OPTION_UNSIGNED && o->suffix)
        text_add(out, " such as 500 or 10k");
    for (size_t i = 0; o->kind == OPTION_CHOICE && o->choices[i]; i++)
        text_format(out, "%s%s", !i ? "" : o->choices[i + 1] ? ", " : " or ", o->choices[i]);
    struct text low = TEXT_INIT, high = TEXT_INIT;
    if (o->kind == OPTION_DOUBLE || o->kind == OPTION_PERCENT) {
        if (o->low != 0 || o->high != 0) {
            text_format(&low, "%g", o->low);
            text_format(&high, "%g", o->high);
        }
    } else {
        void (*add)(struct text *, uint64_t) = o->kind == OPTION_DURATION ? quantity_add_duration
                                               : o->kind == OPTION_SIZE   ? quantity_add_size
                                                                          : add_plain;
        if (o->min || o->max)
            add(&low, o->min);
        if (o->max)
            add(&high, o->max);
    }
    if (high.len)
        text_format(out, " from %s to %s", low.data, high.data);
    else if (low.len)
        text_format(out, " of at least %s", low.data);
    text_release(&low);
    text_release(&high);
}

void option_default(const struct option *o, const void *defaults, struct text *out)
{
    if (o->default_text) {
        text_add(out, o->default_text);
        return;
    }
    if (!defaults)
        return;
    const void *at = (const char *)defaults + o->offset;
    uint64_t whole = 0;
    double real = 0;
    switch (o->kind) {
    case OPTION_UNSIGNED:
    case OPTION_DURATION:
    case OPTION_SIZE:
        memcpy(&whole, at, sizeof whole);
        if (whole && o->kind == OPTION_UNSIGNED)
            text_format(out, "%llu", (unsigned long long)whole);
        else if (whole && o->kind == OPTION_DURATION)
            quantity_add_duration(out, whole);
        else if (whole)
            quantity_add_size(out, whole);
        break;
    case OPTION_DOUBLE:
    case OPTION_PERCENT:
        memcpy(&real, at, sizeof real);
        if (real != 0)
            text_format(out, o->kind == OPTION_PERCENT ? "%g%%" : "%g", real);
        break;
    case OPTION_TEXT:
        text_add(out, *(const char *const *)at);
        break;
    case OPTION_CHOICE:
        text_add(out, o->choices[*(const int *)at]);
        break;
    case OPTION_FLAG:
        if (*(const bool *)at)
            text_add(out, "yes");
        break;
    case OPTION_LIST:
        break;
    }
}

static int refuse_value(const struct option *o, const char *spelled, const char *value,
                        struct error *err)
{
    struct text allowed = TEXT_INIT;
    option_describe(o, &allowed);
    error_set(err, FAULT_USAGE, "%s takes %s, not '%s'", spelled, allowed.data, value);
    text_release(&allowed);
    return FAULT_USAGE;
}

static bool read_yes_no(const char *text, bool *value)
{
    static const char *const words[] = {"no", "yes", "off", "on", "false", "true", "0", "1"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(text, words[i]) == 0) {
            *value = i % 2;
            return true;
        }
    }
    return false;
}

int option_configure(struct option_set *set, const struct option *o, const char *value,
                     struct error *err)
{
    note_source(set, o, OPTION_FROM_CONF);
    if (o->kind == OPTION_FLAG) {
        if (!read_yes_no(value, value_at(set, o)))
            return refuse_value(o, o->name, value, err);
        return 0;
    }
    if (!store(set, o, arena_strdup(&set->arena, value)))
        return refuse_value(o, o->name, value, err);
    return 0;
}

/* The words that are left on the command line. */
struct line {
    char **next;
    char **end;
};

static int refuse_unknown(const struct option_set *set, const char *word, size_t len,
                          struct error *err)
{
    char *name = memory_strndup(word, len);
    struct spelling spelling;
    spelling_init(&spelling, name + 2);
    spelling_offer(&spelling, "help");
    for (const struct option *o = set->options; o && o->name; o++)
        spelling_offer(&spelling, o->name);
    const char *nearest = spelling_nearest(&spelling);
    if (nearest)
        error_set(err, FAULT_USAGE, "unknown option '%s'; did you mean --%s?", name, nearest);
    else
        error_set(err, FAULT_USAGE, "unknown option '%s'; --help lists those there are", name);
    free(name);
    return FAULT_USAGE;
}

/* Stores an option that takes a value: `glued` if it came with the option, else the next word. */
static int take_value(struct option_set *set, const struct option *o, const char *spelled,
                      const char *glued, struct line *line, struct error *err)
{
    if (!glued && line->next == line->end) {
        struct text allowed = TEXT_INIT;
        option_describe(o, &allowed);
        error_set(err, FAULT_USAGE, "%s needs a value: %s", spelled, allowed.data);
        text_release(&allowed);
        return FAULT_USAGE;
    }
    const char *value = glued ? glued : *line->next++;
    note_source(set, o, OPTION_FROM_LINE);
    return store(set, o, value) ? 0 : refuse_value(o, spelled, value, err);
}

static void take_flag(struct option_set *set, const struct option *o, bool on)
{
    note_source(set, o, OPTION_FROM_LINE);
    *(bool *)value_at(set, o) = on;
}

static int parse_long(struct option_set *set, const char *word, struct line *line, bool *help,
                      struct error *err)
{
    const char *name = word + 2;
    size_t len = strcspn(name, "=");
    const char *glued = name[len] ? name + len + 1 : NULL;
    const struct option *o = option_find(set->options, name, len);
    bool on = true;
    if (!o && len > 3 && memcmp(name, "no-", 3) == 0) {
        o = option_find(set->options, name + 3, len - 3);
        on = false;
        if (o && (o->kind != OPTION_FLAG || !o->negatable))
            o = NULL;
    }
    if (!o && len == 4 && memcmp(name, "help", 4) == 0) {
        *help = true;
        return 0;
    }
    if (!o)
        return refuse_unknown(set, word, len + 2, err);
    if (o->kind == OPTION_FLAG) {
        /* --native=no is --no-native. */
        if (glued && !(on && o->negatable && read_yes_no(glued, &on)))
            return error_set(err, FAULT_USAGE, "--%s is a switch and takes no value, not '%s'",
                             o->name, glued);
        take_flag(set, o, on);
        return 0;
    }
    char spelled[80];
    snprintf(spelled, sizeof spelled, "--%s", o->name);
    return take_value(set, o, spelled, glued ? glued : o->alone, line, err);
}

/* -a, -ab (two switches), -r99 and -r 99. */
static int parse_letters(struct option_set *set, const char *word, struct line *line, bool *help,
                         struct error *err)
{
    for (const char *p = word + 1; *p; p++) {
        const struct option *o = set->options;
        while (o && o->name && o->letter != *p)
            o++;
        if ((!o || !o->name) && *p == 'h') {
            *help = true;
            return 0;
        }
        if (!o || !o->name)
            return error_set(err, FAULT_USAGE,
                             "unknown option '-%c' in '%s'; --help lists those "
                             "there are",
                             *p, word);
        if (o->kind != OPTION_FLAG) {
            char spelled[3] = {'-', *p, 0};
            return take_value(set, o, spelled, p[1] ? p + 1 : NULL, line, err);
        }
        take_flag(set, o, true);
    }
    return 0;
}

int option_parse(struct option_set *set, int argc, char **argv, bool operands_end, int *operands,
                 bool *help, struct error *err)
{
    struct line line = {.next = argv, .end = argv + argc};
    int kept = 0, result = 0;
    *help = false;
    while (line.next < line.end && !*help && !result) {
        char *word = *line.next++;
        if (word[0] != '-' || !word[1]) { /* "-" is an operand: standard input or output */
            argv[kept++] = word;
            if (operands_end)
                break;
        } else if (strcmp(word, "--") == 0) {
            set->ended = true;
            break;
        } else if (word[1] == '-') {
            result = parse_long(set, word, &line, help, err);
        } else {
            result = parse_letters(set, word, &line, help, err);
        }
    }
    while (line.next < line.end)
        argv[kept++] = *line.next++;
    *operands = kept;
    return result;
}
