/* Manual pages in roff; see manual.h. */
#include <ctype.h>
#include <string.h>

#include "cmd/manual.h"

/* Text that roff shows as it is: no request at the start of a line, no escape, real hyphens. */
static void add_plain(struct text *out, const char *s)
{
    bool starts = out->len == 0 || out->data[out->len - 1] == '\n';
    if (starts && (*s == '.' || *s == '\''))
        text_add(out, "\\&");
    for (; *s; s++) {
        if (*s == '\\')
            text_add(out, "\\e");
        else if (*s == '-')
            text_add(out, "\\-");
        else if (*s == '\'')
            text_add(out, "\\(aq");
        else
            text_add_char(out, *s == '\n' ? ' ' : *s);
    }
}

static void add_line(struct text *out, const char *s)
{
    add_plain(out, s);
    text_add_char(out, '\n');
}

static void add_section(struct text *out, const char *heading)
{
    text_add(out, ".SH ");
    for (const char *p = heading; *p; p++)
        text_add_char(out, *p == ' ' ? ' ' : (char)toupper((unsigned char)*p));
    text_add_char(out, '\n');
}

static void add_paragraphs(struct text *out, const char *paragraphs)
{
    bool first = true;
    while (paragraphs && *paragraphs) {
        const char *end = strstr(paragraphs, "\n\n");
        size_t len = end ? (size_t)(end - paragraphs) : strlen(paragraphs);
        struct text one = TEXT_INIT;
        text_add_len(&one, paragraphs, len);
        if (!first)
            text_add(out, ".PP\n");
        add_line(out, one.data);
        text_release(&one);
        first = false;
        paragraphs += len;
        paragraphs += strspn(paragraphs, "\n");
    }
}

static void add_title(struct text *out, const char *name, int section, const char *summary)
{
    text_format(out, ".TH \"%s\" \"%d\" \"\" \"sonde %s\" \"sonde\"\n", name, section,
                SONDE_VERSION);
    add_section(out, "Name");
    add_plain(out, name);
    text_add(out, " \\- ");
    add_line(out, summary);
}

/* The tag of an option: letter and name in bold, argument in italics. */
static void add_tag(struct text *out, const struct option *o)
{
    text_add(out, ".TP\n");
    if (o->letter)
        text_format(out, "\\fB\\-%c\\fR, ", o->letter);
    text_add(out, "\\fB\\-\\-");
    add_plain(out, o->negatable ? "[no-]" : "");
    add_plain(out, o->name);
    text_add(out, "\\fR");
    if (o->kind != OPTION_FLAG) {
        text_add(out, "=\\fI");
        add_plain(out, o->placeholder ? o->placeholder : "VALUE");
        text_add(out, "\\fR");
    }
    text_add_char(out, '\n');
}

static void add_option(struct text *out, const struct command *command, const struct option *o)
{
    struct text remarks = TEXT_INIT;
    manual_add_remarks(command, o, &remarks);
    add_line(out, o->help);
    if (remarks.len)
        add_line(out, remarks.data);
    text_release(&remarks);
}

static void add_options(struct text *out, const struct command *command)
{
    add_section(out, "Options");
    for (const struct option *o = command->options; o && o->name; o++) {
        if (!manual_opens_group(command->options, o))
            continue;
        if (o->group)
            text_format(out, ".SS \"%s\"\n", o->group);
        for (const struct option *p = o; p->name; p++) {
            if (strcmp(manual_group(p), manual_group(o)) != 0)
                continue;
            add_tag(out, p);
            add_option(out, command, p);
        }
    }
    text_format(out, ".SS \"%s\"\n", manual_group(&manual_help_option));
    add_tag(out, &manual_help_option);
    add_option(out, command, &manual_help_option);
}

static void add_statuses(struct text *out, const struct command_status *statuses)
{
    for (const struct command_status *s = statuses; s && s->meaning; s++) {
        text_format(out, ".TP\n.B %d\n", s->status);
        add_line(out, s->meaning);
    }
}

static void add_surroundings(struct text *out)
{
    add_section(out, "Files");
    text_add(out, ".TP\n.I $XDG_CONFIG_HOME/sonde/sonde.conf\n.TQ\n.I /etc/sonde/sonde.conf\n"
                  "Settings; see\n.BR sonde.conf (5).\n");
    add_section(out, "Environment");
    text_add(out, ".TP\n.B SONDE_CONF\nThe settings file to read in place of these; empty for "
                  "none.\n.TP\n.B NO_COLOR\nIf set and not empty, output has no colour.\n");
}

