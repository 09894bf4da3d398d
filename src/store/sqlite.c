/*
 * Jobs in one SQLite file: the store that needs no set-up. Write-ahead log, and a full sync at
 * each commit; many batches share one commit. Names of functions are kept once and counted by
 * number; counts stand in the order of (job, kind, event, day), so that a table of one event is
 * one run of the file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/memory.h"
#include "store/sqlite_internal.h"

#define BUSY_MS 2000 /* for another program to let go of the file; then there is the journal */
#define STEPS_BETWEEN_LOOKS 100000 /* of SQLite's machine: some milliseconds */

/* Found by a number made of both texts: an index of those themselves is thrice the size, and where
 * names are new, all of it is written anew with every few thousand. */
#define NODES                                                                                      \
    "CREATE TABLE IF NOT EXISTS nodes (id INTEGER PRIMARY KEY, executable TEXT NOT NULL,"          \
    " name TEXT NOT NULL, hash INTEGER NOT NULL);"                                                 \
    "CREATE INDEX IF NOT EXISTS nodes_hash ON nodes (hash);"

static const char schema[] =
    "PRAGMA journal_mode = WAL;"
    "PRAGMA synchronous = FULL;"
    "PRAGMA foreign_keys = OFF;"
    "PRAGMA cache_size = -65536;"
    "PRAGMA journal_size_limit = 67108864;"
    "CREATE TABLE IF NOT EXISTS jobs (id INTEGER PRIMARY KEY, info TEXT NOT NULL,"
    " created INTEGER NOT NULL, updated INTEGER NOT NULL, batches INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS keys (job INTEGER NOT NULL, key TEXT NOT NULL,"
    " time INTEGER NOT NULL, PRIMARY KEY (job, key)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS events (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);" NODES
    "CREATE TABLE IF NOT EXISTS counts (job INTEGER NOT NULL, kind INTEGER NOT NULL,"
    " event INTEGER NOT NULL, day INTEGER NOT NULL, node INTEGER NOT NULL,"
    " value INTEGER NOT NULL, PRIMARY KEY (job, kind, event, day, node)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS sets (job INTEGER NOT NULL, kind INTEGER NOT NULL,"
    " event INTEGER NOT NULL, day INTEGER NOT NULL, rows INTEGER NOT NULL, kept INTEGER NOT NULL,"
    " floor INTEGER NOT NULL, PRIMARY KEY (job, kind, event, day)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS largest (job INTEGER NOT NULL, kind INTEGER NOT NULL,"
    " event INTEGER NOT NULL, day INTEGER NOT NULL, node INTEGER NOT NULL,"
    " value INTEGER NOT NULL, PRIMARY KEY (job, kind, event, day, node)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS points (job INTEGER NOT NULL, event INTEGER NOT NULL,"
    " time INTEGER NOT NULL, value INTEGER NOT NULL, PRIMARY KEY (job, event, time))"
    " WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS bench (id INTEGER PRIMARY KEY, job INTEGER NOT NULL,"
    " time INTEGER NOT NULL, key TEXT NOT NULL, host TEXT NOT NULL, name TEXT NOT NULL,"
    " json TEXT NOT NULL);"
    "CREATE INDEX IF NOT EXISTS bench_job ON bench (job, time, id);"
    "CREATE TABLE IF NOT EXISTS recordings (job INTEGER NOT NULL, key TEXT NOT NULL,"
    " name TEXT NOT NULL, host TEXT NOT NULL, time INTEGER NOT NULL, size INTEGER NOT NULL,"
    " data BLOB NOT NULL, PRIMARY KEY (job, key));"
    "PRAGMA user_version = 3;";

/* Files of before there were sets: what is there already is read whole until it grows. */
static const char upgrade_sets[] =
    "INSERT OR IGNORE INTO sets SELECT job, kind, event, day, count(*), 0, -1 FROM counts"
    " GROUP BY job, kind, event, day;";

