/* Character data stays character data, whatever the bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "render/xml.h"

#define BAD "\xef\xbf\xbd"

static void expect(const char *in, const char *out)
{
    struct text t = TEXT_INIT;
    xml_escape(&t, in);
    assert_string_equal(t.data, out);
    text_release(&t);
}

static void test_markup(void **state)
{
    (void)state;
    expect("", "");
    expect("a<b>&\"'", "a&lt;b&gt;&amp;&quot;&#39;");
    expect("]]></script>", "]]&gt;&lt;/script&gt;");
}

static void test_what_xml_forbids(void **state)
{
    (void)state;
    expect("a\001\033\177b\n\t\r", "a" BAD BAD BAD "b   ");
    expect("\302\205", BAD);                     /* C1 control */
    expect("\357\277\276\357\277\277", BAD BAD); /* U+FFFE, U+FFFF */
    expect("\360\237\277\276", BAD);             /* U+1FFFE */
    expect("\355\240\200", BAD);                 /* a surrogate */
}

static void test_malformed(void **state)
{
    (void)state;
    expect("\377\376", BAD BAD);
    expect("\300\257", BAD BAD); /* '/' in two bytes */
    expect("\340\200\257", BAD BAD BAD);
    expect("\364\220\200\200", BAD); /* beyond U+10FFFF */
    expect("\342\202", BAD BAD);     /* cut short */
    expect("\342\202<", BAD BAD "&lt;");
}

static void test_kept(void **state)
{
    (void)state;
    expect("é漢🔥 a\314\201", "é漢🔥 a\314\201");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_markup),
        cmocka_unit_test(test_what_xml_forbids),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
