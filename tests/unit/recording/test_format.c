/* The worked example of docs/FORMAT.md is what the writer writes, byte by byte. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "base/text.h"
#include "recording/writer.h"

/* Two samples of one function, as the document tells. */
static int write_example(void)
{
    struct error err = {0};
    struct writer *w;
    int fd = memfd_create("example", 0);
    assert_true(fd >= 0);
    assert_int_equal(writer_new_fd(dup(fd), &w, &err), 0);
    writer_meta(w, "start", "1000");
    uint32_t cpu = writer_event(w, "cpu", UNIT_NANOSECONDS, 300);
    uint32_t p = writer_process(w, 42, WRITER_NONE, 1000);
    writer_exec(w, p, 1001, "app", "/bin/x", "run");
    uint32_t t = writer_thread(w, p, 42, 1000);
    uint32_t m = writer_module(w, CODE_ELF, "/bin/x", (const uint8_t *)"\xab\xcd", 2);
    uint32_t f = writer_function(w, "main", "", "a.c", 3, m);
    uint32_t frame = writer_frame(w, m, 0x1040);
    writer_symbol(w, frame, &(struct writer_location){.function = f, .line = 7}, 1);
    uint32_t stack = writer_stack(w, 0, frame);
    writer_sample(w, cpu, 2000, t, stack, 300);
    writer_sample(w, cpu, 2300, t, stack, 300);
    assert_int_equal(writer_free(w, true, 2600, &err), 0);
    return fd;
}

/* Two hexadecimal digits are a byte; what follows "|" on a line explains it. */
static size_t parse_hex(const char *at, const char *end, uint8_t *bytes, size_t max)
{
    size_t len = 0;
    while (at < end) {
        if (*at == '|')
            at += strcspn(at, "\n");
        else if (isxdigit((unsigned char)at[0]) && isxdigit((unsigned char)at[1])) {
            char digits[3] = {at[0], at[1], 0};
            assert_true(len < max);
            bytes[len++] = (uint8_t)strtoul(digits, NULL, 16);
            at += 2;
        } else {
            at++;
        }
    }
    return len;
}

static void test_worked_example(void **state)
{
    (void)state;
    uint8_t want[1024], got[1024];
    struct error err = {0};
    char *document;
    if (io_slurp(FORMAT_MD, 1 << 20, &document, NULL, &err))
        fail_msg("%s", err.text);
    const char *start = strstr(document, "```hex\n");
    assert_non_null(start);
    const char *end = strstr(start + 7, "```");
    assert_non_null(end);
    size_t wanted = parse_hex(start + 7, end, want, sizeof want);
    int fd = write_example();
    ssize_t len = io_pread(fd, got, sizeof got, 0);
    close(fd);
    assert_int_equal(len, wanted);
    assert_memory_equal(got, want, wanted);
    free(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_worked_example)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