static void add_see_also(struct text *out, const struct command *command)
{
    add_section(out, "See also");
    text_add(out, ".BR sonde (1),\n");
    for (const char *const *name = command->see_also; name && *name; name++)
        text_format(out, ".BR sonde\\-%s (1),\n", *name);
    text_add(out, ".BR sonde.conf (5)\n");
}

void manual_roff_command(const struct command *command, struct text *out)
{
    struct text name = TEXT_INIT;
    text_format(&name, "sonde-%s", command->name);
    add_title(out, name.data, 1, command->summary);
    text_release(&name);
    add_section(out, "Synopsis");
    text_add(out, "\\fBsonde ");
    add_plain(out, command->name);
    text_add(out, "\\fR ");
    add_line(out, command->usage);
    add_section(out, "Description");
    add_paragraphs(out, command->description);
    add_options(out, command);
    if (command->examples)
        add_section(out, "Examples");
    for (const struct command_example *e = command->examples; e && e->line; e++) {
        text_add(out, ".TP\n\\fB");
        add_plain(out, e->line);
        text_add(out, "\\fR\n");
        add_line(out, e->meaning);
    }
    add_section(out, "Exit status");
    add_statuses(out, manual_statuses);
    add_statuses(out, command->statuses);
    add_surroundings(out);
    add_see_also(out, command);
}

void manual_roff_overview(const struct command *const *table, struct text *out)
{
    add_title(out, "sonde", 1, "profile CPU, memory, waits and events of whole process trees");
    add_section(out, "Synopsis");
    text_add(out, "\\fBsonde\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]... [\\fIOPERAND\\fR]...\n");
    add_section(out, "Description");
    add_paragraphs(out, "One recording holds it all: CPU samples, heap, traces, event counts and "
                        "resource curves of every thread of every process of a tree. Commands make "
                        "recordings and show views of them.\n\nEvery option of a command may also "
                        "be set in sonde.conf(5); the command line wins.");
    add_section(out, "Commands");
    for (const struct command *const *c = table; *c; c++) {
        text_format(out, ".TP\n.BR sonde\\-%s (1)\n", (*c)->name);
        add_line(out, (*c)->summary);
    }
    add_section(out, "Options");
    text_add(out, ".TP\n.BR \\-h \", \" \\-\\-help\nList the commands.\n"
                  ".TP\n.BR \\-V \", \" \\-\\-version\nPrint the version.\n");
    add_section(out, "Exit status");
    add_statuses(out, manual_statuses);
    add_surroundings(out);
    add_section(out, "See also");
    text_add(out, ".BR sonde.conf (5)\n");
}

void manual_roff_conf(const struct command *const *table, struct text *out)
{
    add_title(out, "sonde.conf", 5, "settings of sonde");
    add_section(out, "Description");
    add_paragraphs(
        out,
        "The first of these files that there is, and no other, is read: the one named by "
        "$SONDE_CONF (if it is set and empty, none), $XDG_CONFIG_HOME/sonde/sonde.conf (by default "
        "~/.config/sonde/sonde.conf), /etc/sonde/sonde.conf. A file in the current folder is never "
        "read.\n\nA section is a command; its keys are the long options of that command, one a "
        "line, as 'key = value'. A switch takes yes or no. A key that may be given several times "
        "on the command line may have several lines here. Lines that start with ; or # are "
        "comments, and so is what follows a ; after a space. An unknown section or key is an "
        "error. The command line wins over the file; a list given there replaces the file's.");
    for (const struct command *const *c = table; *c; c++) {
        if ((*c)->without_conf || !(*c)->options)
            continue;
        text_format(out, ".SH [%s]\n", (*c)->name);
        for (const struct option *o = (*c)->options; o->name; o++) {
            text_add(out, ".TP\n\\fB");
            add_plain(out, o->name);
            text_add(out, "\\fR = \\fI");
            add_plain(out, o->kind == OPTION_FLAG ? "yes|no"
                           : o->placeholder       ? o->placeholder
                                                  : "VALUE");
            text_add(out, "\\fR\n");
            add_option(out, *c, o);
        }
    }
    add_section(out, "See also");
    text_add(out, ".BR sonde (1)\n");
}
