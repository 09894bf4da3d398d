/*
 * Files of every format, damaged in many ways: each is refused with the place and the reason, or is
 * a sound profile. Nothing crashes or hangs (sanitizers and the test's time see to that), and
 * nothing is read as if it were empty without a word. What ends by its own account is refused when
 * cut anywhere but where it may end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../../fuzz/read_format.h"
#include "base/memory.h"
#include "corpus.h"

#define MUTANTS 60 /* of one file and one kind of damage */
#define CUTS 40
#define SMALL 1024 /* bytes of a file that is cut at every one of them */

struct reader {
    const char *format, *folder;
    bool ends; /* a file says where it ends */
};

static const struct reader readers[] = {
    {"pprof", "pprof", false}, /* plain ones may end after any field; see below */
    {"perf-data", "perf_data", false},
    {"perf-script", "perf_script", false},
    {"gperftools-cpu", "gperftools_cpu", false},
    {"gperftools-heap", "gperftools_heap", false},
    {"jemalloc-heap", "jemalloc_heap", false},
    {"folded", "folded", false},
    {"callgrind", "callgrind", false},
    {"speedscope", "speedscope", true},
    {"chrome-trace", "chrome_trace", true},
    {"cpuprofile", "cpuprofile", true},
};

static uint64_t random_state;

static size_t below(size_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return n ? (size_t)(random_state % n) : 0;
}

enum damage { FLIP, BYTE, ERASE, DOUBLE, ZEROS, NINES, SWAP, DAMAGES };

/* Exchanges two fields of 1, 2, 4 or 8 bytes, aligned as such are. */
static void swap(uint8_t *out, size_t len)
{
    size_t size = (size_t)1 << below(4), fields = len / size;
    size_t a = below(fields) * size, b = below(fields) * size;
    uint8_t kept[8];
    if (!fields)
        return;
    memcpy(kept, out + a, size);
    memcpy(out + a, out + b, size);
    memcpy(out + b, kept, size);
}

/* A damaged copy in `out`, which has room for twice the file; its length. */
static size_t damage(enum damage kind, const uint8_t *file, size_t len, uint8_t *out)
{
    size_t at = below(len), span = 1 + below(len - at < 64 ? len - at : 64);
    memcpy(out, file, len);
    switch (kind) {
    case FLIP:
        out[at] ^= (uint8_t)(1u << below(8));
        return len;
    case BYTE:
        out[at] = (uint8_t)below(256);
        return len;
    case ERASE:
        memmove(out + at, file + at + span, len - at - span);
        return len - span;
    case DOUBLE:
        memmove(out + at + span, file + at, len - at);
        return len + span;
    case ZEROS:
        memset(out + at, 0, span);
        return len;
    case SWAP:
        swap(out, len);
        return len;
    default: /* a number becomes a large one */
        for (size_t i = at; i < len && i < at + 8; i++)
            out[i] = file[i] >= '0' && file[i] <= '9' ? '9' : file[i];
        return len;
    }
}

static void try_one(const struct reader *r, const uint8_t *data, size_t len, bool must_fail)
{
    struct error err = {0};
    bool empty;
    int rc = read_soundly(r->format, data, len, &empty, &err);
    if (must_fail)
        assert_true(rc < 0);
    assert_false(empty);
    if (rc == FAULT_INPUT && len)
        assert_non_null(strstr(err.text, ", byte "));
}

static bool is_packed(const uint8_t *data, size_t len)
{
    return len > 2 && data[0] == 0x1f && data[1] == 0x8b;
}

/* A trace that is a bare list, by its own rules, may end after any of its events. */
static bool is_list_of_whole_events(const struct reader *r, const uint8_t *data, size_t len)
{
    size_t depth = 0;
    bool quoted = false;
    uint8_t last = 0;
    if (strcmp(r->format, "chrome-trace") != 0 || !len || data[0] != '[')
        return false;
    for (size_t i = 0; i < len; i++) {
        bool escaped = quoted && i && data[i - 1] == '\\';
        if (data[i] == '"' && !escaped)
            quoted = !quoted;
        depth += !quoted && strchr("[{", data[i]);
        depth -= !quoted && strchr("]}", data[i]);
        last = strchr(" \n", data[i]) ? last : data[i];
    }
    return depth == 1 && (last == '}' || last == ',');
}

static void mutate(const void *context, const char *name, const uint8_t *file, size_t len)
{
    const struct reader *r = context;
    (void)name;
    if (len <= 1)
        return;
    uint8_t *copy = memory_alloc(2 * len + 128);
    random_state = 88172645463325252ull + len;
    for (enum damage kind = 0; kind < DAMAGES; kind++)
        for (int i = 0; i < MUTANTS; i++) {
            size_t n = damage(kind, file, len, copy);
            uint8_t *exact = memory_dup(copy, n); /* so that a look behind its end is seen */
            try_one(r, exact, n, false);
            free(exact);
        }
    for (size_t i = 0; i < (len <= SMALL ? len - 1 : CUTS); i++) {
        size_t n = len <= SMALL ? i : below(len - 1);
        uint8_t *exact = memory_dup(file, n + 1);
        try_one(r, exact, n,
                ((r->ends && !is_list_of_whole_events(r, file, n)) || is_packed(file, len)) && n);
        free(exact);
    }
    free(copy);
}

static void test_mutants(void **state)
{
    const struct reader *r = *state;
    corpus_each(r->folder, mutate, r);
}

int main(void)
{
    struct CMUnitTest tests[sizeof readers / sizeof *readers];
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        tests[i] =
            (struct CMUnitTest){readers[i].format, test_mutants, NULL, NULL, (void *)&readers[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
