/* From argv to an exit status; see dispatch.h. */
#include "cmd/dispatch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cmd/conf.h"
#include "cmd/manual.h"
#include "cmd/spelling.h"

bool invocation_given(const struct invocation *inv, const char *option)
{
    return option_given(&inv->set, option);
}

const struct command *command_find(const struct command *const *table, const char *name)
{
    for (; *table; table++)
        if (strcmp((*table)->name, name) == 0)
            return *table;
    return NULL;
}

/* A reader that has gone away (`sonde report | head`) is no failure worth a word. */
static int finish_output(int status, const char *name)
{
    errno = 0;
    bool failed = fflush(stdout) != 0 || ferror(stdout);
    if (!failed)
        return status;
    if (errno == EPIPE)
        return status ? status : STATUS_SIGNAL + SIGPIPE;
    fprintf(stderr, "sonde %s: could not write all output: %s\n", name, strerror(errno));
    return status ? status : STATUS_FAILED;
}

static int check_operands(struct invocation *inv)
{
    const struct command *c = inv->command;
    unsigned count = (unsigned)inv->argc;
    const char *what = c->operand ? c->operand : "operand";
    if (count > c->operands_max)
        return error_set(&inv->error, FAULT_USAGE,
                         c->operands_max ? "'%s' is one %s too many; usage: sonde %s %s"
                                         : "unexpected '%s' (it takes no %s); usage: sonde %s %s",
                         inv->argv[c->operands_max], what, c->name, c->usage);
    if (count < c->operands_min)
        return error_set(&inv->error, FAULT_USAGE, "%s is missing; usage: sonde %s %s", what,
                         c->name, c->usage);
    return 0;
}

static int read_conf(struct invocation *inv)
{
    char *path = inv->command->without_conf ? NULL : conf_path();
    int result = path ? conf_read(path, inv->table, inv->command, &inv->set, &inv->error) : 0;
    free(path);
    return result;
}

/* Help must be had even when sonde.conf is wrong, so the command line is first parsed into nothing.
 */
static int look_for_help(struct invocation *inv, int argc, char **argv, bool *help)
{
    struct option_set scratch;
    int operands;
    char **words = memory_dup(argv, (size_t)(argc + 1) * sizeof *argv);
    void *values = memory_alloc(inv->command->options_size + 1);
    option_set_init(&scratch, inv->command->options, values);
    int result = option_parse(&scratch, argc, words, inv->command->operands_end_options, &operands,
                              help, &inv->error);
    option_set_release(&scratch);
    free(values);
    free(words);
    return result;
}

static int run_command(struct invocation *inv, int argc, char **argv)
{
    bool help;
    int result = look_for_help(inv, argc, argv, &help);
    if (!result && help) {
        manual_print_help(inv->command, stdout);
        return STATUS_OK;
    }
    if (!result)
        result = read_conf(inv);
    if (!result)
        result = option_parse(&inv->set, argc, argv, inv->command->operands_end_options, &inv->argc,
                              &help, &inv->error);
    if (result)
        return result;
    argv[inv->argc] = NULL;
    inv->argv = argv;
    result = check_operands(inv);
    return result ? result : inv->command->run(inv);
}

static int invoke(const struct command *const *table, const struct command *command, int argc,
                  char **argv)
{
    struct invocation inv = {.command = command, .table = table};
    size_t size = command->options_size ? command->options_size : 1;
    inv.options = command->defaults ? memory_dup(command->defaults, size) : memory_alloc(size);
    option_set_init(&inv.set, command->options, inv.options);
    int status = run_command(&inv, argc, argv);
    if (inv.error.fault)
        fprintf(stderr, "sonde %s: %s\n", command->name, inv.error.text);
    if (status < 0)
        status = status == FAULT_USAGE ? STATUS_USAGE : STATUS_FAILED;
    option_set_release(&inv.set);
    free(inv.options);
    return finish_output(status, command->name);
}

static int refuse_command(const struct command *const *table, const char *word)
{
    struct text shown = TEXT_INIT;
    text_add_printable(&shown, word);
    struct spelling spelling;
    spelling_init(&spelling, word);
    for (const struct command *const *c = table; *c; c++)
        spelling_offer(&spelling, (*c)->name);
    const char *nearest = spelling_nearest(&spelling);
    if (nearest)
        fprintf(stderr, "sonde: there is no command '%s'; did you mean %s?\n", shown.data, nearest);
    else
        fprintf(stderr, "sonde: there is no %s '%s'; 'sonde --help' lists what there is\n",
                word[0] == '-' ? "option" : "command", shown.data);
    text_release(&shown);
    return STATUS_USAGE;
}

int dispatch(const struct command *const *table, int argc, char **argv)
{
    if (argc < 2) {
        manual_print_overview(table, stderr);
        return STATUS_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        manual_print_overview(table, stdout);
        return finish_output(STATUS_OK, word);
    }
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        printf("sonde %s\n", SONDE_VERSION);
        return finish_output(STATUS_OK, word);
    }
    const struct command *command = command_find(table, word);
    if (!command)
        return refuse_command(table, word);
    return invoke(table, command, argc - 2, argv + 2);
}
