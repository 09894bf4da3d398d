/* Running and every wait as one event, for who can take but one; see profile.h. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "profile/profile.h"

struct wall {
    struct profile *profile;
    uint32_t event;
    bool *part;     /* by event: is it in the wall time? */
    uint32_t *leaf; /* by event: the frame under its stacks + 1; 0: none */
};

/* False if nothing waits: then there is no wall time. */
static bool find_parts(struct wall *w)
{
    struct profile *p = w->profile;
    bool waits = false;
    for (uint32_t e = 0; e < p->events.len; e++) {
        const char *name = profile_text(p, p->events.data[e].name);
        w->part[e] = !strcmp(name, "cpu");
        if (!text_starts(name, "off-cpu:"))
            continue;
        uint32_t nowhere = profile_module_add(p, CODE_UNKNOWN, "", NULL, 0);
        uint32_t why = profile_function_add(p, name, "", "", 0, nowhere);
        w->leaf[e] = profile_frame_named(p, nowhere, why, 0) + 1;
        w->part[e] = waits = true;
    }
    return waits;
}

static uint32_t place(struct wall *w, uint32_t event, uint32_t stack)
{
    return w->leaf[event] ? profile_stack_add(w->profile, stack, w->leaf[event] - 1) : stack;
}

static void join_cells(struct wall *w)
{
    struct profile *p = w->profile;
    for (size_t i = 0, len = p->cells.len; i < len; i++) {
        struct profile_cell c = p->cells.data[i];
        if (w->part[c.event])
            profile_count(p, w->event, c.thread, place(w, c.event, c.stack), c.count, c.value);
    }
}

static int join_samples(struct wall *w, struct error *err)
{
    struct profile *p = w->profile;
    struct samples before = p->samples;
    struct samples_cursor c;
    struct profile_sample s;
    p->samples = (struct samples){0};
    samples_begin(&c, &before, SAMPLES_ALL, SAMPLES_ALL);
    while (samples_next(&c, &s)) {
        samples_add(&p->samples, &s);
        if (!w->part[s.event])
            continue;
        s.stack = place(w, s.event, s.stack);
        s.event = w->event;
        profile_sample_add(p, &s);
    }
    int rc = samples_end(&c, err);
    samples_release(&before);
    return rc;
}

int profile_join_wall(struct profile *p, struct error *err)
{
    struct wall w = {.profile = p};
    int rc = 0;
    w.part = memory_array(p->events.len + 1, sizeof *w.part);
    w.leaf = memory_array(p->events.len + 1, sizeof *w.leaf);
    if (find_parts(&w)) {
        w.event = profile_event_add(p, "wall", UNIT_NANOSECONDS, 0);
        join_cells(&w);
        rc = join_samples(&w, err);
    }
    free(w.part);
    free(w.leaf);
    return rc;
}
