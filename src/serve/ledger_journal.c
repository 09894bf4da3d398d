/* The ledger's journal, and what it does in between: see ledger.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "serve/ledger_internal.h"

#define PARTS_AT_ONCE 64
#define RETAIN_EVERY (3600ull * 1000000000)

/* "JOB TIME\n", then the batch's text, then its recording. */
int ledger_journal(struct ledger *l, struct batch *b, struct error *err)
{
    struct text head = TEXT_INIT;
    text_format(&head, "%u %" PRIu64 "\n", b->job, b->time);
    batch_write(b, &head);
    struct spool_piece pieces[] = {{head.data, head.len}, {b->recording, b->recording_size}};
    int rc = spool_put(l->journal, b->key, pieces, b->recording_name ? 2 : 1, err);
    text_release(&head);
    return rc;
}

static int parse_part(const char *data, size_t len, struct batch *b, struct error *err)
{
    const char *line = memchr(data, '\n', len);
    char *end = NULL;
    if (!line)
        return error_set(err, FAULT_INPUT, "a part of the journal has no head");
    unsigned long job = strtoul(data, &end, 10);
    uint64_t time = strtoull(end, NULL, 10);
    line++;
    int rc = batch_parse(b, line, len - (size_t)(line - data), err);
    b->job = (uint32_t)job;
    b->time = time;
    return rc;
}

/* 0 when the part is done with, stored or refused for good; else it stays. */
static int replay_part(struct ledger *l, const char *data, size_t len)
{
    struct batch b = {0}, *one = &b;
    struct store_outcome o = {0};
    struct error err = {0};
    int rc = parse_part(data, len, &b, &err);
    if (!rc) {
        struct store *s = ledger_writer(l, &err);
        rc = s ? store_add(s, &one, 1, &o, &err) : FAULT_SYSTEM;
        if (s && rc == FAULT_SYSTEM)
            ledger_lose(l, &err);
        if (!rc && o.rc) {
            rc = o.rc;
            err = o.error;
        }
    }
    batch_release(&b);
    if (rc == FAULT_SYSTEM || rc == FAULT_LIMIT)
        return rc;
    if (rc)
        ledger_say(l, "error", "a batch of the journal was refused: %s", err.text);
    return 0;
}

bool ledger_replay(struct ledger *l)
{
    for (int i = 0; i < PARTS_AT_ONCE; i++) {
        char *name, *data;
        size_t len;
        if (!l->writer && clock_now() - l->tried < 1000000000ull)
            return false;
        if (spool_next(l->journal, NULL, &name, &data, &len, &(struct error){0}) != 1)
            return false;
        int rc = replay_part(l, data, len);
        free(data);
        if (!rc)
            spool_remove(l->journal, name);
        free(name);
        if (rc)
            return false;
        pthread_mutex_lock(&l->lock);
        bool news = l->state.away;
        l->state.away = false;
        pthread_mutex_unlock(&l->lock);
        if (news)
            ledger_say(l, "info", "the store is back");
    }
    return true;
}

void ledger_retain(struct ledger *l)
{
    uint64_t now = clock_now();
    if (!l->writer || (l->retained && now - l->retained < RETAIN_EVERY))
        return;
    l->retained = now;
    struct store_retention how = {
        .now = clock_wall(), .keep = l->options.keep, .max_bytes = l->options.max_bytes};
    struct store_removed removed = {0};
    struct error err = {0};
    if (l->writer->ops->retain(l->writer, &how, &removed, &err))
        ledger_say(l, "error", "could not remove what is old: %s", err.text);
    else if (removed.jobs || removed.counts || removed.recordings)
        ledger_say(l, "info",
                   "removed what is old: %" PRIu64 " jobs, %" PRIu64 " counts, %" PRIu64
                   " recordings",
                   removed.jobs, removed.counts, removed.recordings);
}
