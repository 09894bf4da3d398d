/*
 * Callgrind's output format: lines of costs, each after lines that say for which file, function
 * and object. Names are written once and by number after that; positions may be relative.
 *
 *     events: Ir
 *     fn=(1) main
 *     16 400          line 16 itself
 *     cfn=(2) func
 *     calls=1 50      the next line is what that call cost in all
 *     16 700
 */
#include "formats/callgrind_read.h"

#include <stdlib.h>
#include <string.h>

#include "formats/callgrind_internal.h"

#define POSITIONS_MAX 4

/* Files share one set of numbers, objects and functions have their own. */
enum naming { NAME_FILE, NAME_OBJECT, NAME_FUNCTION, NAMINGS };

struct reader {
    struct callgrind c;
    struct map names[NAMINGS]; /* number -> string */
    uint32_t file, object, function;
    uint32_t line_file; /* that lines are of: another one than `file` where code was inlined */
    uint32_t callee_file, callee_object, callee_function; /* strings */
    bool calls;                                           /* the next line is a call's */
    size_t positions, line_at;
    uint64_t position[POSITIONS_MAX];
    uint64_t number;  /* of the line, for sentences */
    uint64_t own;     /* costs of the first event in all, calls left out */
    uint64_t summary; /* what the file says before them that they are, */
    uint64_t totals;  /* and what it says behind them */
    unsigned parts, totals_lines;
    bool closes; /* its writer is one that ends every part with its totals */
};

static int bad(const struct reader *r, struct error *err, const char *why)
{
    return source_bad(r->c.im.source, source_offset(r->c.im.source), err, "line %llu: %s",
                      (unsigned long long)r->number, why);
}

/* "(3) name", "(3)" or "name". */
static int take_name(struct reader *r, enum naming kind, const char *text, uint32_t *out,
                     struct error *err)
{
    char *end;
    text += strspn(text, " \t");
    if (*text != '(' || text[1] < '0' || text[1] > '9') {
        *out = import_string(&r->c.im, text, strlen(text));
        return 0;
    }
    uint64_t number = strtoull(text + 1, &end, 10);
    if (*end != ')') { /* a name that begins so */
        *out = import_string(&r->c.im, text, strlen(text));
        return 0;
    }
    end += 1 + strspn(end + 1, " \t");
    if (*end) {
        *out = import_string(&r->c.im, end, strlen(end));
        *map_put(&r->names[kind], number, 0, *out, NULL) = *out;
        return 0;
    }
    const uint64_t *known = map_get(&r->names[kind], number, 0);
    if (!known)
        return bad(r, err, "a number stands for a name that was not given");
    *out = (uint32_t)*known;
    return 0;
}

static int find_function(struct reader *r, uint32_t name, uint32_t file, uint32_t object,
                         uint32_t *out, struct error *err)
{
    bool added;
    uint64_t *known = map_put(&r->c.index, name, object, r->c.functions.len, &added);
    if (added && r->c.functions.len >= CALLGRIND_ENTRIES_MAX)
        return import_too_many(&r->c.im, "functions", CALLGRIND_ENTRIES_MAX, err);
    if (added)
        *vector_push(&r->c.functions) = (struct callgrind_function){name, file, object};
    *out = (uint32_t)*known;
    return 0;
}

static int take_events(struct reader *r, char *text, struct error *err)
{
    char *save = NULL;
    r->parts++;
    if (r->c.event_count)
        return 0; /* of another part of the file */
    for (char *word = strtok_r(text, " \t", &save); word; word = strtok_r(NULL, " \t", &save)) {
        bool ns = !strcmp(word, "ns"), bytes = !strcmp(word, "bytes");
        if (r->c.event_count == CALLGRIND_EVENTS_MAX)
            return bad(r, err, "there are too many events");
        uint32_t event = import_event(&r->c.im,
                                      ns      ? "cpu"
                                      : bytes ? "inuse_space"
                                              : word,
                                      ns      ? UNIT_NANOSECONDS
                                      : bytes ? UNIT_BYTES
                                              : UNIT_COUNT,
                                      0);
        if (event == PROFILE_NONE)
            return import_too_many(&r->c.im, "events", IMPORT_EVENTS_MAX, err);
        r->c.events[r->c.event_count++] = event;
    }
    return 0;
}

