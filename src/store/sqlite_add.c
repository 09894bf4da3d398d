/* Batches into SQLite: one transaction for many, a savepoint for each, and their counts all
 * together (sqlite_counts.c); see sqlite.c. */
#include "store/sqlite_internal.h"

static int add_points(struct sqlite_store *s, const struct batch *b, struct error *err)
{
    sqlite3_stmt *st = sqlite_prepare(s, SQL_POINT_ADD, err);
    int rc = st ? 0 : err->fault;
    for (size_t i = 0; !rc && i < b->points.len; i++) {
        int64_t event = 0;
        rc = sqlite_event_number(s, b->points.data[i].event, &event, err);
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

/* All of it but the counts. */
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
    if (sqlite_do(s, SQL_BEGIN, err) || sqlite_renew_names(s, err))
        return fail_all(s, count, outcomes, err);
    for (size_t i = 0; i < count; i++) {
        int rc = add_saved(s, batches[i], &outcomes[i]);
        /* A full disk ends the whole transaction, and no later batch would fare better. */
        if (rc && (sqlite3_get_autocommit(s->db) || rc == FAULT_LIMIT || rc == FAULT_SYSTEM)) {
            *err = outcomes[i].error;
            return fail_all(s, count, outcomes, err);
        }
    }
    if (sqlite_add_counts(s, batches, count, outcomes, err) || sqlite_do(s, SQL_COMMIT, err))
        return fail_all(s, count, outcomes, err);
    return 0;
}