/* Files of before nodes had a hash. */
static const char upgrade_nodes[] =
    "BEGIN IMMEDIATE; ALTER TABLE nodes RENAME TO nodes_before;" NODES
    "INSERT INTO nodes SELECT id, executable, name, sonde_hash(executable, name) FROM nodes_before;"
    "DROP TABLE nodes_before; PRAGMA user_version = 3; COMMIT";

/* A sum that would not fit stays at 2^62: it is wrong, but a number. */
#define SUM " DO UPDATE SET value = min(value + excluded.value, 4611686018427387904)"
#define NOTED_SUM                                                                                  \
    " DO UPDATE SET value = sonde_note(min(value + excluded.value, 4611686018427387904))"
#define OF_SET " WHERE job = ?1 AND kind = ?2 AND event = ?3 AND day = ?4"

static const char *const sql[SQL_STATEMENTS] = {
    [SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SQL_BEGIN_READ] = "BEGIN",
    [SQL_COMMIT] = "COMMIT",
    [SQL_ROLLBACK] = "ROLLBACK",
    [SQL_SAVE] = "SAVEPOINT batch",
    [SQL_RELEASE] = "RELEASE batch",
    [SQL_UNDO] = "ROLLBACK TO batch",
    [SQL_JOB_PUT] = "INSERT INTO jobs VALUES (?1, ?2, ?3, ?3, 0) ON CONFLICT DO NOTHING",
    [SQL_JOB_NEXT] =
        "SELECT CASE WHEN coalesce(max(id), 2000) < 9999 THEN coalesce(max(id), 2000) + 1 ELSE"
        " (SELECT min(a.id) + 1 FROM (SELECT 2000 AS id UNION ALL SELECT id FROM jobs) a WHERE"
        "  a.id < 9999 AND NOT EXISTS (SELECT 1 FROM jobs b WHERE b.id = a.id + 1)) END FROM jobs",
    [SQL_JOB_GET] = "SELECT id, info, created, updated, batches FROM jobs WHERE id = ?1",
    [SQL_JOB_LIST] = "SELECT id, info, created, updated, batches FROM jobs ORDER BY id",
    [SQL_JOB_TOUCH] =
        "UPDATE jobs SET updated = max(updated, ?2), batches = batches + ?3 WHERE id = ?1",
    [SQL_JOB_REMOVE] = "DELETE FROM jobs WHERE id = ?1",
    [SQL_KEY_PUT] = "INSERT INTO keys VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
    [SQL_KEY_LIST] = "SELECT key, time FROM keys WHERE job = ?1",
    [SQL_EVENT_PUT] = "INSERT INTO events (name) VALUES (?1)",
    [SQL_EVENT_GET] = "SELECT id FROM events WHERE name = ?1",
    [SQL_NODE_PUT] = "INSERT INTO nodes (executable, name, hash) VALUES (?1, ?2, ?3)",
    [SQL_NODE_NAME] = "SELECT executable, name FROM nodes WHERE id = ?1",
    [SQL_NODE_GET] = "SELECT id FROM nodes WHERE hash = ?3 AND name = ?2 AND executable = ?1",
    [SQL_COUNT_ADD] = "INSERT INTO counts VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
                      " ON CONFLICT (job, kind, event, day, node)" NOTED_SUM,
    [SQL_COUNT_GET] = "SELECT value FROM counts" OF_SET " AND node = ?5",
    [SQL_COUNT_AT] = "SELECT value FROM counts" OF_SET " ORDER BY value DESC LIMIT 1 OFFSET ?5",
    [SQL_COUNT_LIST] = "SELECT node, value FROM counts" OF_SET " ORDER BY value DESC LIMIT ?5",
    [SQL_SET_GET] = "SELECT rows, kept, floor FROM sets" OF_SET,
    [SQL_SET_PUT] = "INSERT OR REPLACE INTO sets VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [SQL_SET_LIST] = "SELECT day, rows, kept, floor FROM sets WHERE job = ?1 AND kind = ?2"
                     " AND event = ?3 AND day BETWEEN ?4 AND ?5",
    [SQL_LARGEST_PUT] = "INSERT INTO largest VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT"
                        " (job, kind, event, day, node) DO UPDATE SET"
                        " value = sonde_note(excluded.value)",
    [SQL_LARGEST_AT] = "SELECT value FROM largest" OF_SET " ORDER BY value DESC LIMIT 1 OFFSET ?5",
    [SQL_LARGEST_LIST] = "SELECT node, value FROM largest" OF_SET " ORDER BY value DESC LIMIT ?5",
    [SQL_LARGEST_SIZE] = "SELECT count(*) FROM largest" OF_SET,
    [SQL_LARGEST_FILL] =
        "INSERT INTO largest SELECT * FROM counts" OF_SET " ORDER BY value DESC LIMIT ?5",
    [SQL_LARGEST_THIN] =
        "DELETE FROM largest" OF_SET " AND node NOT IN (SELECT node FROM largest" OF_SET
        " ORDER BY value DESC LIMIT ?5)",
    [SQL_POINT_ADD] = "INSERT INTO points VALUES (?1, ?2, ?3, ?4)"
                      " ON CONFLICT (job, event, time)" SUM,
    [SQL_BENCH_PUT] = "INSERT INTO bench (job, time, key, host, name, json)"
                      " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [SQL_RECORDING_PUT] = "INSERT INTO recordings VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [SQL_COUNT_TOP_DAYS] =
        "SELECT ?6, n.executable, n.name, t.value FROM (SELECT node, sum(value) AS value FROM"
        " counts WHERE job = ?1 AND kind = ?2 AND event = ?3 AND day BETWEEN ?4 AND ?5"
        " GROUP BY node ORDER BY 2 DESC LIMIT ?7) t JOIN nodes n ON n.id = t.node"
        " ORDER BY t.value DESC, n.name, n.executable",
    [SQL_COUNT_ALL] =
        "SELECT e.name, n.executable, n.name, t.value, 0 FROM (SELECT event, node, sum(value) AS"
        " value FROM counts WHERE job = ?1 AND kind = ?2 AND day BETWEEN ?3 AND ?4 GROUP BY event,"
        " node) t JOIN nodes n ON n.id = t.node JOIN events e ON e.id = t.event"
        " WHERE ?5 IS NULL OR e.name = ?5",
    [SQL_COUNT_BY_DAY] =
        "SELECT e.name, n.executable, n.name, c.value, c.day FROM counts c JOIN nodes n ON"
        " n.id = c.node JOIN events e ON e.id = c.event WHERE job = ?1 AND kind = ?2 AND"
        " day BETWEEN ?3 AND ?4 AND (?5 IS NULL OR e.name = ?5)",
    [SQL_EVENT_SUMS] = "SELECT e.name, sum(p.value) FROM points p JOIN events e ON e.id = p.event"
                       " WHERE p.job = ?1 GROUP BY p.event ORDER BY e.name",
    [SQL_CURVE] = "SELECT p.time, p.value FROM points p JOIN events e ON e.id = p.event WHERE"
                  " p.job = ?1 AND e.name = ?2 ORDER BY p.time",
    [SQL_BENCH_LIST] =
        "SELECT time, key, host, name, json FROM bench WHERE job = ?1 ORDER BY time, id",
    [SQL_RECORDING_LIST] =
        "SELECT key, name, host, time, size FROM recordings WHERE job = ?1 ORDER BY time, rowid",
    [SQL_RECORDING_GET] = "SELECT data FROM recordings WHERE job = ?1 AND key = ?2",
    [SQL_VERSION] = "PRAGMA data_version",
    [SQL_PING] = "SELECT count(*) FROM jobs",
};

