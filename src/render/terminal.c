/* Views on a terminal: titles, facts, notes and commands; see terminal.h. */
#include "render/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "render/terminal_internal.h"

#define WIDTH_MAX 400

struct terminal_style terminal_style_of(int fd)
{
    struct terminal_style style = {.width = TERMINAL_WIDTH_DEFAULT};
    struct winsize size;
    if (!isatty(fd))
        return style;
    const char *no_colour = getenv("NO_COLOR"), *kind = getenv("TERM");
    style.colour = !(no_colour && *no_colour) && !(kind && !strcmp(kind, "dumb"));
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col)
        style.width = size.ws_col < WIDTH_MAX ? size.ws_col : WIDTH_MAX;
    return style;
}

void terminal_paint(struct terminal *t, enum paint paint, const char *printable)
{
    static const char *const code[] = {
        [PAINT_NONE] = "",      [PAINT_BOLD] = "1",   [PAINT_DIM] = "2",
        [PAINT_WARM] = "33",    [PAINT_HOT] = "1;31", [PAINT_WARN] = "33",
        [PAINT_COMMAND] = "36", [PAINT_WORSE] = "31", [PAINT_BETTER] = "32",
    };
    if (!t->colour || paint == PAINT_NONE || !*printable) {
        text_add(t->out, printable);
        return;
    }
    text_format(t->out, "\033[%sm%s\033[0m", code[paint], printable);
}

static void add_date(struct text *out, uint64_t ns)
{
    time_t seconds = (time_t)(ns / 1000000000);
    struct tm tm;
    char line[64];
    if (gmtime_r(&seconds, &tm) && strftime(line, sizeof line, "%Y-%m-%d %H:%M:%S UTC", &tm))
        text_add(out, line);
    else
        text_add(out, "-");
}

/* Source lines have tabs, which are controls but no danger. */
static void add_text(struct text *out, const char *s)
{
    struct text spaced = TEXT_INIT;
    for (const char *tab; (tab = strchr(s, '\t')); s = tab + 1) {
        text_add_len(&spaced, s, (size_t)(tab - s));
        text_add(&spaced, "    ");
    }
    text_add(&spaced, s);
    text_add_printable(out, spaced.data);
    text_release(&spaced);
}

void terminal_value(struct text *out, enum view_kind kind, struct view_value value)
{
    if (!value.known) {
        text_add(out, "-");
        return;
    }
    switch (kind) {
    case VIEW_TEXT:
        add_text(out, value.text);
        break;
    case VIEW_NUMBER:
        text_format(out, "%llu", (unsigned long long)value.number);
        break;
    case VIEW_COUNT:
        text_add_count(out, value.number);
        break;
    case VIEW_DURATION:
        if (value.number)
            text_add_duration(out, value.number);
        else
            text_add(out, "0 s");
        break;
    case VIEW_BYTES:
        text_add_bytes(out, value.number);
        break;
    case VIEW_PERCENT:
        text_format(out, "%.1f%%", value.percent);
        break;
    case VIEW_DATE:
        add_date(out, value.number);
        break;
    case VIEW_REAL:
        text_format(out, "%.3f", value.percent);
        break;
    }
}

void terminal_change(struct text *out, enum view_kind kind, struct view_value value)
{
    bool percent = kind == VIEW_PERCENT;
    bool less = percent ? value.percent < 0 : value.change < 0;
    bool none = percent ? value.percent == 0 : value.change == 0;
    if (!value.known) {
        text_add(out, "-");
        return;
    }
    text_add(out, none ? "" : less ? "-" : "+");
    struct view_value size = {.known = true};
    if (percent)
        size.percent = less ? -value.percent : value.percent;
    else
        size.number = less ? -(uint64_t)value.change : (uint64_t)value.change;
    terminal_value(out, kind, size);
}

