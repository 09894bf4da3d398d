/* What is true now; see state.h. */
#include "live/state.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "live/follow.h"
#include "live/naming.h"
#include "profile/merge.h"

struct document {
    struct state_document shown; /* first, so that one is the other */
    struct text bytes;
    unsigned owners;
};

struct state {
    pthread_mutex_t lock;
    struct follow *follow;
    struct naming *naming; /* of the thread that is in state_name */
    struct page *page;
    struct document *document; /* of the present sequence, or NULL */
    uint64_t recorded;         /* time of the last record */
    uint64_t advanced;
};

int state_new(const char *recording, struct state **out, struct error *err)
{
    struct state *s = memory_alloc(sizeof *s);
    int rc = follow_new(recording, true, &s->follow, err);
    if (rc) {
        free(s);
        return rc;
    }
    pthread_mutex_init(&s->lock, NULL);
    s->naming = naming_new();
    *out = s;
    return 0;
}

void state_release_document(void *document)
{
    struct document *d = document;
    if (!d || __atomic_sub_fetch(&d->owners, 1, __ATOMIC_ACQ_REL))
        return;
    text_release(&d->bytes);
    free(d);
}

void state_free(struct state *s)
{
    if (!s)
        return;
    state_release_document(s->document);
    page_free(s->page);
    naming_free(s->naming);
    follow_free(s->follow);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static int add_to_text(void *context, const char *data, size_t len)
{
    text_add_len(context, data, len);
    return 0;
}

/* The page wants the recording's own facts from its beginning: it begins with the first block. */
static void advance_page(struct state *s, struct text *delta)
{
    struct profile *p = follow_profile(s->follow);
    if (s->page)
        page_update(s->page);
    else
        s->page = page_new(p, &(struct page_options){.live = true});
    samples_release(&p->samples);
    page_delta(s->page, add_to_text, delta);
    state_release_document(s->document);
    s->document = NULL;
}

#define LATE 1500000000ull /* ns; what is recorded is here by then */

/* Time goes by also while nothing is recorded. */
static int read_on(struct state *s, bool last, struct error *err)
{
    struct profile *p = follow_profile(s->follow);
    p->end = s->recorded;
    int rc = follow_read(s->follow, last, err);
    s->recorded = p->end;
    if (!p->complete && !last && p->start && p->end + LATE < s->advanced)
        p->end = s->advanced - LATE;
    return rc;
}

int state_advance(struct state *s, bool last, struct text *delta, struct error *err)
{
    pthread_mutex_lock(&s->lock);
    s->advanced = clock_now();
    int rc = read_on(s, last, err);
    if (rc > 0 || s->page)
        advance_page(s, delta);
    pthread_mutex_unlock(&s->lock);
    return rc < 0 ? rc : 0;
}

void state_name(struct state *s)
{
    pthread_mutex_lock(&s->lock);
    bool some = naming_gather(s->naming, follow_profile(s->follow));
    pthread_mutex_unlock(&s->lock);
    if (!some)
        return;
    naming_run(s->naming);
    pthread_mutex_lock(&s->lock);
    naming_apply(s->naming, follow_profile(s->follow));
    pthread_mutex_unlock(&s->lock);
}

struct state_document *state_document(struct state *s)
{
    pthread_mutex_lock(&s->lock);
    struct document *d = s->document;
    if (!d && s->page) {
        d = memory_alloc(sizeof *d);
        text_init(&d->bytes);
        page_write(s->page, add_to_text, &d->bytes);
        d->shown = (struct state_document){d->bytes.data, d->bytes.len};
        d->owners = 1;
        s->document = d;
    }
    if (d)
        __atomic_add_fetch(&d->owners, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&s->lock);
    return d ? &d->shown : NULL;
}

struct state_counted {
    uint64_t count, value;
};

void state_mark_release(struct state_mark *m)
{
    free(m->cells);
    *m = (struct state_mark){0};
}

/* Takes from the copy what was counted before, and moves the mark. The cells of a fresh copy have
 * the numbers of the original. */
static void keep_since(struct profile *copy, struct state_mark *m)
{
    for (size_t i = 0; i < copy->cells.len; i++) {
        struct profile_cell *c = &copy->cells.data[i];
        struct state_counted now = {c->count, c->value};
        if (i < m->len) {
            struct profile_event *e = &copy->events.data[c->event];
            c->count -= m->cells[i].count;
            c->value -= m->cells[i].value;
            e->samples -= m->cells[i].count;
            e->value -= m->cells[i].value;
        }
        m->cells = vector_reserve_raw(m->cells, &m->cap, i + 1, sizeof *m->cells);
        m->cells[i] = now;
    }
    m->len = copy->cells.len;
}

int state_copy(struct state *s, struct profile *into, struct error *err)
{
    pthread_mutex_lock(&s->lock);
    struct profile *p = follow_profile(s->follow);
    size_t spans = p->spans.len;
    p->spans.len = 0; /* no view reads them, and there may be millions */
    int rc = profile_merge(into, p, err);
    p->spans.len = spans;
    pthread_mutex_unlock(&s->lock);
    return rc;
}

void state_spans(struct state *s, const struct page_window *w, struct text *out)
{
    pthread_mutex_lock(&s->lock);
    if (s->page)
        page_spans(s->page, w, add_to_text, out);
    pthread_mutex_unlock(&s->lock);
}

int state_view(struct state *s, const char *name, const struct views_options *o, views_use *use,
               void *context, struct error *err)
{
    return state_view_since(s, NULL, name, o, use, context, err);
}

int state_view_since(struct state *s, struct state_mark *mark, const char *name,
                     const struct views_options *o, views_use *use, void *context,
                     struct error *err)
{
    struct profile copy;
    profile_init(&copy);
    int rc = state_copy(s, &copy, err);
    if (!rc && mark)
        keep_since(&copy, mark);
    if (!rc)
        rc = views_make(name, &copy, o, use, context, err);
    profile_release(&copy);
    return rc;
}

void state_facts(struct state *s, struct state_facts *out)
{
    pthread_mutex_lock(&s->lock);
    const struct profile *p = follow_profile(s->follow);
    *out = (struct state_facts){.sequence = s->page ? page_sequence(s->page) : 0,
                                .duration = p->end > p->start ? p->end - p->start : 0,
                                .advanced = s->advanced,
                                .lost = profile_lost(p),
                                .processes = p->processes.len,
                                .complete = p->complete};
    for (size_t i = 0; i < p->events.len; i++)
        if (p->events.data[i].unit != UNIT_BYTES)
            out->samples += p->events.data[i].samples;
    for (size_t i = 0; i < p->processes.len; i++)
        out->running += !p->processes.data[i].ended;
    pthread_mutex_unlock(&s->lock);
}

bool state_runs(struct state *s, int32_t pid)
{
    bool runs = false;
    pthread_mutex_lock(&s->lock);
    const struct profile *p = follow_profile(s->follow);
    for (size_t i = 0; i < p->processes.len; i++)
        runs |= p->processes.data[i].pid == pid && !p->processes.data[i].ended;
    pthread_mutex_unlock(&s->lock);
    return runs;
}