int sqlite_fault(struct sqlite_store *s, const char *doing, struct error *err)
{
    int code = sqlite3_errcode(s->db) & 0xff;
    const char *why = sqlite3_errmsg(s->db);
    if (code == SQLITE_INTERRUPT && store_go_on(&s->store, err))
        return err->fault;
    if (code == SQLITE_FULL)
        return error_set(err, FAULT_LIMIT, "cannot %s: no room on the disk of %s; free some", doing,
                         s->path);
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
        return error_set(err, FAULT_INPUT,
                         "cannot %s: %s is damaged (%s); 'sqlite3 %s .recover' saves what is left",
                         doing, s->path, why, s->path);
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
        return error_set(err, FAULT_SYSTEM,
                         "cannot %s: another program holds %s; it is tried again", doing, s->path);
    /* A disk that is full when the log is extended is an error of input and output to SQLite. */
    int system = sqlite3_system_errno(s->db);
    if (system == ENOSPC || system == EDQUOT)
        return error_set(err, FAULT_LIMIT, "cannot %s: no room on the disk of %s; free some", doing,
                         s->path);
    return error_set(err, FAULT_SYSTEM, "cannot %s in %s: %s", doing, s->path, why);
}

sqlite3_stmt *sqlite_prepare(struct sqlite_store *s, enum sqlite_statement which, struct error *err)
{
    sqlite3_stmt **st = &s->statement[which];
    if (!*st && sqlite3_prepare_v3(s->db, sql[which], -1, SQLITE_PREPARE_PERSISTENT, st, NULL)) {
        sqlite_fault(s, "read the tables", err);
        return NULL;
    }
    sqlite3_reset(*st);
    return *st;
}

