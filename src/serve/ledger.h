/*
 * Between requests and the store. Batches that come at the same time are committed together;
 * while the engine is away they go into a journal on disk, so that acknowledgements go on, and
 * from there into the engine when it is back. Reads borrow a way into the store.
 * For any thread.
 */
#ifndef SONDE_SERVE_LEDGER_H
#define SONDE_SERVE_LEDGER_H

#include "store/store.h"

struct ledger;

struct ledger_options {
    const char *store;        /* URL */
    const char *journal;      /* folder */
    uint64_t journal_max;     /* bytes */
    uint64_t keep, max_bytes; /* retention: ns, bytes of recordings; 0: for ever */
    unsigned events_max;      /* of one job; more is refused by name */
    unsigned jobs_max;
    void (*log)(void *context, const char *level, const char *text); /* from any thread */
    void *context;
};

/* Opens the store; an engine that is away is no failure, but a wrong URL is. */
int ledger_new(const struct ledger_options *o, struct ledger **out, struct error *err);
/* Finishes what was begun. */
void ledger_free(struct ledger *l);

struct ledger_answer {
    int rc;
    bool duplicate;
    bool queued; /* in the journal: durable, not yet to be seen */
    bool busy;   /* too much waits: try again in a second */
    struct error error;
};

/* Adds a batch whose job and key are set, and returns when it is durable or refused. */
void ledger_add(struct ledger *l, struct batch *b, struct ledger_answer *answer);

/* Called on the ledger's thread with batches that have just been stored; must not block. NULL:
 * nobody listens any more, and no call is under way when this returns. */
typedef void ledger_added_fn(void *context, struct batch *const *batches, size_t count);
void ledger_listen(struct ledger *l, ledger_added_fn *fn, void *context);

/* A way into the store that is the caller's alone until it is given back; NULL with a fault. */
struct store *ledger_borrow(struct ledger *l, struct error *err);
/* `broken`: it is closed, and another one opened when needed. */
void ledger_return(struct ledger *l, struct store *s, bool broken);

/* Would the batch give its job more different events than it may have? 0, or FAULT_LIMIT naming
 * one. While the engine is away, what is known from before decides. */
int ledger_check_events(struct ledger *l, const struct batch *b, struct error *err);

struct ledger_state {
    bool away;             /* the engine cannot be reached or written to */
    uint64_t since;        /* monotonic ns */
    uint64_t parts, bytes; /* in the journal */
    uint64_t batches, duplicates, counts, refused, queued, commits;
    struct error why;
};
void ledger_state(struct ledger *l, struct ledger_state *out);
unsigned ledger_jobs_max(const struct ledger *l);

#endif
