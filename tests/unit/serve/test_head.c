/* The head of a request, and the chunked coding: what is accepted, and that nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "serve/chunks.h"
#include "serve/head.h"

static int parse(const char *bytes, struct head *h, char **kept)
{
    const char *why = NULL;
    *kept = memory_strdup(bytes);
    int status = head_parse(*kept, strlen(bytes), h, &why);
    if (status)
        assert_non_null(why);
    return status;
}

static void reads_a_request(void **state)
{
    struct head h;
    char *kept;
    (void)state;
    assert_int_equal(parse("POST /api/a%20b?x=1&name=a+%26b&flag HTTP/1.1\r\nHost: localhost\r\n"
                           "Content-Length: 12\r\nX-Thing:  two words \r\n\r\n",
                           &h, &kept),
                     0);
    assert_int_equal(h.method, HTTP_POST);
    assert_string_equal(h.path, "/api/a b");
    assert_string_equal(head_query(&h, "name"), "a &b");
    assert_string_equal(head_query(&h, "flag"), "");
    assert_null(head_query(&h, "y"));
    assert_string_equal(head_header(&h, "x-thing"), "two words");
    assert_int_equal(h.length, 12);
    assert_true(h.keep_alive);
    free(kept);
}

static void refuses_what_is_ambiguous(void **state)
{
    static const struct {
        const char *bytes;
        int status;
    } cases[] = {
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/1.1\nHost: a\n\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
         400},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501},
        {"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400},
        {"GET http://x/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
        {"BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 501},
        {"GET /\r\nHost: a\r\n\r\n", 400},
        {"\r\n", 400},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct head h;
        char *kept;
        int status = parse(cases[i].bytes, &h, &kept);
        if (status != cases[i].status)
            fail_msg("%s gives %d, not %d", cases[i].bytes, status, cases[i].status);
        free(kept);
    }
}

static void decodes_chunks_at_any_cut(void **state)
{
    static const char body[] = "5;x=y\r\nhello\r\n10\r\n, world, hello!!\r\n0\r\nT: r\r\n\r\nrest";
    (void)state;
    for (size_t step = 1; step < sizeof body; step++) {
        struct chunks c = {0};
        struct text out = TEXT_INIT;
        size_t at = 0;
        while (at < sizeof body - 1 && c.state != CHUNK_DONE) {
            size_t n = sizeof body - 1 - at < step ? sizeof body - 1 - at : step;
            at += chunks_feed(&c, body + at, n, 100, &out);
        }
        assert_int_equal(c.state, CHUNK_DONE);
        assert_string_equal(out.data, "hello, world, hello!!");
        assert_string_equal(body + at, "rest");
        text_release(&out);
    }
}

static void bounds_chunks(void **state)
{
    struct chunks c = {0};
    struct text out = TEXT_INIT;
    (void)state;
    chunks_feed(&c, "14\r\n01234567890123456789\r\n", 26, 10, &out);
    assert_int_equal(out.len, 11);
    text_release(&out);
    static const char *const bad[] = {"x\r\n", "\r\n", "5\n", "1\r\nab", "1111111111111111\r\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        c = (struct chunks){0};
        chunks_feed(&c, bad[i], strlen(bad[i]), 10, &out);
        assert_int_equal(c.state, CHUNK_BAD);
        text_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_request),
        cmocka_unit_test(refuses_what_is_ambiguous),
        cmocka_unit_test(decodes_chunks_at_any_cut),
        cmocka_unit_test(bounds_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