int sqlite_step(struct sqlite_store *s, sqlite3_stmt *st, const char *doing, struct error *err)
{
    int rc = sqlite3_step(st);
    if (rc == SQLITE_ROW)
        return 1;
    if (rc == SQLITE_DONE) {
        sqlite3_reset(st);
        return 0;
    }
    int fault = sqlite_fault(s, doing, err);
    sqlite3_reset(st);
    return fault;
}

int sqlite_do(struct sqlite_store *s, enum sqlite_statement which, struct error *err)
{
    sqlite3_stmt *st = sqlite_prepare(s, which, err);
    return st ? sqlite_step(s, st, "write", err) : err->fault;
}

static void close_store(struct store *store)
{
    struct sqlite_store *s = SQLITE_OF(store);
    for (size_t i = 0; i < SQL_STATEMENTS; i++)
        sqlite3_finalize(s->statement[i]);
    sqlite3_close(s->db);
    sqlite_forget_names(s);
    text_release(&s->scratch);
    free(s->path);
    free(s);
}

static int make_folder_of(const char *path, struct error *err)
{
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return 0;
    char *folder = memory_strndup(path, (size_t)(slash - path));
    int rc = io_make_folders(folder, err);
    free(folder);
    return rc;
}

static bool has(struct sqlite_store *s, const char *query)
{
    sqlite3_stmt *st;
    bool there = !sqlite3_prepare_v2(s->db, query, -1, &st, NULL);
    sqlite3_finalize(st);
    return there;
}

/* A disk that is full must not keep what is there from being read. */
static int make_tables(struct sqlite_store *s, struct error *err)
{
    bool old = has(s, "SELECT batches FROM jobs LIMIT 1");
    bool with_sets = has(s, "SELECT floor FROM sets LIMIT 1");
    if (old && !has(s, "SELECT hash FROM nodes LIMIT 1") &&
        sqlite3_exec(s->db, upgrade_nodes, NULL, NULL, NULL))
        return sqlite_fault(s, "bring the tables up to date", err);
    if (with_sets)
        return sqlite3_exec(s->db,
                            "PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;"
                            "PRAGMA journal_size_limit = 67108864;",
                            NULL, NULL, NULL)
                   ? sqlite_fault(s, "open the tables", err)
                   : 0;
    if (sqlite3_exec(s->db, schema, NULL, NULL, NULL) ||
        (old && sqlite3_exec(s->db, upgrade_sets, NULL, NULL, NULL)))
        return sqlite_fault(s, "make the tables", err);
    return 0;
}

