/* What the ledger's files share. */
#ifndef SONDE_SERVE_LEDGER_INTERNAL_H
#define SONDE_SERVE_LEDGER_INTERNAL_H

#include <pthread.h>

#include "serve/ledger.h"
#include "base/map.h"
#include "store/spool.h"

#define LEDGER_STORES 8 /* ways into the store that are kept open */

/* A batch on its way, on the stack of the thread that waits for it. */
struct ledger_entry {
    struct ledger_entry *next;
    struct batch *batch;
    struct ledger_answer *answer;
    bool done;
};

struct ledger {
    struct ledger_options options;
    pthread_mutex_t lock;
    pthread_cond_t arrived, finished;
    pthread_t thread;
    bool running, closing;
    struct ledger_entry *first, **end;
    size_t waiting, waiting_bytes;
    struct store *writer; /* of the thread; NULL while the engine is away */
    uint64_t tried;       /* when opening or writing failed last, monotonic ns */
    uint64_t retained;    /* when what is old was removed last */
    struct spool *journal;
    struct store *idle[LEDGER_STORES];
    size_t idle_count;
    struct ledger_state state;
    ledger_added_fn *added;
    void *added_context;
    struct ledger_events *events;
};

/* The events that jobs are known to have; see ledger_events.c. */
struct ledger_events *ledger_events_new(void);
void ledger_events_free(struct ledger_events *e);

void ledger_say(struct ledger *l, const char *level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* On the ledger's thread. The writer, opened if it can be; NULL while the engine is away. */
struct store *ledger_writer(struct ledger *l, struct error *err);
/* The engine failed: it is away from now on. */
void ledger_lose(struct ledger *l, const struct error *err);
/* Into the journal, durably. */
int ledger_journal(struct ledger *l, struct batch *b, struct error *err);
/* From the journal into the store, some parts; true if there may be more, and the engine is there.
 */
bool ledger_replay(struct ledger *l);
/* Removes what is old, once an hour. */
void ledger_retain(struct ledger *l);
#endif