/* Bytes of the first `columns` code points. */
static size_t prefix_bytes(const char *s, size_t columns)
{
    size_t i = 0;
    for (; s[i]; i++)
        if (((unsigned char)s[i] & 0xc0) != 0x80 && columns-- == 0)
            break;
    return i;
}

void terminal_shorten(struct text *s, size_t columns, enum view_cut cut)
{
    size_t have = text_columns(s->data);
    if (have <= columns)
        return;
    if (!columns) {
        text_clear(s);
        return;
    }
    /* The end of a name tells as much as its beginning: 3 parts of 5 go to the latter. */
    size_t head = (columns - 1) * 3 / 5;
    if (cut != VIEW_CUT_MIDDLE)
        head = cut == VIEW_CUT_END ? columns - 1 : 0;
    size_t tail = columns - 1 - head;
    struct text shorter = TEXT_INIT;
    text_add_len(&shorter, s->data, prefix_bytes(s->data, head));
    text_add(&shorter, "…");
    text_add(&shorter, s->data + prefix_bytes(s->data, have - tail));
    text_release(s);
    *s = shorter;
}

/* A word longer than a line is broken; `indent` columns stand before every line but the first,
 * which starts at column `at`. */
static void wrap(struct terminal *t, enum paint paint, const char *printable, size_t at,
                 size_t indent)
{
    struct text line = TEXT_INIT;
    size_t spaces = strspn(printable, " "), column = at + spaces;
    text_add_repeat(t->out, ' ', spaces);
    printable += spaces;
    while (*printable) {
        size_t len = strcspn(printable, " "), gap = line.len ? 1 : 0;
        text_add_repeat(&line, ' ', gap);
        size_t start = line.len;
        text_add_len(&line, printable, len);
        size_t word = text_columns(line.data + start);
        if (column + gap + word > t->width && column > indent) {
            line.len = start - gap;
            line.data[line.len] = 0;
            terminal_paint(t, paint, line.data);
            text_clear(&line);
            text_add_char(t->out, '\n');
            text_add_repeat(t->out, ' ', indent);
            column = indent;
            continue;
        }
        column += gap + word;
        printable += len + strspn(printable + len, " ");
    }
    terminal_paint(t, paint, line.data);
    text_release(&line);
}

static size_t label_width(const struct view_section *s)
{
    size_t width = 0;
    for (size_t i = 0; i < s->facts.len; i++) {
        size_t n = text_columns(s->facts.data[i].line);
        if (!s->facts.data[i].hidden && n > width)
            width = n;
    }
    return width ? width + 2 : 0;
}

static void write_facts(struct terminal *t, const struct view_section *s)
{
    size_t indent = label_width(s), column = 0;
    const char *line = NULL;
    struct text piece = TEXT_INIT;
    for (size_t i = 0; i < s->facts.len; i++) {
        const struct view_fact *f = &s->facts.data[i];
        if (f->hidden)
            continue;
        text_clear(&piece);
        text_add(&piece, f->before);
        terminal_value(&piece, f->as.kind, f->value);
        text_add(&piece, f->after);
        bool fresh = !line || strcmp(line, f->line);
        size_t gap = fresh || f->glued ? 0 : 3, width = text_columns(piece.data);
        if (fresh) {
            text_add(t->out, line ? "\n" : "");
            terminal_paint(t, PAINT_DIM, f->line);
            text_add_repeat(t->out, ' ', indent - text_columns(f->line));
            column = indent;
        } else if (column + gap + width > t->width && !f->glued) {
            text_add_char(t->out, '\n');
            text_add_repeat(t->out, ' ', indent);
            column = indent;
            gap = 0;
        }
        if (gap)
            terminal_paint(t, PAINT_DIM, " · ");
        wrap(t, PAINT_NONE, piece.data, column + gap, indent);
        column += gap + width;
        line = f->line;
    }
    if (line)
        text_add_char(t->out, '\n');
    text_release(&piece);
}

