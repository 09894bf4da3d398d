/* Help on a terminal; see manual.h. */
#include "cmd/manual.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WIDTH 80
#define OPTION_COLUMN 26

const struct option manual_help_option = {
    "help", 'h', OPTION_FLAG, 0, .group = "Help", .help = "Show this text."};

const struct command_status manual_statuses[] = {
    {STATUS_OK, "Done."},
    {STATUS_FAILED, "What was asked for could not be done; the reason is on standard error."},
    {STATUS_USAGE, "The command line or sonde.conf is wrong."},
    {0}};

/* Bold where the reader is a terminal that wants it, else nothing. */
struct page {
    struct text text;
    const char *bold, *plain;
};

static void page_init(struct page *page, FILE *out)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    bool styled = isatty(fileno(out)) && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
    text_init(&page->text);
    page->bold = styled ? "\033[1m" : "";
    page->plain = styled ? "\033[0m" : "";
}

static void page_print(struct page *page, FILE *out)
{
    fputs(page->text.data, out);
    text_release(&page->text);
}

static void add_heading(struct page *page, const char *heading)
{
    text_format(&page->text, "\n%s%s:%s\n", page->bold, heading, page->plain);
}

/* Adds words broken at WIDTH, starting at `column`, further lines indented by `indent`. */
static void add_wrapped(struct text *out, const char *words, size_t column, size_t indent)
{
    bool first = true;
    while (*words) {
        size_t len = strcspn(words, " \n");
        char *word = strndup(words, len);
        size_t columns = text_columns(word);
        if (!first && column + 1 + columns > WIDTH) {
            text_add_char(out, '\n');
            text_add_repeat(out, ' ', indent);
            column = indent;
        } else if (!first) {
            text_add_char(out, ' ');
            column++;
        }
        text_add(out, word);
        free(word);
        column += columns;
        first = false;
        words += len;
        words += strspn(words, " \n");
    }
    text_add_char(out, '\n');
}

static void add_paragraphs(struct text *out, const char *paragraphs)
{
    while (paragraphs && *paragraphs) {
        const char *end = strstr(paragraphs, "\n\n");
        size_t len = end ? (size_t)(end - paragraphs) : strlen(paragraphs);
        char *one = strndup(paragraphs, len);
        text_add_char(out, '\n');
        add_wrapped(out, one, 0, 0);
        free(one);
        paragraphs += len;
        paragraphs += strspn(paragraphs, "\n");
    }
}

const char *manual_group(const struct option *o)
{
    return o->group ? o->group : "Options";
}

bool manual_opens_group(const struct option *options, const struct option *o)
{
    for (const struct option *before = options; before < o; before++)
        if (strcmp(manual_group(before), manual_group(o)) == 0)
            return false;
    return true;
}

void manual_add_remarks(const struct command *command, const struct option *o, struct text *out)
{
    struct text value = TEXT_INIT, allowed = TEXT_INIT;
    if (o != &manual_help_option) /* which has no place in the command's values */
        option_default(o, command->defaults, &value);
    option_describe(o, &allowed);
    bool plain = o->kind == OPTION_FLAG || o->kind == OPTION_TEXT || o->kind == OPTION_LIST;
    if (o->kind == OPTION_LIST)
        text_add(out, "May be given several times.");
    if (!plain)
        text_format(out, "Takes %s.", allowed.data);
    if (value.len)
        text_format(out, "%sDefault: %s.", out->len ? " " : "", value.data);
    text_release(&value);
    text_release(&allowed);
}

static void add_option(struct page *page, const struct command *command, const struct option *o)
{
    struct text spelled = TEXT_INIT, help = TEXT_INIT, remarks = TEXT_INIT;
    if (o->letter)
        text_format(&spelled, "  -%c, ", o->letter);
    else
        text_add(&spelled, "      ");
    text_format(&spelled, "--%s%s", o->negatable ? "[no-]" : "", o->name);
    if (o->kind != OPTION_FLAG)
        text_format(&spelled, o->alone ? "[=%s]" : "=%s",
                    o->placeholder ? o->placeholder : "VALUE");
    text_add(&page->text, spelled.data);
    size_t columns = text_columns(spelled.data);
    if (columns + 2 > OPTION_COLUMN) {
        text_add_char(&page->text, '\n');
        columns = 0;
    }
    text_add_repeat(&page->text, ' ', OPTION_COLUMN - columns);
    manual_add_remarks(command, o, &remarks);
    text_format(&help, "%s%s%s", o->help, remarks.len ? " " : "", remarks.data);
    add_wrapped(&page->text, help.data, OPTION_COLUMN, OPTION_COLUMN);
    text_release(&spelled);
    text_release(&help);
    text_release(&remarks);
}

static void add_options(struct page *page, const struct command *command)
{
    for (const struct option *o = command->options; o && o->name; o++) {
        if (!manual_opens_group(command->options, o))
            continue;
        add_heading(page, manual_group(o));
        for (const struct option *p = o; p->name; p++)
            if (strcmp(manual_group(p), manual_group(o)) == 0)
                add_option(page, command, p);
    }
    add_heading(page, manual_group(&manual_help_option));
    add_option(page, command, &manual_help_option);
}

static void add_statuses(struct page *page, const struct command_status *statuses)
{
    for (const struct command_status *s = statuses; s && s->meaning; s++) {
        text_format(&page->text, "  %3d  ", s->status);
        add_wrapped(&page->text, s->meaning, 7, 7);
    }
}

void manual_print_help(const struct command *command, FILE *out)
{
    struct page page;
    page_init(&page, out);
    text_format(&page.text, "%sUsage:%s sonde %s %s\n", page.bold, page.plain, command->name,
                command->usage);
    text_format(&page.text, "\n%s.\n", command->summary);
    add_paragraphs(&page.text, command->description);
    add_options(&page, command);
    if (command->examples)
        add_heading(&page, "Examples");
    for (const struct command_example *e = command->examples; e && e->line; e++) {
        text_format(&page.text, "  %s\n      ", e->line);
        add_wrapped(&page.text, e->meaning, 6, 6);
    }
    add_heading(&page, "Exit status");
    add_statuses(&page, manual_statuses);
    add_statuses(&page, command->statuses);
    if (command->see_also)
        add_heading(&page, "See also");
    for (const char *const *name = command->see_also; name && *name; name++)
        text_format(&page.text, "  sonde help %s\n", *name);
    page_print(&page, out);
}

void manual_print_overview(const struct command *const *table, FILE *out)
{
    struct page page;
    page_init(&page, out);
    text_format(&page.text,
                "%sUsage:%s sonde COMMAND [OPTION]... [OPERAND]...\n"
                "\nA profiler: CPU, memory, waits and events of whole process trees.\n",
                page.bold, page.plain);
    add_heading(&page, "Commands");
    for (const struct command *const *c = table; *c; c++)
        text_format(&page.text, "  %s%-10s%s  %s\n", page.bold, (*c)->name, page.plain,
                    (*c)->summary);
    text_add(&page.text, "\n'sonde help COMMAND' tells more of one.\n");
    page_print(&page, out);
}
