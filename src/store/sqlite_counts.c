/*
 * Counts into SQLite. Those of all batches of a transaction are added together: names that are not
 * known yet are looked up and put in the order of the index that finds them, and counts are summed
 * up and added in the order of their table. So each page is met once, and a function that several
 * batches count is written once.
 */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "store/sqlite_internal.h"

#define NAMES_MAX 400000u /* remembered names; past that, all are forgotten */
#define TOGETHER 200000u  /* counts that are added at a time, to bound the memory for them */
#define VALUE_MAX ((int64_t)1 << 62)

void sqlite_forget_names(struct sqlite_store *s)
{
    names_release(&s->names);
    s->names = (struct names){0};
    free(s->node_id);
    s->node_id = NULL;
    s->node_cap = 0;
}

int sqlite_renew_names(struct sqlite_store *s, struct error *err)
{
    sqlite3_stmt *st = sqlite_prepare(s, SQL_VERSION, err);
    int rc = st ? sqlite_step(s, st, "read", err) : err->fault;
    if (rc < 0)
        return rc;
    int64_t version = sqlite3_column_int64(st, 0);
    sqlite3_reset(st);
    if (version != s->version)
        sqlite_forget_names(s);
    s->version = version;
    return 0;
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

/* The number of a name in the file; put there if it is new. Nobody else writes meanwhile: what is
 * not there now is not there when it is put. */
static int number_of(struct sqlite_store *s, enum sqlite_statement get, enum sqlite_statement put,
                     const char *first, const char *second, int64_t hash, int64_t *id,
                     struct error *err)
{
    for (int pass = 0; pass < 2; pass++) {
        sqlite3_stmt *st = sqlite_prepare(s, pass ? put : get, err);
        if (!st)
            return err->fault;
        sqlite3_bind_text(st, 1, first, -1, SQLITE_STATIC);
        if (second) {
            sqlite3_bind_text(st, 2, second, -1, SQLITE_STATIC);
            sqlite3_bind_int64(st, 3, hash);
        }
        int rc = sqlite_step(s, st, pass ? "keep a name" : "look up a name", err);
        if (rc < 0)
            return rc;
        if (rc == 1) {
            *id = sqlite3_column_int64(st, 0);
            sqlite3_reset(st);
            return 0;
        }
    }
    *id = sqlite3_last_insert_rowid(s->db);
    return 0;
}

/* Its place among the names, found or made; a number of 0 is yet to be found. */
static uint32_t place_of(struct sqlite_store *s, const char *whole)
{
    uint32_t at = names_add(&s->names, whole);
    size_t before = s->node_cap;
    s->node_id = vector_reserve_raw(s->node_id, &s->node_cap, (size_t)at + 1, sizeof *s->node_id);
    if (s->node_cap > before)
        memset(s->node_id + before, 0, (s->node_cap - before) * sizeof *s->node_id);
    return at;
}

/* A slash before it: names of functions begin with a digit. */
int sqlite_event_number(struct sqlite_store *s, const char *name, int64_t *id, struct error *err)
{
    text_clear(&s->scratch);
    text_add_char(&s->scratch, '/');
    text_add(&s->scratch, name);
    uint32_t at = place_of(s, s->scratch.data);
    int rc = 0;
    if (!s->node_id[at])
        rc = number_of(s, SQL_EVENT_GET, SQL_EVENT_PUT, name, NULL, 0, &s->node_id[at], err);
    *id = s->node_id[at];
    return rc;
}

/* A function or stack that was not met before. */
struct stranger {
    int64_t hash;
    uint32_t at; /* among the names */
    const char *executable, *name;
};

/* A count, in the order in which it is added: by set, then by node. */
struct tally_row {
    uint64_t set;
    int64_t node; /* at first its place among the names */
    int64_t value;
};

/* Counts that are added at a time. */
struct tally {
    struct map set_of; /* job and day, kind and event → index of `sets` */
    VECTOR(struct sqlite_set) sets;
    VECTOR(struct stranger) strangers;
    VECTOR(struct tally_row) rows;
    const char *executable; /* that `prefix` is of */
    struct text prefix;
};

static void tally_release(struct tally *t)
{
    map_release(&t->set_of);
    vector_release(&t->sets);
    vector_release(&t->strangers);
    vector_release(&t->rows);
    text_release(&t->prefix);
}

/* The length first: no name can be taken for another one with its parts. */
static uint32_t node_place(struct sqlite_store *s, struct tally *t, const struct batch_count *c)
{
    if (!t->executable || strcmp(t->executable, c->executable) != 0) {
        text_clear(&t->prefix);
        text_format(&t->prefix, "%zu:%s/", strlen(c->executable), c->executable);
        t->executable = c->executable;
    }
    text_clear(&s->scratch);
    text_add_len(&s->scratch, t->prefix.data, t->prefix.len);
    text_add(&s->scratch, c->name);
    size_t known = s->names.len;
    uint32_t at = place_of(s, s->scratch.data);
    if (s->names.len > known)
        *vector_push(&t->strangers) = (struct stranger){.hash = sqlite_hash(c->executable, c->name),
                                                        .at = at,
                                                        .executable = c->executable,
                                                        .name = c->name};
    return at;
}

static uint64_t set_place(struct tally *t, const struct batch *b, enum count_kind kind,
                          int64_t event)
{
    struct sqlite_set set = {
        .job = b->job, .kind = kind, .event = event, .day = store_day(b->time)};
    bool added;
    uint64_t *at = map_put(&t->set_of, (uint64_t)set.job << 32 | (uint64_t)set.day,
                           (uint64_t)event * COUNT_KINDS + kind, t->sets.len, &added);
    if (added)
        *vector_push(&t->sets) = set;
    return *at;
}

static int collect(struct sqlite_store *s, struct tally *t, const struct batch *b,
                   struct error *err)
{
    const char *last = NULL;
    int64_t event = 0;
    int rc = 0;
    for (size_t i = 0; !rc && i < b->counts.len; i++) {
        const struct batch_count *c = &b->counts.data[i];
        if (!last || strcmp(last, c->event) != 0)
            rc = sqlite_event_number(s, c->event, &event, err);
        last = c->event;
        *vector_push(&t->rows) = (struct tally_row){
            .set = set_place(t, b, c->kind, event), .node = node_place(s, t, c), .value = c->value};
    }
    return rc;
}

static int by_hash(const void *a, const void *b)
{
    const struct stranger *x = a, *y = b;
    return x->hash != y->hash ? (x->hash < y->hash ? -1 : 1) : x->at < y->at ? -1 : x->at > y->at;
}

static int number_strangers(struct sqlite_store *s, struct tally *t, struct error *err)
{
    int rc = 0;
    if (t->strangers.len)
        qsort(t->strangers.data, t->strangers.len, sizeof *t->strangers.data, by_hash);
    for (size_t i = 0; !rc && i < t->strangers.len; i++) {
        const struct stranger *one = &t->strangers.data[i];
        rc = number_of(s, SQL_NODE_GET, SQL_NODE_PUT, one->executable, one->name, one->hash,
                       &s->node_id[one->at], err);
    }
    for (size_t i = 0; i < t->rows.len; i++)
        t->rows.data[i].node = s->node_id[t->rows.data[i].node];
    return rc;
}

static int by_place(const void *a, const void *b)
{
    const struct tally_row *x = a, *y = b;
    if (x->set != y->set)
        return x->set < y->set ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* In order, one row for those of the same place. */
static void sum_up(struct tally *t)
{
    struct tally_row *rows = t->rows.data;
    size_t kept = 0;
    if (!t->rows.len)
        return;
    qsort(rows, t->rows.len, sizeof *rows, by_place);
    for (size_t i = 1; i < t->rows.len; i++) {
        if (by_place(&rows[kept], &rows[i]) != 0)
            rows[++kept] = rows[i];
        else if (rows[i].value > VALUE_MAX - rows[kept].value)
            rows[kept].value = VALUE_MAX;
        else
            rows[kept].value += rows[i].value;
    }
    t->rows.len = kept + 1;
}

/* Rows of one set. */
static int add_set(struct sqlite_store *s, struct sqlite_set *set, const struct tally_row *rows,
                   size_t count, struct error *err)
{
    int rc = sqlite_set_open(s, set, err);
    sqlite3_stmt *st = rc ? NULL : sqlite_prepare(s, SQL_COUNT_ADD, err);
    if (!st)
        return err->fault;
    sqlite3_bind_int64(st, 1, set->job);
    sqlite3_bind_int64(st, 2, set->kind);
    sqlite3_bind_int64(st, 3, set->event);
    sqlite3_bind_int64(st, 4, set->day);
    for (size_t i = 0; !rc && i < count; i++) {
        sqlite3_bind_int64(st, 5, rows[i].node);
        sqlite3_bind_int64(st, 6, rows[i].value);
        s->noted = SQLITE_NOTHING_NOTED;
        rc = sqlite_step(s, st, "add counts", err);
        bool fresh = s->noted == SQLITE_NOTHING_NOTED;
        if (!rc)
            rc =
                sqlite_set_note(s, set, rows[i].node, fresh ? rows[i].value : s->noted, fresh, err);
    }
    return rc ? rc : sqlite_set_close(s, set, err);
}

static int add_tally(struct sqlite_store *s, struct tally *t, struct error *err)
{
    int rc = number_strangers(s, t, err);
    if (!rc)
        sum_up(t);
    for (size_t i = 0, n; !rc && i < t->rows.len; i += n) {
        const struct tally_row *rows = t->rows.data + i;
        for (n = 1; i + n < t->rows.len && rows[n].set == rows->set;)
            n++;
        rc = add_set(s, &t->sets.data[rows->set], rows, n, err);
    }
    return rc;
}

int sqlite_add_counts(struct sqlite_store *s, struct batch *const *batches, size_t count,
                      const struct store_outcome *outcomes, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < count;) {
        struct tally t = {.prefix = TEXT_INIT};
        if (s->names.len > NAMES_MAX)
            sqlite_forget_names(s);
        for (; !rc && i < count && t.rows.len < TOGETHER; i++)
            if (!outcomes[i].rc && !outcomes[i].duplicate)
                rc = collect(s, &t, batches[i], err);
        if (!rc)
            rc = add_tally(s, &t, err);
        tally_release(&t);
    }
    return rc;
}
