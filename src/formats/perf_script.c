/*
 * The text that `perf script` prints: a line for the sample, a line for each frame of
 * it (leaf first), an empty line.
 *
 *     app  4242/4250 [001]  1234.567890:    1001001 cpu-clock:pppH:
 *                 1169 hot+0x10 (/usr/bin/app)
 *
 * The process id, CPU, time, period, offset and file may be missing. Addresses mean
 * something else from version to version, so frames are known by name where they have one.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "formats/import.h"
#include "formats/perf_script_internal.h"

#define FRAMES_MAX ((size_t)4096)

struct heading {
    char *comm;
    char *event; /* NULL: no sample, to be skipped */
    char *rest;  /* what follows the event */
    int32_t pid, tid;
    bool pid_known, timed;
    uint64_t time, period;
};

struct script_reader {
    struct import im;
    struct map comms; /* comm -> the thread id that names its process, when pids are not shown */
    VECTOR(uint32_t) frames;  /* of the sample in hand, leaf first */
    VECTOR(uint32_t) pending; /* which of them are inlined and wait for their module */
    VECTOR(uint32_t) pending_names;
    struct heading now;
    uint32_t cpu_alias; /* name of the perf event that became "cpu" */
    uint32_t event, thread;
    bool open;     /* a sample is being read */
    bool unclosed; /* the last one has no empty line behind its frames */
    uint64_t samples, closed;
    uint64_t odd_lines;
};

static bool all_digits(const char *s)
{
    return *s && strspn(s, "0123456789") == strlen(s);
}

/* "1234.567890:" as nanoseconds. */
static bool parse_time(const char *s, uint64_t *time)
{
    size_t whole = strspn(s, "0123456789");
    if (!whole || whole > 10 || s[whole] != '.')
        return false;
    size_t part = strspn(s + whole + 1, "0123456789");
    if (!part || part > 9 || strcmp(s + whole + 1 + part, ":"))
        return false;
    uint64_t fraction = strtoull(s + whole + 1, NULL, 10);
    for (size_t i = part; i < 9; i++)
        fraction *= 10;
    *time = strtoull(s, NULL, 10) * 1000000000ull + fraction;
    return true;
}

static bool parse_ids(const char *s, struct heading *h)
{
    char *end;
    if (!isdigit((unsigned char)s[0]) && strcmp(s, "-1"))
        return false;
    long first = strtol(s, &end, 10);
    h->pid_known = *end == '/';
    h->pid = h->tid = (int32_t)first;
    if (h->pid_known)
        h->tid = (int32_t)strtol(end + 1, &end, 10);
    return !*end;
}

#define TOKENS_MAX 24

/* Cuts the line into words in place; returns how many. `rest[i]` is what follows word i. */
static size_t tokenize(char *line, char **words, char **rest)
{
    size_t n = 0;
    char *at = line;
    while (n < TOKENS_MAX) {
        at += strspn(at, " \t");
        if (!*at)
            break;
        words[n] = at;
        at += strcspn(at, " \t");
        if (*at)
            *at++ = 0;
        rest[n++] = at;
    }
    return n;
}

/* Joins n words again: a command's name, or a symbol, may hold spaces. */
static void restore_spaces(char **words, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++)
        words[i][strlen(words[i])] = ' ';
}

/* The word with the process and thread: the one before the time, or the first number. */
static size_t find_ids(char **words, size_t n, size_t time)
{
    if (time < n) {
        size_t at = time - 1;
        while (at > 1 && words[at][0] == '[')
            at--;
        return at;
    }
    struct heading scratch;
    for (size_t i = 1; i < n; i++)
        if (parse_ids(words[i], &scratch))
            return i;
    return n;
}

static bool parse_heading(char *line, struct heading *h)
{
    char *words[TOKENS_MAX], *rest[TOKENS_MAX];
    *h = (struct heading){.rest = (char *)""};
    size_t n = tokenize(line, words, rest), time = 1;
    while (time < n && !parse_time(words[time], &h->time))
        time++;
    h->timed = time < n;
    size_t ids = time > 1 ? find_ids(words, n, time) : n;
    if (ids >= n || !parse_ids(words[ids], h))
        return false;
    restore_spaces(words, ids);
    h->comm = words[0];
    size_t at = h->timed ? time + 1 : ids + 1;
    if (!h->timed && at < n && words[at][0] == '[')
        at++;
    if (at < n && all_digits(words[at]) && strlen(words[at]) < 19)
        h->period = strtoull(words[at++], NULL, 10);
    size_t len = at < n ? strlen(words[at]) : 0;
    if (len < 2 || words[at][len - 1] != ':' || text_starts(words[at], "PERF_RECORD_"))
        return at < n || h->timed; /* another kind of record */
    words[at][len - 1] = 0;
    restore_spaces(words + at + 1, n - at - 1);
    h->event = words[at];
    h->rest = rest[at];
    return true;
}

