/*
 * Completion for bash; see manual.h. The script is a fixed frame around two case
 * statements made from the table: the options of a command, and the values that an
 * option of a command takes. Words bash splits at '=' are joined again.
 */
#include "cmd/manual.h"

static const char head[] =
    "# bash completion for sonde, made by 'sonde help --completion bash'\n"
    "_sonde() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words i\n"
    "    local command=${COMP_WORDS[1]}\n"
    "    COMPREPLY=()\n"
    "    if [[ $cur == = ]]; then\n"
    "        cur=\n"
    "    elif [[ $prev == = ]]; then\n"
    "        prev=${COMP_WORDS[COMP_CWORD-2]}\n"
    "    fi\n";

static const char after_dashes[] =
    "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
    "        if [[ ${COMP_WORDS[i]} == -- ]]; then\n"
    "            mapfile -t COMPREPLY < <(compgen -c -f -- \"$cur\")\n"
    "            return\n"
    "        fi\n"
    "    done\n";

static const char tail[] =
    "    if [[ $cur == -* ]]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
    "    elif [[ $command == help ]]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$commands\" -- \"$cur\")\n"
    "    fi\n"
    "}\n"
    "complete -o bashdefault -o default -F _sonde sonde\n";

static void add_commands(const struct command *const *table, struct text *out)
{
    text_add(out, "    local commands=\"");
    for (const struct command *const *c = table; *c; c++)
        text_format(out, "%s%s", c == table ? "" : " ", (*c)->name);
    text_add(out, "\"\n    if ((COMP_CWORD == 1)); then\n"
                  "        words=\"--help --version $commands\"\n"
                  "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
                  "        return\n    fi\n");
}

static void add_value(const struct command *c, const struct option *o, struct text *out)
{
    text_format(out, "    %s:--%s", c->name, o->name);
    if (o->letter)
        text_format(out, "|%s:-%c", c->name, o->letter);
    text_add(out, ")\n");
    if (o->kind == OPTION_CHOICE) {
        text_add(out, "        mapfile -t COMPREPLY < <(compgen -W \"");
        for (const char *const *choice = o->choices; *choice; choice++)
            text_format(out, "%s%s", choice == o->choices ? "" : " ", *choice);
        text_add(out, "\" -- \"$cur\")\n");
    }
    text_add(out, "        return ;;\n");
}

/* The value of the option before the cursor; no COMPREPLY leaves file names to bash. */
static void add_values(const struct command *const *table, struct text *out)
{
    text_add(out, "    case $command:$prev in\n");
    for (const struct command *const *c = table; *c; c++)
        for (const struct option *o = (*c)->options; o && o->name; o++)
            if (o->kind != OPTION_FLAG)
                add_value(*c, o, out);
    text_add(out, "    esac\n");
}

static void add_options(const struct command *const *table, struct text *out)
{
    text_add(out, "    case $command in\n");
    for (const struct command *const *c = table; *c; c++) {
        text_format(out, "    %s) words=\"--help", (*c)->name);
        for (const struct option *o = (*c)->options; o && o->name; o++) {
            text_format(out, " --%s", o->name);
            if (o->negatable)
                text_format(out, " --no-%s", o->name);
        }
        text_add(out, "\" ;;\n");
    }
    text_add(out, "    *) words= ;;\n    esac\n");
}

void manual_bash(const struct command *const *table, struct text *out)
{
    text_add(out, head);
    add_commands(table, out);
    text_add(out, after_dashes);
    add_values(table, out);
    add_options(table, out);
    text_add(out, tail);
}
