/* Which part of a recording a command is about; see filter.h. */
#include "cmd/filter.h"

#include <stdlib.h>

#include "base/memory.h"

static bool parse_pid(const char *text, int32_t *out)
{
    char *end;
    long pid = strtol(text, &end, 10);
    *out = (int32_t)pid;
    return *text && !*end && pid > 0 && pid <= INT32_MAX;
}

int filter_check(const struct filter *f, struct error *err)
{
    int32_t pid;
    for (size_t i = 0; i < f->pids.len; i++)
        if (!parse_pid(f->pids.data[i], &pid))
            return error_set(err, FAULT_USAGE, "--pid %s: not the number of a process",
                             f->pids.data[i]);
    if (f->to && f->to <= f->from)
        return error_set(err, FAULT_USAGE, "--to must be later than --from");
    return 0;
}

int filter_select(const struct filter *f, const struct profile *p, struct selection *s,
                  struct error *err)
{
    int32_t *pids = memory_array(f->pids.len + 1, sizeof *pids);
    for (size_t i = 0; i < f->pids.len; i++)
        parse_pid(f->pids.data[i], &pids[i]);
    int result = selection_init(s, p,
                                &(struct selection_options){.events = f->events.data,
                                                            .event_count = f->events.len,
                                                            .pids = pids,
                                                            .pid_count = f->pids.len,
                                                            .threads = f->threads.data,
                                                            .thread_count = f->threads.len,
                                                            .function = f->function,
                                                            .module = f->module,
                                                            .no_inline = !f->inlined},
                                err);
    if (result)
        selection_release(s);
    free(pids);
    return result;
}