static void write_notes(struct terminal *t, const struct view_section *s)
{
    struct text printable = TEXT_INIT;
    if (*s->title) {
        terminal_paint(t, PAINT_BOLD, s->title);
        text_add_char(t->out, '\n');
    }
    for (size_t i = 0; i < s->notes.len; i++) {
        bool warning = s->notes.data[i].level == NOTE_WARNING;
        text_clear(&printable);
        text_add_printable(&printable, s->notes.data[i].text);
        terminal_paint(t, warning ? PAINT_WARN : PAINT_DIM, warning ? "! " : "· ");
        wrap(t, PAINT_NONE, printable.data, 2, 2);
        text_add_char(t->out, '\n');
    }
    if (s->omitted) {
        text_clear(&printable);
        text_format(&printable, "… %llu more: --notes\n", (unsigned long long)s->omitted);
        terminal_paint(t, PAINT_DIM, printable.data);
    }
    text_release(&printable);
}

/* Commands are there to be copied: never cut. What they do may give way. */
static void write_commands(struct terminal *t, const struct view_section *s)
{
    size_t width = 0;
    struct text line = TEXT_INIT, meaning = TEXT_INIT;
    if (*s->title) {
        terminal_paint(t, PAINT_BOLD, s->title);
        text_add_char(t->out, '\n');
    }
    for (size_t i = 0; i < s->commands.len; i++) {
        size_t n = text_columns(s->commands.data[i].line);
        width = n > width && n + 24 < t->width ? n : width;
    }
    for (size_t i = 0; i < s->commands.len; i++) {
        text_clear(&line);
        text_clear(&meaning);
        text_add(&line, "  ");
        text_add_printable(&line, s->commands.data[i].line);
        text_add_printable(&meaning, s->commands.data[i].meaning);
        size_t at = text_columns(line.data);
        terminal_paint(t, PAINT_COMMAND, line.data);
        size_t gap = at < width + 2 ? width + 4 - at : 2;
        if (at + gap + 12 < t->width) {
            text_add_repeat(t->out, ' ', gap);
            terminal_shorten(&meaning, t->width - at - gap, VIEW_CUT_END);
            terminal_paint(t, PAINT_DIM, meaning.data);
        }
        text_add_char(t->out, '\n');
    }
    text_release(&line);
    text_release(&meaning);
}

static bool is_empty(const struct view_section *s)
{
    for (size_t i = 0; i < s->facts.len && !s->hidden; i++)
        if (!s->facts.data[i].hidden)
            return false;
    return s->hidden || (!s->rows.len && !s->notes.len && !s->commands.len);
}

void terminal_write(const struct view *v, struct terminal_style style, struct text *out)
{
    struct terminal t = {.out = out, .width = style.width, .colour = style.colour};
    struct text title = TEXT_INIT;
    if (t.width < TERMINAL_WIDTH_MIN)
        t.width = TERMINAL_WIDTH_MIN;
    text_add_printable(&title, v->title);
    if (title.len) {
        terminal_shorten(&title, t.width, VIEW_CUT_MIDDLE);
        terminal_paint(&t, PAINT_BOLD, title.data);
        text_add_char(out, '\n');
    }
    bool facts = true;
    for (size_t i = 0; i < v->sections.len; i++) {
        const struct view_section *s = v->sections.data[i];
        if (is_empty(s))
            continue;
        /* Facts belong to the title or the facts before them. */
        if (!(facts && s->kind == VIEW_FACTS))
            text_add_char(out, '\n');
        facts = s->kind == VIEW_FACTS;
        switch (s->kind) {
        case VIEW_FACTS:
            write_facts(&t, s);
            break;
        case VIEW_TABLE:
            terminal_table(&t, s);
            break;
        case VIEW_NOTES:
            write_notes(&t, s);
            break;
        case VIEW_COMMANDS:
            write_commands(&t, s);
            break;
        }
    }
    text_release(&title);
}
