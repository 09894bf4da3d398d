/* Simulated runs; see simulated.h. */
#include "cmd/simulated.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyze/model.h"
#include "capture/count.h"
#include "capture/simulate.h"
#include "cmd/combine.h"
#include "cmd/status.h"
#include "formats/open.h"

/* Under valgrind the command would fail with valgrind's words and status. */
static int check_command(const char *name, int *status, struct error *err)
{
    char path[4096];
    if (launch_find(name, path, sizeof path))
        return 0;
    *status = STATUS_NOT_FOUND;
    return error_set(err, FAULT_SYSTEM, "cannot run %s: there is no such program to execute", name);
}

static int read_files(struct simulated *m, const struct simulate *s, struct error *err)
{
    const struct format *callgrind = format_find("callgrind");
    for (size_t i = 0; i < s->files.len; i++) {
        int rc = profile_open_as(callgrind, s->files.data[i], NULL, &m->profile, err);
        if (rc)
            return rc;
    }
    model_translate(&m->profile);
    return 0;
}

static void add_notes(const struct simulate *s, bool calls, struct counts *c)
{
    counts_note(
        c, NOTE_INFO,
        "simulated by valgrind's %s: the caches and the branch predictor are a model's, the "
        "times are those of the simulation",
        calls ? "callgrind" : "cachegrind");
    if (s->forked && !calls)
        counts_note(c, NOTE_WARNING,
                    "%zu process%s went on after a fork without exec: cachegrind's counts of such "
                    "hold their parent's up to the fork; --simulate=calls counts them once",
                    s->forked, s->forked == 1 ? "" : "es");
}

static int record(const struct simulated *m, const struct simulated_options *o, struct error *err)
{
    return o->record ? combine_save(&m->profile, o->record, o->replace, err) : 0;
}

int simulated_run(struct simulated *m, const struct simulated_options *o, struct counts *c,
                  struct error *err)
{
    struct simulate s = {0};
    struct counts times;
    struct counter_plan none = {0};
    struct count_result r = {0};
    *m = (struct simulated){.status = 0};
    profile_init(&m->profile);
    counts_init(&times, "");
    int rc = check_command(o->command[0], &m->status, err);
    if (!rc)
        rc = simulate_prepare(&s, o->calls ? SIMULATE_CALLS : SIMULATE_CACHE, o->command, err);
    struct launch_options launch = {.argv = s.argv.data};
    struct count_options how = {.launch = &launch};
    if (!rc)
        rc = count_run(&how, &none, &times, &r, err);
    if (!rc)
        rc = simulate_collect(&s, err);
    if (!rc)
        rc = read_files(m, &s, err);
    if (!rc) {
        model_counts(&m->profile, c, &times.runs.data[0].usage);
        add_notes(&s, o->calls, c);
        rc = record(m, o, err);
        m->status =
            WIFSIGNALED(r.status) ? STATUS_SIGNAL + WTERMSIG(r.status) : WEXITSTATUS(r.status);
    }
    simulate_release(&s);
    counts_release(&times);
    return rc && m->status == STATUS_NOT_FOUND ? m->status : rc;
}

void simulated_release(struct simulated *m)
{
    profile_release(&m->profile);
}
