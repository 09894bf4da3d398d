/* Text: what becomes of bytes and names on their way into a file, a page or a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

static void test_base64(void **state)
{
    (void)state;
    /* The examples of RFC 4648, one after the other in the same text. */
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"},
                                           {"\xff\xef\xbe", "/+++"}};
    struct text all = TEXT_INIT, one = TEXT_INIT;
    size_t len = 0;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        text_clear(&one);
        text_add_base64(&one, pairs[i][0], strlen(pairs[i][0]));
        assert_string_equal(one.data, pairs[i][1]);
        assert_int_equal(one.len, strlen(pairs[i][1]));
        text_add_base64(&all, pairs[i][0], strlen(pairs[i][0]));
        len += strlen(pairs[i][1]);
        assert_int_equal(all.len, len);
        assert_string_equal(all.data + len - strlen(pairs[i][1]), pairs[i][1]);
    }
    text_release(&all);
    text_release(&one);
}

static void test_names_are_harmless(void **state)
{
    (void)state;
    struct text t = TEXT_INIT;
    text_add_printable(&t, "a\x1b[31mb\x7f\xc2\x9b\xc3\xa9\xff");
    assert_string_equal(t.data, "a?[31mb??\xc3\xa9?");
    text_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_base64),
                                       cmocka_unit_test(test_names_are_harmless)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