/* "cycles:u" and "cpu-clock:pppH" are the same events as without their modifiers. */
static void strip_modifiers(char *event)
{
    char *colon = strrchr(event, ':');
    if (colon && colon > event && strspn(colon + 1, "ukhGHpPSDIWe") == strlen(colon + 1))
        *colon = 0;
}

static uint32_t find_event(struct script_reader *r, const struct heading *h)
{
    strip_modifiers(h->event);
    const char *name = h->event;
    enum value_unit unit = UNIT_COUNT;
    bool clock = !strcmp(name, "cpu-clock") || !strcmp(name, "task-clock");
    if (clock) {
        unit = UNIT_NANOSECONDS;
        uint32_t own = import_string(&r->im, name, strlen(name));
        if (!r->cpu_alias)
            r->cpu_alias = own;
        if (r->cpu_alias == own)
            name = "cpu";
    }
    struct profile *p = r->im.profile;
    uint64_t period = h->period ? h->period : 1;
    uint32_t event = import_event(&r->im, name, unit, period);
    if (event != PROFILE_NONE && p->events.data[event].period != period)
        p->events.data[event].period = 0;
    return event;
}

static uint32_t find_thread(struct script_reader *r, const struct heading *h)
{
    int32_t pid = h->pid;
    if (!h->pid_known) {
        uint32_t comm = import_string(&r->im, h->comm, strlen(h->comm));
        pid = (int32_t)*map_put(&r->comms, comm, 0, (uint32_t)h->tid, NULL);
    }
    uint32_t process = import_process(&r->im, pid, h->comm);
    return import_thread(&r->im, process, h->tid, h->comm);
}

/* Inlined functions belong to the module of the real frame that follows them. */
static void settle_inlined(struct script_reader *r, uint32_t module)
{
    struct profile *p = r->im.profile;
    for (size_t i = 0; i < r->pending.len; i++)
        r->frames.data[r->pending.data[i]] =
            import_frame(&r->im, module, profile_text(p, r->pending_names.data[i]), "", 0, 0);
    r->pending.len = r->pending_names.len = 0;
}

static int close_sample(struct script_reader *r, struct error *err)
{
    uint32_t stack = 0;
    if (!r->open)
        return 0;
    r->open = false;
    settle_inlined(r, import_module(&r->im, ""));
    for (size_t i = r->frames.len; i-- > 0;) {
        int rc = import_push(&r->im, &stack, r->frames.data[i], err);
        if (rc)
            return rc;
    }
    uint64_t value = r->now.period ? r->now.period : 1;
    if (r->now.timed)
        return import_sample(&r->im, r->event, r->now.time, r->thread, stack, value, err);
    return import_count(&r->im, r->event, r->thread, stack, 1, value, err);
}

/* Cuts "(file)" off the end of a frame's line; "" if there is none. */
static const char *cut_file(char *text)
{
    size_t len = strlen(text);
    const char *gone = " (deleted))";
    if (len > strlen(gone) && text_ends(text, gone)) {
        len -= strlen(gone);
        text[len++] = ')';
        text[len] = 0;
    }
    if (!len || text[len - 1] != ')')
        return "";
    char *open = NULL;
    for (char *p = text; (p = strstr(p, "(")); p++)
        if (p == text || p[-1] == ' ')
            open = p;
    if (!open)
        return "";
    text[len - 1] = 0;
    if (open > text)
        open[-1] = 0;
    *open = 0;
    return open + 1;
}

static void strip_offset(char *symbol)
{
    char *plus = strrchr(symbol, '+');
    if (plus && plus > symbol && text_starts(plus, "+0x") &&
        strspn(plus + 3, "0123456789abcdef") == strlen(plus + 3))
        *plus = 0;
}

static int add_frame(struct script_reader *r, uint64_t address, char *text, struct error *err)
{
    if (r->frames.len >= FRAMES_MAX)
        return import_too_many(&r->im, "frames in one stack", FRAMES_MAX, err);
    const char *file = cut_file(text);
    strip_offset(text);
    if (!strcmp(file, "inlined")) {
        *vector_push(&r->pending) = (uint32_t)r->frames.len;
        *vector_push(&r->pending_names) = import_string(&r->im, text, strlen(text));
        *vector_push(&r->frames) = 0;
        return 0;
    }
    uint32_t module = import_module(&r->im, strcmp(file, "[unknown]") ? file : "");
    if (module == PROFILE_NONE)
        return import_too_many(&r->im, "modules", IMPORT_MODULES_MAX, err);
    bool named = text[0] && strcmp(text, "[unknown]");
    settle_inlined(r, module);
    *vector_push(&r->frames) = named ? import_frame(&r->im, module, text, "", 0, 0)
                                     : profile_frame_add(r->im.profile, module, address);
    return 0;
}

/* "      1169 hot+0x10 (/usr/bin/app)"; false if it is no such line. */
static bool split_frame(char *line, uint64_t *address, char **text)
{
    char *end, *at = line + strspn(line, " \t");
    if (!isxdigit((unsigned char)*at))
        return false;
    *address = strtoull(at, &end, 16);
    if (end - at > 16 || (*end && *end != ' ' && *end != '\t'))
        return false;
    *text = end + strspn(end, " \t");
    return true;
}