static void hash(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    const char *executable = (const char *)sqlite3_value_text(values[0]);
    const char *name = (const char *)sqlite3_value_text(values[1]);
    sqlite3_result_int64(context, sqlite_hash(executable ? executable : "", name ? name : ""));
}

/* A sum as it is, and a note of it: how a row that is added to tells what it has become. */
static void note(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct sqlite_store *s = sqlite3_user_data(context);
    (void)count;
    s->noted = sqlite3_value_int64(values[0]);
    sqlite3_result_int64(context, s->noted);
}

/* Asked during long statements: other than 0 ends them. */
static int is_unwanted(void *context)
{
    const struct sqlite_store *s = context;
    struct error ignored = {0};
    return store_go_on(&s->store, &ignored);
}

static int open_store(const char *url, struct store **out, struct error *err)
{
    const char *path = url + strlen("sqlite:");
    if (!*path)
        return error_set(err, FAULT_USAGE, "sqlite: needs a path, as in sqlite:jobs.db");
    int rc = make_folder_of(path, err);
    if (rc)
        return rc;
    struct sqlite_store *s = memory_alloc(sizeof *s);
    s->store.ops = &store_sqlite;
    s->path = memory_strdup(path);
    text_init(&s->scratch);
    mode_t mask = umask(077);
    int code = sqlite3_open_v2(path, &s->db,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                                   SQLITE_OPEN_NOFOLLOW,
                               NULL);
    if (!code)
        code = sqlite3_create_function(s->db, "sonde_note", 1, SQLITE_UTF8 | SQLITE_DIRECTONLY, s,
                                       note, NULL, NULL);
    if (!code)
        code = sqlite3_create_function(s->db, "sonde_hash", 2, SQLITE_UTF8 | SQLITE_DIRECTONLY, s,
                                       hash, NULL, NULL);
    if (!code) {
        sqlite3_busy_timeout(s->db, BUSY_MS);
        sqlite3_progress_handler(s->db, STEPS_BETWEEN_LOOKS, is_unwanted, s);
    }
    rc = code ? sqlite_fault(s, "open the store", err) : make_tables(s, err);
    umask(mask);
    if (rc)
        close_store(&s->store);
    else
        *out = &s->store;
    return rc;
}

static int ping(struct store *store, struct error *err)
{
    struct sqlite_store *s = SQLITE_OF(store);
    sqlite3_stmt *st = sqlite_prepare(s, SQL_PING, err);
    int rc = st ? sqlite_step(s, st, "read", err) : err->fault;
    if (st)
        sqlite3_reset(st);
    return rc < 0 ? rc : 0;
}

static void read_job(sqlite3_stmt *st, struct job *job)
{
    job->id = (uint32_t)sqlite3_column_int(st, 0);
    snprintf(job->info, sizeof job->info, "%s", (const char *)sqlite3_column_text(st, 1));
    job->created = (uint64_t)sqlite3_column_int64(st, 2);
    job->updated = (uint64_t)sqlite3_column_int64(st, 3);
    job->batches = (uint64_t)sqlite3_column_int64(st, 4);
}

int sqlite_job_get(struct store *store, uint32_t id, struct job *out, struct error *err)
{
    struct sqlite_store *s = SQLITE_OF(store);
    sqlite3_stmt *st = sqlite_prepare(s, SQL_JOB_GET, err);
    if (!st)
        return err->fault;
    sqlite3_bind_int64(st, 1, id);
    int rc = sqlite_step(s, st, "read the job", err);
    if (rc == 0)
        return error_set(err, FAULT_MISSING, "there is no job %u", id);
    if (rc < 0)
        return rc;
    read_job(st, out);
    sqlite3_reset(st);
    return 0;
}

static int job_list(struct store *store, store_job_fn *fn, void *context, struct error *err)
{
    struct sqlite_store *s = SQLITE_OF(store);
    sqlite3_stmt *st = sqlite_prepare(s, SQL_JOB_LIST, err);
    int rc = st ? 0 : err->fault;
    while (!rc && (rc = sqlite_step(s, st, "list the jobs", err)) == 1) {
        struct job job;
        read_job(st, &job);
        rc = fn(context, &job, err);
    }
    if (st)
        sqlite3_reset(st);
    return rc;
}

