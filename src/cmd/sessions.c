/* Sessions that run; see sessions.h. */
#include "cmd/sessions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/proc.h"
#include "capture/rendezvous.h"

#define PATIENCE 3
#define NAMED_MAX 5

/* Is there such a process in what the session says of itself? */
static bool records(pid_t session, long pid)
{
    struct text socket = TEXT_INIT, status = TEXT_INIT;
    char wanted[32];
    rendezvous_path(session, "control", &socket);
    snprintf(wanted, sizeof wanted, "\"pid\":%ld,", pid);
    bool found = control_ask(socket.data, "status", PATIENCE, &status, NULL) == 0 &&
                 strstr(status.data, wanted);
    text_release(&socket);
    text_release(&status);
    return found;
}

/* Those that have such a file, if any has. */
static void keep_those_with(struct rendezvous_list *list, const char *name)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->len; i++) {
        struct text path = TEXT_INIT;
        rendezvous_path(list->data[i], name, &path);
        if (access(path.data, F_OK) == 0) {
            pid_t one = list->data[i];
            list->data[i] = list->data[kept];
            list->data[kept++] = one;
        }
        text_release(&path);
    }
    if (kept)
        list->len = kept;
}

/* "2932 (sonde run --live -- app), 3850 (…)" */
static void name_all(const struct rendezvous_list *list, struct text *out)
{
    for (size_t i = 0; i < list->len && i < NAMED_MAX; i++) {
        char command[64] = "";
        text_format(out, "%s%d", i ? ", " : "", list->data[i]);
        if (!proc_arguments(list->data[i], command, sizeof command))
            continue;
        text_add(out, " (");
        text_add_printable(out, command);
        text_add(out, ")");
    }
    if (list->len > NAMED_MAX)
        text_format(out, " and %zu more", list->len - NAMED_MAX);
}

static pid_t choose(const struct rendezvous_list *list, const char *who, long pid,
                    struct error *err)
{
    for (size_t i = 0; who && i < list->len; i++)
        if (list->data[i] == pid)
            return list->data[i];
    for (size_t i = 0; who && i < list->len; i++)
        if (records(list->data[i], pid))
            return list->data[i];
    if (!who && list->len == 1)
        return list->data[0];
    if (who)
        return (pid_t)error_set(err, FAULT_MISSING,
                                "no session %s runs here, and none records a process of that "
                                "number",
                                who);
    if (!list->len)
        return (pid_t)error_set(err, FAULT_MISSING,
                                "no session runs here: start one with 'sonde run' or 'sonde "
                                "attach'");
    struct text names = TEXT_INIT;
    name_all(list, &names);
    error_set(err, FAULT_USAGE, "several sessions run here, say which: %s", names.data);
    text_release(&names);
    return FAULT_USAGE;
}

int sessions_find(const char *who, const char *name, struct text *path, struct error *err)
{
    struct rendezvous_list list = {0};
    char *end = NULL;
    long pid = who ? strtol(who, &end, 10) : 0;
    if (who && (*end || pid <= 0 || pid > INT32_MAX))
        return error_set(err, FAULT_USAGE, "'%s' is not the number of a session or a process", who);
    rendezvous_sessions(&list);
    if (!who)
        keep_those_with(&list, name);
    pid_t session = choose(&list, who, pid, err);
    vector_release(&list);
    if (session < 0)
        return session;
    rendezvous_path(session, name, path);
    return 0;
}