static int begin_sample(struct script_reader *r, char *line, uint64_t at, struct error *err)
{
    int rc = close_sample(r, err);
    if (rc)
        return rc;
    if (!parse_heading(line, &r->now))
        return source_bad(r->im.source, at, err, "this is no line that perf script prints");
    if (!r->now.event)
        return 0;
    r->event = find_event(r, &r->now);
    r->thread = find_thread(r, &r->now);
    if (r->event == PROFILE_NONE || r->thread == PROFILE_NONE)
        return import_too_many(&r->im, r->event == PROFILE_NONE ? "events" : "threads",
                               r->event == PROFILE_NONE ? IMPORT_EVENTS_MAX : IMPORT_THREADS_MAX,
                               err);
    r->open = true;
    r->samples++;
    r->frames.len = r->pending.len = r->pending_names.len = 0;
    uint64_t address;
    char *text;
    if (!split_frame(r->now.rest, &address, &text))
        return 0;
    /* Without call chains the one frame stands in the same line. */
    rc = add_frame(r, address, text, err);
    return rc ? rc : close_sample(r, err);
}

/* Names of commands are aligned to the right, so a heading may begin with spaces too. */
static bool is_heading(const char *line)
{
    struct heading h;
    struct text copy = TEXT_INIT;
    text_add(&copy, line);
    bool is = parse_heading(copy.data, &h) && h.timed && h.event;
    text_release(&copy);
    return is;
}

static int read_line(struct script_reader *r, char *line, size_t len, uint64_t at,
                     struct error *err)
{
    uint64_t address;
    char *text;
    if (strlen(line) != len)
        return source_bad(r->im.source, at, err, "a line of text holds a NUL byte");
    if (strspn(line, " \t") == len) {
        r->closed += r->open;
        return close_sample(r, err);
    }
    if (line[0] == '#')
        return 0;
    if (!r->open || !isspace((unsigned char)line[0]))
        return begin_sample(r, line, at, err);
    if (split_frame(line, &address, &text))
        return add_frame(r, address, text, err);
    if (is_heading(line))
        return begin_sample(r, line, at, err);
    r->odd_lines++;
    return 0;
}

static int read_lines(struct script_reader *r, struct error *err)
{
    char *line;
    size_t len;
    import_module(&r->im, "");
    for (;;) {
        uint64_t at = source_offset(r->im.source);
        int rc = source_line(r->im.source, &line, &len, err);
        if (rc > 0)
            rc = read_line(r, line, len, at, err);
        else if (!rc) {
            /* Where no frames were asked for, nothing is between samples. */
            r->unclosed = r->open && (r->frames.len || r->closed || r->samples == 1);
            return close_sample(r, err);
        }
        if (rc)
            return rc;
    }
}

static int script_read(struct source *in, const struct import_options *options, struct profile *p,
                       struct error *err)
{
    struct script_reader r = {0};
    import_init(&r.im, p, in, options);
    int rc = read_lines(&r, err);
    if (!rc) {
        import_finish(&r.im, "perf script");
        if (r.unclosed)
            import_damage(&r.im,
                          "%s ends within a sample, without an empty line: it was cut short, and "
                          "frames may be missing",
                          source_name(in));
        else
            import_check_line_end(&r.im);
        if (r.odd_lines)
            import_note(&r.im, NOTE_INFO, "%llu lines that are no frames were left out",
                        (unsigned long long)r.odd_lines);
    }
    import_release(&r.im);
    map_release(&r.comms);
    vector_release(&r.frames);
    vector_release(&r.pending);
    vector_release(&r.pending_names);
    return rc;
}

static int script_detect(const uint8_t *bytes, size_t len)
{
    int headings = 0, frames = 0;
    for (size_t at = 0; at < len && headings + frames < 20;) {
        const uint8_t *end = memchr(bytes + at, '\n', len - at);
        char line[512];
        uint64_t address;
        char *text;
        struct heading h;
        if (!end)
            break;
        size_t n = (size_t)(end - (bytes + at)), kept = n < sizeof line - 1 ? n : sizeof line - 1;
        memcpy(line, bytes + at, kept);
        line[kept] = 0;
        at += n + 1;
        if (!kept || line[0] == '#' || strlen(line) != kept)
            continue;
        if (headings && isspace((unsigned char)line[0]) && split_frame(line, &address, &text))
            frames++;
        else if (parse_heading(line, &h) && (h.timed || h.event))
            headings++;
        else if (!frames || !isspace((unsigned char)line[0])) /* else where a frame is, in words */
            return 0;
    }
    return !headings ? 0 : frames ? 80 : 40;
}

static const char *const extensions[] = {".perf-script", NULL};

const struct format format_perf_script = {
    .name = "perf-script",
    .description = "the text that `perf script` prints",
    .extensions = extensions,
    .timed = true,
    .detect = script_detect,
    .write = perf_script_write,
    .read = script_read,
};
