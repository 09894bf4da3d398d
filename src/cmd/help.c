/* sonde help: what the command table says, for people, man and the shell. */
#include <stdio.h>

#include "cmd/command.h"
#include "cmd/manual.h"
#include "cmd/spelling.h"

enum shell { SHELL_NONE, SHELL_BASH };

struct help_options {
    bool man;
    enum shell completion;
};

static const char *const shells[] = {"none", "bash", NULL};

static const struct option options[] = {
    {"man", 0, OPTION_FLAG_AT(struct help_options, man),
     .help = "Print the manual page in roff: of COMMAND, of sonde itself without one, or of the "
             "settings file with 'sonde.conf'."},
    {"completion", 0, OPTION_CHOICE_AT(struct help_options, completion), .placeholder = "SHELL",
     .choices = shells, .default_text = "none",
     .help = "Print a script that completes sonde's command lines in that shell."},
    {0}};

static const struct command_example examples[] = {
    {"sonde help run", "how to make a recording"},
    {"sonde help --man run | man -l -", "the same as a manual page"},
    {"source <(sonde help --completion bash)", "complete commands and options in this shell"},
    {0}};

static int refuse(struct invocation *inv, const char *name)
{
    struct spelling spelling;
    spelling_init(&spelling, name);
    for (const struct command *const *c = inv->table; *c; c++)
        spelling_offer(&spelling, (*c)->name);
    const char *nearest = spelling_nearest(&spelling);
    return error_set(&inv->error, FAULT_USAGE,
                     nearest ? "there is no command '%s'; did you mean %s?"
                             : "there is no command '%s'; 'sonde --help' lists those there are",
                     name, nearest);
}

static int print_roff(struct invocation *inv, const char *name)
{
    struct text page = TEXT_INIT;
    const struct command *command = name ? command_find(inv->table, name) : NULL;
    if (!name)
        manual_roff_overview(inv->table, &page);
    else if (strcmp(name, "sonde.conf") == 0)
        manual_roff_conf(inv->table, &page);
    else if (command)
        manual_roff_command(command, &page);
    else
        return refuse(inv, name);
    fputs(page.data, stdout);
    text_release(&page);
    return STATUS_OK;
}

static int help_run(struct invocation *inv)
{
    const struct help_options *chosen = inv->options;
    const char *name = inv->argc ? inv->argv[0] : NULL;
    if (chosen->completion == SHELL_BASH) {
        struct text script = TEXT_INIT;
        manual_bash(inv->table, &script);
        fputs(script.data, stdout);
        text_release(&script);
        return STATUS_OK;
    }
    if (chosen->man)
        return print_roff(inv, name);
    if (!name) {
        manual_print_overview(inv->table, stdout);
        return STATUS_OK;
    }
    const struct command *command = command_find(inv->table, name);
    if (!command)
        return refuse(inv, name);
    manual_print_help(command, stdout);
    return STATUS_OK;
}

const struct command command_help = {
    .name = "help",
    .summary = "Explain sonde or one of its commands",
    .usage = "[OPTION]... [COMMAND]",
    .description = "Without COMMAND, lists the commands. The same table also gives manual pages "
                   "and shell completion, which 'make install' puts in their places.",
    .options = options,
    .options_size = sizeof(struct help_options),
    .operands_max = 1,
    .operand = "COMMAND",
    .without_conf = true,
    .examples = examples,
    .run = help_run,
};