static int take_header(struct reader *r, char *line, bool *header, struct error *err)
{
    char *colon = strchr(line, ':');
    size_t key = colon ? (size_t)(colon - line) : 0;
    *header = colon && strspn(line, "abcdefghijklmnopqrstuvwxyz") == key && key;
    if (!*header)
        return 0;
    char *value = colon + 1 + strspn(colon + 1, " \t");
    if (!strncmp(line, "events", key) && key == 6)
        return take_events(r, value, err);
    if (!strncmp(line, "summary", key) && key == 7)
        r->summary += strtoull(value, NULL, 10);
    if (!strncmp(line, "totals", key) && key == 6) {
        r->totals += strtoull(value, NULL, 10);
        r->totals_lines++;
    }
    if (!strncmp(line, "creator", key) && key == 7)
        r->closes = text_starts(value, "callgrind-") || text_starts(value, "sonde");
    if (!strncmp(line, "pid", key) && key == 3)
        r->c.pid = (int32_t)(strtoul(value, NULL, 10) & INT32_MAX);
    if (!strncmp(line, "cmd", key) && key == 3)
        profile_meta_set(r->c.im.profile, "command", value);
    if (!strncmp(line, "positions", key) && key == 9) {
        r->positions = (strstr(value, "instr") != NULL) + (strstr(value, "line") != NULL);
        r->line_at = strstr(value, "line") ? r->positions - 1 : SIZE_MAX;
        if (!r->positions)
            return bad(r, err, "positions are neither lines nor instructions");
    }
    return 0;
}

/* "fn=..." and the like; *known says whether the line was one. */
static int take_assignment(struct reader *r, char *line, bool *known, struct error *err)
{
    char *equals = strchr(line, '=');
    size_t key = equals ? (size_t)(equals - line) : 0;
    static const struct {
        const char *key;
        enum naming kind;
        size_t into;
    } all[] = {
        {"fl", NAME_FILE, offsetof(struct reader, file)},
        {"fi", NAME_FILE, offsetof(struct reader, line_file)},
        {"fe", NAME_FILE, offsetof(struct reader, line_file)},
        {"ob", NAME_OBJECT, offsetof(struct reader, object)},
        {"cfi", NAME_FILE, offsetof(struct reader, callee_file)},
        {"cfl", NAME_FILE, offsetof(struct reader, callee_file)},
        {"cob", NAME_OBJECT, offsetof(struct reader, callee_object)},
        {"cfn", NAME_FUNCTION, offsetof(struct reader, callee_function)},
        {"fn", NAME_FUNCTION, SIZE_MAX},
    };
    *known = true;
    for (size_t i = 0; key && i < sizeof all / sizeof *all; i++) {
        uint32_t name = 0;
        if (strlen(all[i].key) != key || strncmp(line, all[i].key, key))
            continue;
        int rc = take_name(r, all[i].kind, equals + 1, &name, err);
        if (!rc && all[i].into != SIZE_MAX)
            memcpy((char *)r + all[i].into, &name, sizeof name);
        if (all[i].key[0] == 'f' && all[i].key[1] != 'i' && all[i].key[1] != 'e')
            r->line_file = r->file;
        if (!rc && !strcmp(all[i].key, "fn"))
            rc = find_function(r, name, r->file, r->object, &r->function, err);
        return rc;
    }
    r->calls |= key == 5 && !strncmp(line, "calls", 5);
    *known = key &&
             (!strncmp(line, "calls=", 6) || !strncmp(line, "jump=", 5) ||
              !strncmp(line, "jcnd=", 5) || !strncmp(line, "jfi=", 4) || !strncmp(line, "jfn=", 4));
    return 0;
}

static int entry_of(struct reader *r, uint32_t callee, uint32_t line, size_t *values,
                    struct error *err)
{
    bool added;
    uint64_t key = (uint64_t)r->function << 32 | callee;
    uint64_t *known = map_put(&r->c.entry_index, key, (uint64_t)r->line_file << 32 | line,
                              r->c.entries.len, &added);
    if (added) {
        if (r->c.entries.len >= CALLGRIND_ENTRIES_MAX)
            return import_too_many(&r->c.im, "lines with costs", CALLGRIND_ENTRIES_MAX, err);
        *vector_push(&r->c.entries) =
            (struct callgrind_entry){r->function, line, callee, r->line_file, r->c.values.len};
        for (size_t i = 0; i < r->c.event_count; i++)
            *vector_push(&r->c.values) = 0;
    }
    *values = r->c.entries.data[*known].values;
    return 0;
}

static int take_positions(struct reader *r, char **at, struct error *err)
{
    for (size_t i = 0; i < r->positions; i++) {
        char *word = *at + strspn(*at, " \t"), *end;
        uint64_t number = strtoull(word + (*word == '+' || *word == '-' || *word == '*'), &end, 0);
        if (*word == '*')
            end = word + 1;
        else if (end == word || (end == word + 1 && (*word == '+' || *word == '-')))
            return bad(r, err, "a line of costs has no position");
        r->position[i] = *word == '+'   ? r->position[i] + number
                         : *word == '-' ? r->position[i] - number
                         : *word == '*' ? r->position[i]
                                        : number;
        *at = end;
    }
    return 0;
}