static int next_free(struct sqlite_store *s, uint32_t *id, struct error *err)
{
    sqlite3_stmt *st = sqlite_prepare(s, SQL_JOB_NEXT, err);
    int rc = st ? sqlite_step(s, st, "find a free number", err) : err->fault;
    if (rc < 0)
        return rc;
    *id = rc ? (uint32_t)sqlite3_column_int(st, 0) : 0;
    sqlite3_reset(st);
    return *id ? 0 : error_set(err, FAULT_LIMIT, "all numbers from 2001 to 9999 are taken");
}

static int put_job(struct sqlite_store *s, struct job *job, struct error *err)
{
    int rc = job->id ? 0 : next_free(s, &job->id, err);
    sqlite3_stmt *st = rc ? NULL : sqlite_prepare(s, SQL_JOB_PUT, err);
    if (!st)
        return err->fault;
    sqlite3_bind_int64(st, 1, job->id);
    sqlite3_bind_text(st, 2, job->info, -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 3, (int64_t)job->created);
    rc = sqlite_step(s, st, "create the job", err);
    if (!rc && !sqlite3_changes(s->db))
        rc = error_set(err, FAULT_USAGE, "job %u is there already; choose another number", job->id);
    return rc;
}

static int job_create(struct store *store, struct job *job, struct error *err)
{
    struct sqlite_store *s = SQLITE_OF(store);
    int rc = sqlite_do(s, SQL_BEGIN, err);
    if (rc)
        return rc;
    rc = put_job(s, job, err);
    if (!rc)
        rc = sqlite_do(s, SQL_COMMIT, err);
    if (rc)
        sqlite_do(s, SQL_ROLLBACK, &(struct error){0});
    return rc;
}

const char *const sqlite_job_tables[] = {"keys",   "counts", "sets",       "largest",
                                         "points", "bench",  "recordings", NULL};

static int remove_rows(struct sqlite_store *s, uint32_t id, struct error *err)
{
    char line[80];
    for (size_t i = 0; sqlite_job_tables[i]; i++) {
        snprintf(line, sizeof line, "DELETE FROM %s WHERE job = %u", sqlite_job_tables[i], id);
        if (sqlite3_exec(s->db, line, NULL, NULL, NULL))
            return sqlite_fault(s, "remove the job", err);
    }
    return 0;
}

static int job_remove(struct store *store, uint32_t id, struct error *err)
{
    struct sqlite_store *s = SQLITE_OF(store);
    int rc = sqlite_do(s, SQL_BEGIN, err);
    if (rc)
        return rc;
    sqlite3_stmt *st = sqlite_prepare(s, SQL_JOB_REMOVE, err);
    if (st)
        sqlite3_bind_int64(st, 1, id);
    rc = st ? sqlite_step(s, st, "remove the job", err) : err->fault;
    if (!rc && !sqlite3_changes(s->db))
        rc = error_set(err, FAULT_MISSING, "there is no job %u", id);
    if (!rc)
        rc = remove_rows(s, id, err);
    if (!rc)
        rc = sqlite_do(s, SQL_COMMIT, err);
    if (rc)
        sqlite_do(s, SQL_ROLLBACK, &(struct error){0});
    return rc;
}

const struct store_ops store_sqlite = {
    .scheme = "sqlite:",
    .open = open_store,
    .close = close_store,
    .ping = ping,
    .job_create = job_create,
    .job_get = sqlite_job_get,
    .job_list = job_list,
    .job_remove = job_remove,
    .add = sqlite_add,
    .counts = sqlite_counts,
    .events = sqlite_events,
    .curve = sqlite_curve,
    .bench = sqlite_bench,
    .recordings = sqlite_recordings,
    .recording = sqlite_recording,
    .keys = sqlite_keys,
    .retain = sqlite_retain,
};
