/* What costs more to read of a task, and is read only of those that are shown; see watch.h. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"
#include "monitor/watch.h"

#define SECOND 1e9
#define MEMORY_EVERY 5000000000ull
#define MEMORY_EVERY_AT_REST (6 * MEMORY_EVERY)
#define MEMORY_PART 20000 /* one process's share of memory takes at most this part of the time */

/* "key:   123 kB" of a file of /proc; 0 if there is no such line. */
static uint64_t line_of(const char *text, const char *key)
{
    size_t len = strlen(key);
    for (const char *at = text; at && *at; at = strchr(at, '\n'), at = at ? at + 1 : NULL)
        if (!strncmp(at, key, len) && at[len] == ':')
            return strtoull(at + len + 1, NULL, 10);
    return 0;
}

static char *slurp(const struct watch_task *t, const char *file)
{
    char path[64], *text;
    watch_path(t, file, path, sizeof path);
    return io_slurp(path, 1 << 16, &text, NULL, NULL) ? NULL : text;
}

static void read_rates(struct watch_task *t, double seconds)
{
    char *text = slurp(t, "io");
    t->io_known = text != NULL;
    if (text) {
        uint64_t in = line_of(text, "read_bytes"), out = line_of(text, "write_bytes");
        t->read_rate = seconds > 0 && in >= t->read ? (double)(in - t->read) / seconds : 0;
        t->write_rate = seconds > 0 && out >= t->written ? (double)(out - t->written) / seconds : 0;
        t->read = in;
        t->written = out;
        free(text);
    }
    text = slurp(t, "status");
    if (text) {
        uint64_t n =
            line_of(text, "voluntary_ctxt_switches") + line_of(text, "nonvoluntary_ctxt_switches");
        t->switch_rate = seconds > 0 && n >= t->switches ? (double)(n - t->switches) / seconds : 0;
        t->switches = n;
        t->swap = line_of(text, "VmSwap") * 1024;
        free(text);
    }
}

static bool memory_is_due(const struct watch *w, const struct watch_task *t)
{
    uint64_t every = t->ran && t->ran == t->memory_ran ? MEMORY_EVERY_AT_REST : MEMORY_EVERY;
    if (every < t->memory_cost * MEMORY_PART)
        every = t->memory_cost * MEMORY_PART;
    return !t->memory_read || w->now - t->memory_read >= every;
}

static void read_memory(struct watch *w, struct watch_task *t)
{
    uint64_t before = clock_own_cpu();
    char *text = slurp(t, "smaps_rollup");
    t->memory_read = w->now;
    t->memory_known = text != NULL;
    t->memory_ran = t->ran;
    if (text)
        t->pss = line_of(text, "Pss") * 1024;
    free(text);
    t->memory_cost = clock_own_cpu() - before;
}

void watch_detail(struct watch *w, struct watch_task *t)
{
    if (t->detailed == w->now)
        return;
    bool due = t->pid == t->tid && memory_is_due(w, t);
    if (!due && t->detailed && t->ran && t->ran == t->detailed_ran)
        t->read_rate = t->write_rate = t->switch_rate = 0;
    else
        read_rates(t, t->detailed ? (double)(w->now - t->detailed) / SECOND : 0);
    t->detailed = w->now;
    t->detailed_ran = t->ran;
    if (due)
        read_memory(w, t);
}
