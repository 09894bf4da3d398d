/* Runs under valgrind; see simulate.h. */
#include "capture/simulate.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/text.h"
#include "capture/launch.h"
#include "base/folders.h"

#define LOG_MAX ((size_t)16 << 20)

#define FOLDER_MAX 100 /* the options that name it have their place */

int simulate_prepare(struct simulate *s, enum simulate_model model, char *const *command,
                     struct error *err)
{
    char path[4096];
    bool calls = model == SIMULATE_CALLS;
    *s = (struct simulate){0};
    if (!launch_find("valgrind", path, sizeof path))
        return error_set(err, FAULT_MISSING,
                         "the model is valgrind's, which is not installed here: 'apt-get install "
                         "valgrind' brings it");
    struct text folder = TEXT_INIT;
    int rc = temporary_folder("model", &folder, err);
    if (rc)
        return rc;
    s->folder = text_take(&folder);
    if (strlen(s->folder) > FOLDER_MAX || strchr(s->folder, '%'))
        return error_set(err, FAULT_INPUT,
                         "valgrind cannot write to %.200s: the name is too long or has a '%%'; set "
                         "TMPDIR to another folder",
                         s->folder);
    int n = 0;
    const char *tool = calls ? "callgrind" : "cachegrind";
    snprintf(s->options[n++], sizeof *s->options, "--tool=%s", tool);
    snprintf(s->options[n++], sizeof *s->options, "--%s-out-file=%s/out.%%p", tool, s->folder);
    snprintf(s->options[n++], sizeof *s->options, "--log-file=%s/log.%%p", s->folder);
    snprintf(s->options[n++], sizeof *s->options, "--cache-sim=yes");
    snprintf(s->options[n++], sizeof *s->options, "--branch-sim=yes");
    snprintf(s->options[n++], sizeof *s->options, "--trace-children=yes");
    /* A child of fork goes on with its parent's counts: they are written out and set to 0 before.
     */
    if (calls) {
        snprintf(s->options[n++], sizeof *s->options, "--dump-before=fork");
        snprintf(s->options[n++], sizeof *s->options, "--dump-before=_Fork");
    }
    *vector_push(&s->argv) = (char *)"valgrind";
    for (int i = 0; i < n; i++)
        *vector_push(&s->argv) = s->options[i];
    for (; *command; command++)
        *vector_push(&s->argv) = *command;
    *vector_push(&s->argv) = NULL;
    return 0;
}

static char *path_in(const struct simulate *s, const char *name)
{
    struct text t = TEXT_INIT;
    text_format(&t, "%s/%s", s->folder, name);
    return text_take(&t);
}

/* What a process's log says of it: the last heading counts, it is that of its last exec. */
struct heading {
    long pid, parent;
    char *command;
};

struct headings {
    struct heading *data;
    size_t len, cap;
};

static const char *last_of(const char *text, const char *key)
{
    const char *found = NULL;
    for (const char *at = text; (at = strstr(at, key));)
        found = at += strlen(key);
    return found;
}

static void look_at_log(struct headings *all, const char *path, struct text *words)
{
    char *text;
    if (io_slurp(path, LOG_MAX, &text, NULL, NULL))
        return;
    const char *command = last_of(text, " Command: "), *parent = last_of(text, " Parent PID: ");
    if (command && parent)
        *vector_push(all) =
            (struct heading){.pid = strtol(strrchr(path, '.') + 1, NULL, 10),
                             .parent = strtol(parent, NULL, 10),
                             .command = memory_strndup(command, strcspn(command, "\n"))};
    if (strstr(text, "valgrind: "))
        text_add(words, text);
    free(text);
}

/* Those that run the command of their parent were forked by it and went on. */
static size_t count_forked(const struct headings *all)
{
    size_t forked = 0;
    for (size_t i = 0; i < all->len; i++)
        for (size_t k = 0; k < all->len; k++)
            forked += all->data[k].pid == all->data[i].parent &&
                      !strcmp(all->data[k].command, all->data[i].command);
    return forked;
}

static void release_headings(struct headings *all)
{
    for (size_t i = 0; i < all->len; i++)
        free(all->data[i].command);
    vector_release(all);
}

int simulate_collect(struct simulate *s, struct error *err)
{
    struct text words = TEXT_INIT;
    struct headings logs = {0};
    DIR *d = opendir(s->folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        char *path = path_in(s, e->d_name);
        if (text_starts(e->d_name, "out.") && access(path, R_OK) == 0) {
            *vector_push(&s->files) = path;
            continue;
        }
        if (text_starts(e->d_name, "log."))
            look_at_log(&logs, path, &words);
        free(path);
    }
    if (d)
        closedir(d);
    s->forked = count_forked(&logs);
    release_headings(&logs);
    int rc = 0;
    if (!s->files.len)
        rc = error_set(err, FAULT_SYSTEM,
                       "valgrind left nothing to read: the program was ended by a signal or "
                       "valgrind cannot run it. %.300s",
                       words.data);
    text_release(&words);
    return rc;
}

void simulate_release(struct simulate *s)
{
    DIR *d = s->folder ? opendir(s->folder) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        char *path = path_in(s, e->d_name);
        if (e->d_name[0] != '.')
            unlink(path);
        free(path);
    }
    if (d)
        closedir(d);
    if (s->folder)
        rmdir(s->folder);
    free(s->folder);
    for (size_t i = 0; i < s->files.len; i++)
        free(s->files.data[i]);
    vector_release(&s->files);
    vector_release(&s->argv);
}
