/*
 * What is true now of a recording that goes on: its profile, names for it, and the page's document
 * with what has changed since the last step. One lock: any thread may ask, and each asker holds it
 * only for as long as copying takes.
 */
#ifndef SONDE_LIVE_STATE_H
#define SONDE_LIVE_STATE_H

#include "live/views.h"
#include "render/page.h"

struct state;

int state_new(const char *recording, struct state **out, struct error *err);
void state_free(struct state *s); /* NULL-safe */

/* Takes in what was recorded since, and adds what has changed to `delta`: a document of the page
 * (docs/PAGE.md). With `last` the recording is finished. Returns 0 or a fault. */
int state_advance(struct state *s, bool last, struct text *delta, struct error *err);
/* Looks up names that are missing; takes long, and holds nobody up. */
void state_name(struct state *s);

/* The whole document, made once a step and shared: to be given back with state_release_document. */
struct state_document {
    const char *data;
    size_t len;
};
struct state_document *state_document(struct state *s);
void state_release_document(void *document);

/* The spans that a window of the timeline shows, as a document of the page, added to `out`. */
void state_spans(struct state *s, const struct page_window *w, struct text *out);

/* Everything as it is now but spans, into a fresh profile. */
int state_copy(struct state *s, struct profile *into, struct error *err);
/* A view by its name; see views.h. */
int state_view(struct state *s, const char *name, const struct views_options *o, views_use *use,
               void *context, struct error *err);

/* The same of what was counted since: `mark` is empty at first, and is moved to now. */
struct state_mark {
    struct state_counted *cells; /* by number */
    size_t len, cap;
};
int state_view_since(struct state *s, struct state_mark *mark, const char *name,
                     const struct views_options *o, views_use *use, void *context,
                     struct error *err);
void state_mark_release(struct state_mark *m);

/* A few numbers. */
struct state_facts {
    uint64_t sequence;
    uint64_t duration; /* ns */
    uint64_t advanced; /* when the last step was, monotonic ns */
    uint64_t samples, lost;
    size_t processes, running;
    bool complete;
};
void state_facts(struct state *s, struct state_facts *out);
/* Does this process run, as far as was recorded? */
bool state_runs(struct state *s, int32_t pid);

#endif
