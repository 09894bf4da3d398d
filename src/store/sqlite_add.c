/* Batches into SQLite: one transaction for many, a savepoint for each; see sqlite.c. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/sqlite_internal.h"

#define NAMES_MAX 400000u /* remembered names; past that, all are forgotten */

void sqlite_forget_names(struct sqlite_store *s)
{
    names_release(&s->names);
    s->names = (struct names){0};
    free(s->node_id);
    s->node_id = NULL;
    s->node_cap = 0;
}

/* FNV-1a, with the end of the first text between the two. */
int64_t sqlite_hash(const char *executable, const char *name)
{
    uint32_t h = 2166136261u;
    for (; *executable; executable++)
        h = (h ^ (unsigned char)*executable) * 16777619u;
    for (h *= 16777619u; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    return h;
}

static sqlite3_stmt *with_name(struct sqlite_store *s, enum sqlite_statement which,
                               const char *first, const char *second, struct error *err)
{
    sqlite3_stmt *st = sqlite_prepare(s, which, err);
    if (!st)
        return NULL;
    sqlite3_bind_text(st, 1, first, -1, SQLITE_STATIC);
    if (second) {
        sqlite3_bind_text(st, 2, second, -1, SQLITE_STATIC);
        sqlite3_bind_int64(st, 3, sqlite_hash(first, second));
    }
    return st;
}

/* 1 if it is there, 0 if not. */
static int find_name(struct sqlite_store *s, enum sqlite_statement get, const char *first,
                     const char *second, int64_t *id, struct error *err)
{
    sqlite3_stmt *st = with_name(s, get, first, second, err);
    int rc = st ? sqlite_step(s, st, "look up a name", err) : err->fault;
    if (rc == 1)
        *id = sqlite3_column_int64(st, 0);
    if (st)
        sqlite3_reset(st);
    return rc;
}

/* Nobody else writes meanwhile: what is not there now is not there when it is put. */
static int number_of(struct sqlite_store *s, enum sqlite_statement get, enum sqlite_statement put,
                     const char *first, const char *second, int64_t *id, struct error *err)
{
    int rc = find_name(s, get, first, second, id, err);
    if (rc)
        return rc < 0 ? rc : 0;
    sqlite3_stmt *st = with_name(s, put, first, second, err);
    rc = st ? sqlite_step(s, st, "keep a name", err) : err->fault;
    *id = sqlite3_last_insert_rowid(s->db);
    return rc;
}

/* Remembers what the file says, by a text that no other name has. */
static int remembered(struct sqlite_store *s, enum sqlite_statement get, enum sqlite_statement put,
                      const char *first, const char *second, int64_t *id, struct error *err)
{
    struct text *whole = &s->scratch;
    char digits[24];
    if (s->names.len > NAMES_MAX)
        sqlite_forget_names(s);
    /* The length first: no name can be taken for another one with its parts. */
    text_clear(whole);
    text_add_len(whole, digits, (size_t)snprintf(digits, sizeof digits, "%zu:", strlen(first)));
    text_add(whole, first);
    if (second) {
        text_add_char(whole, '/');
        text_add(whole, second);
    }
    uint32_t at = names_find(&s->names, whole->data);
    int rc = 0;
    if (at != NAMES_NONE) {
        *id = s->node_id[at];
    } else if (!(rc = number_of(s, get, put, first, second, id, err))) {
        at = names_add(&s->names, whole->data);
        s->node_id = vector_reserve_raw(s->node_id, &s->node_cap, (size_t)at + 1, sizeof *id);
        s->node_id[at] = *id;
    }
    return rc;
}

static int event_number(struct sqlite_store *s, const char *name, int64_t *id, struct error *err)
{
    return remembered(s, SQL_EVENT_GET, SQL_EVENT_PUT, name, NULL, id, err);
}

struct numbered {
    int64_t kind, event, node, value;
};

static int by_key(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->event != y->event)
        return x->event < y->event ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* Names into numbers, in the order in which the table has its rows. */
static int number_counts(struct sqlite_store *s, const struct batch *b, struct numbered *out,
                         struct error *err)
{
    const char *last = NULL;
    int64_t event = 0;
    int rc = 0;
    for (size_t i = 0; !rc && i < b->counts.len; i++) {
        const struct batch_count *c = &b->counts.data[i];
        out[i] = (struct numbered){.kind = c->kind, .value = c->value};
        if (!last || strcmp(last, c->event) != 0)
            rc = event_number(s, c->event, &event, err);
        last = c->event;
        out[i].event = event;
        if (!rc)
            rc = remembered(s, SQL_NODE_GET, SQL_NODE_PUT, c->executable, c->name, &out[i].node,
                            err);
    }
    qsort(out, b->counts.len, sizeof *out, by_key);
    return rc;
}

/* Rows of one kind and event. */
static int add_set(struct sqlite_store *s, const struct batch *b, const struct numbered *rows,
                   size_t count, sqlite3_stmt *st, struct error *err)
{
    struct sqlite_set set = {
        .job = b->job, .kind = rows->kind, .event = rows->event, .day = store_day(b->time)};
    int rc = sqlite_set_open(s, &set, err);
    sqlite3_bind_int64(st, 1, set.job);
    sqlite3_bind_int64(st, 2, set.kind);
    sqlite3_bind_int64(st, 3, set.event);
    sqlite3_bind_int64(st, 4, set.day);
    for (size_t i = 0; !rc && i < count; i++) {
        sqlite3_bind_int64(st, 5, rows[i].node);
        sqlite3_bind_int64(st, 6, rows[i].value);
        s->noted = SQLITE_NOTHING_NOTED;
        rc = sqlite_step(s, st, "add counts", err);
        bool fresh = s->noted == SQLITE_NOTHING_NOTED;
        if (!rc)
            rc = sqlite_set_note(s, &set, rows[i].node, fresh ? rows[i].value : s->noted, fresh,
                                 err);
    }
    return rc ? rc : sqlite_set_close(s, &set, err);
}

static int add_counts(struct sqlite_store *s, const struct batch *b, struct error *err)
{
    sqlite3_stmt *st = sqlite_prepare(s, SQL_COUNT_ADD, err);
    if (!st)
        return err->fault;
    struct numbered *rows = memory_array(b->counts.len + 1, sizeof *rows);
    int rc = number_counts(s, b, rows, err);
    for (size_t i = 0, n; !rc && i < b->counts.len; i += n) {
        n = 1;
        while (i + n < b->counts.len && rows[i + n].kind == rows[i].kind &&
               rows[i + n].event == rows[i].event)
            n++;
        rc = add_set(s, b, rows + i, n, st, err);
    }
    free(rows);
    return rc;
}

static int add_points(struct sqlite_store *s, const struct batch *b, struct error *err)
{
    sqlite3_stmt *st = sqlite_prepare(s, SQL_POINT_ADD, err);
    int rc = st ? 0 : err->fault;
    for (size_t i = 0; !rc && i < b->points.len; i++) {
        int64_t event = 0;
        rc = event_number(s, b->points.data[i].event, &event, err);
        if (rc)
            break;
        sqlite3_bind_int64(st, 1, b->job);
        sqlite3_bind_int64(st, 2, event);
        sqlite3_bind_int64(st, 3, (int64_t)b->points.data[i].time);
        sqlite3_bind_int64(st, 4, b->points.data[i].value);
        rc = sqlite_step(s, st, "add to the curves", err);
    }
    return rc;
}

static int add_bench(struct sqlite_store *s, const struct batch *b, struct error *err)
{
    sqlite3_stmt *st = sqlite_prepare(s, SQL_BENCH_PUT, err);
    int rc = st ? 0 : err->fault;
    for (size_t i = 0; !rc && i < b->bench.len; i++) {
        sqlite3_bind_int64(st, 1, b->job);
        sqlite3_bind_int64(st, 2, (int64_t)b->time);
        sqlite3_bind_text(st, 3, b->key, -1, SQLITE_STATIC);
        sqlite3_bind_text(st, 4, b->host, -1, SQLITE_STATIC);
        sqlite3_bind_text(st, 5, b->bench.data[i].name, -1, SQLITE_STATIC);
        sqlite3_bind_text(st, 6, b->bench.data[i].json, -1, SQLITE_STATIC);
        rc = sqlite_step(s, st, "add a result", err);
    }
    return rc;
}

static int add_recording(struct sqlite_store *s, const struct batch *b, struct error *err)
{
    if (!b->recording_name)
        return 0;
    sqlite3_stmt *st = sqlite_prepare(s, SQL_RECORDING_PUT, err);
    if (!st)
        return err->fault;
    sqlite3_bind_int64(st, 1, b->job);
    sqlite3_bind_text(st, 2, b->key, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 3, b->recording_name, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 4, b->host, -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 5, (int64_t)b->time);
    sqlite3_bind_int64(st, 6, (int64_t)b->recording_size);
    sqlite3_bind_blob64(st, 7, b->recording, b->recording_size, SQLITE_STATIC);
    int rc = sqlite_step(s, st, "keep the recording", err);
    sqlite3_clear_bindings(st);
    return rc;
}

/* 1 if the key is new, 0 if it was there. */
static int put_key(struct sqlite_store *s, uint32_t job, const char *key, uint64_t time,
                   struct error *err)
{
    sqlite3_stmt *st = sqlite_prepare(s, SQL_KEY_PUT, err);
    if (!st)
        return err->fault;
    sqlite3_bind_int64(st, 1, job);
    sqlite3_bind_text(st, 2, key, -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 3, (int64_t)time);
    int rc = sqlite_step(s, st, "keep the key", err);
    return rc ? rc : sqlite3_changes(s->db) > 0;
}

/* A batch that moved here from another store carries the keys of others and counts as those. */
static int put_keys(struct sqlite_store *s, const struct batch *b, uint64_t *fresh,
                    struct error *err)
{
    *fresh = !batch_key_moved(b->key);
    for (size_t i = 0; i < b->keys.len; i++) {
        int rc = put_key(s, b->job, b->keys.data[i].key, b->keys.data[i].time, err);
        if (rc < 0)
            return rc;
        *fresh += (uint64_t)rc;
    }
    return 0;
}

static int touch_job(struct sqlite_store *s, const struct batch *b, uint64_t batches,
                     struct error *err)
{
    sqlite3_stmt *st = sqlite_prepare(s, SQL_JOB_TOUCH, err);
    if (!st)
        return err->fault;
    sqlite3_bind_int64(st, 1, b->job);
    sqlite3_bind_int64(st, 2, (int64_t)b->time);
    sqlite3_bind_int64(st, 3, (int64_t)batches);
    int rc = sqlite_step(s, st, "update the job", err);
    if (!rc && !sqlite3_changes(s->db))
        rc = error_set(err, FAULT_MISSING, "there is no job %u", b->job);
    return rc;
}

static int add_one(struct sqlite_store *s, const struct batch *b, bool *duplicate,
                   struct error *err)
{
    struct job job;
    uint64_t batches;
    int rc = sqlite_job_get(&s->store, b->job, &job, err);
    if (rc)
        return rc;
    rc = put_key(s, b->job, b->key, b->time, err);
    if (rc < 0)
        return rc;
    *duplicate = rc == 0;
    if (*duplicate)
        return 0;
    rc = put_keys(s, b, &batches, err);
    if (!rc)
        rc = touch_job(s, b, batches, err);
    if (!rc)
        rc = add_counts(s, b, err);
    if (!rc)
        rc = add_points(s, b, err);
    if (!rc)
        rc = add_bench(s, b, err);
    return rc ? rc : add_recording(s, b, err);
}

static int add_saved(struct sqlite_store *s, const struct batch *b, struct store_outcome *o)
{
    *o = (struct store_outcome){0};
    o->rc = sqlite_do(s, SQL_SAVE, &o->error);
    if (o->rc)
        return o->rc;
    o->rc = add_one(s, b, &o->duplicate, &o->error);
    struct error ignored = {0};
    if (o->rc) {
        sqlite_forget_names(s); /* some of them may be gone again */
        if (!sqlite3_get_autocommit(s->db))
            sqlite_do(s, SQL_UNDO, &ignored);
    }
    if (!sqlite3_get_autocommit(s->db))
        sqlite_do(s, SQL_RELEASE, &ignored);
    return o->rc;
}

static int fail_all(struct sqlite_store *s, size_t count, struct store_outcome *outcomes,
                    const struct error *err)
{
    sqlite_forget_names(s);
    if (!sqlite3_get_autocommit(s->db))
        sqlite_do(s, SQL_ROLLBACK, &(struct error){0});
    for (size_t i = 0; i < count; i++)
        outcomes[i] = (struct store_outcome){.rc = err->fault, .error = *err};
    return err->fault;
}

int sqlite_add(struct store *store, struct batch *const *batches, size_t count,
               struct store_outcome *outcomes, struct error *err)
{
    struct sqlite_store *s = SQLITE_OF(store);
    if (sqlite_do(s, SQL_BEGIN, err))
        return fail_all(s, count, outcomes, err);
    for (size_t i = 0; i < count; i++) {
        int rc = add_saved(s, batches[i], &outcomes[i]);
        /* A full disk ends the whole transaction, and no later batch would fare better. */
        if (rc && (sqlite3_get_autocommit(s->db) || rc == FAULT_LIMIT || rc == FAULT_SYSTEM)) {
            *err = outcomes[i].error;
            return fail_all(s, count, outcomes, err);
        }
    }
    if (sqlite_do(s, SQL_COMMIT, err))
        return fail_all(s, count, outcomes, err);
    return 0;
}