static int take_costs(struct reader *r, char *line, struct error *err)
{
    uint32_t callee = PROFILE_NONE;
    size_t values = 0;
    int rc = take_positions(r, &line, err);
    if (rc)
        return rc;
    if (!r->c.event_count || r->function == PROFILE_NONE)
        return bad(r, err, "costs stand before the events or the function they are of");
    if (r->calls) {
        r->calls = false;
        rc = find_function(r, r->callee_function, r->callee_file ? r->callee_file : r->file,
                           r->callee_object ? r->callee_object : r->object, &callee, err);
        r->callee_file = r->callee_object = 0;
    }
    uint64_t at = r->line_at == SIZE_MAX ? 0 : r->position[r->line_at];
    if (!rc)
        rc = entry_of(r, callee, at < UINT32_MAX ? (uint32_t)at : 0, &values, err);
    for (size_t i = 0; i < r->c.event_count && !rc; i++) {
        char *end;
        uint64_t cost = strtoull(line, &end, 10), *sum = &r->c.values.data[values + i];
        if (end == line)
            break; /* those at the end may be left out: they are 0 */
        if (cost > INT64_MAX || __builtin_add_overflow(*sum, cost, sum) || *sum > INT64_MAX)
            rc = bad(r, err, "costs add up to more than 63 bits can hold");
        if (!i && callee == PROFILE_NONE)
            r->own += cost;
        line = end;
    }
    if (!rc && line[strspn(line, " \t")])
        rc = bad(r, err, "there are more costs than events");
    return rc;
}

static int take_line(struct reader *r, char *line, struct error *err)
{
    bool known = false;
    line += strspn(line, " \t");
    if (!*line || *line == '#')
        return 0;
    if (strchr("0123456789+-*", *line))
        return take_costs(r, line, err);
    int rc = take_assignment(r, line, &known, err);
    if (!rc && !known)
        rc = take_header(r, line, &known, err);
    return rc || known ? rc : bad(r, err, "this is no line of a callgrind file");
}

/* Text has no end of its own. Each part may say behind its costs what they add up to (valgrind and
 * we do), or before them, where valgrind leaves out a few that it counts while it writes. */
static void check_end(struct reader *r)
{
    bool ended = r->totals_lines && r->totals_lines >= r->parts;
    uint64_t said = ended ? r->totals : r->summary;
    if (ended ? r->own != said : r->own < said - said / 1000)
        import_damage(
            &r->c.im,
            "%s says that its costs are %llu in all, but %llu are in it: it was cut short, "
            "or parts of it were left out",
            source_name(r->c.im.source), (unsigned long long)said, (unsigned long long)r->own);
    else if (!ended && (r->closes || r->calls))
        import_damage(&r->c.im, "%s ends without %s: it was cut short, and costs are missing",
                      source_name(r->c.im.source),
                      r->calls ? "the cost of its last call" : "its totals");
    else if (!ended)
        import_check_line_end(&r->c.im);
}

int callgrind_read(struct source *in, const struct import_options *options, struct profile *p,
                   struct error *err)
{
    struct reader r = {.function = PROFILE_NONE, .positions = 1};
    char *line;
    size_t len;
    int rc;
    import_init(&r.c.im, p, in, options);
    while ((rc = source_line(in, &line, &len, err)) == 1) {
        r.number++;
        rc = take_line(&r, line, err);
        if (rc)
            break;
    }
    if (!rc && !r.c.event_count)
        rc = bad(&r, err, "no events are named in this file");
    if (!rc)
        rc = callgrind_stacks(&r.c, err);
    if (!rc) {
        check_end(&r);
        import_finish(&r.c.im, "callgrind");
    }
    vector_release(&r.c.functions);
    vector_release(&r.c.entries);
    vector_release(&r.c.values);
    map_release(&r.c.index);
    map_release(&r.c.entry_index);
    for (int i = 0; i < NAMINGS; i++)
        map_release(&r.names[i]);
    import_release(&r.c.im);
    return rc;
}

int callgrind_detect(const uint8_t *bytes, size_t len)
{
    static const char magic[] = "# callgrind format";
    size_t look = len < 4096 ? len : 4096;
    if (len >= sizeof magic - 1 && !memcmp(bytes, magic, sizeof magic - 1))
        return 100;
    return import_holds(bytes, look, "\nevents: ") &&
                   (import_holds(bytes, look, "\nfn=") || import_holds(bytes, look, "\nfl="))
               ? 80
               : 0;
}
