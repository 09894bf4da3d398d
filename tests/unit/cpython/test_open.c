/* Recognising interpreters, and refusing what is close to one, from a handful of symbols. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <glob.h>
#include <unistd.h>

#include <cmocka.h>

#include "image.h"
#include "interpreter.h"
#include "cpython/version.h"

static struct image image;

/* Symbols of the module: names, and addresses in the image. */
static struct {
    const char *name;
    uint64_t address;
} symbols[16];
static size_t symbol_count;

static bool symbol(void *ctx, const char *name, uint64_t *address)
{
    (void)ctx;
    for (size_t i = 0; i < symbol_count; i++) {
        if (!strcmp(symbols[i].name, name)) {
            *address = symbols[i].address;
            return true;
        }
    }
    return false;
}

static void add(const char *name, uint64_t address)
{
    symbols[symbol_count].name = name;
    symbols[symbol_count++].address = address;
}

static int open_module(const char *path)
{
    struct cpython py;
    const struct cpython_module module = {path, symbol, NULL};
    return cpython_open(&py, &module, &image.memory);
}

/* The symbols of an interpreter whose Py_Version is `hex`. */
static void make(uint32_t hex)
{
    image_init(&image, 11);
    symbol_count = 0;
    add("_PyEval_EvalFrameDefault", 0x12000);
    add("_PyRuntime", IMAGE_RUNTIME);
    add("Py_Version", 0x12800);
    image_put(&image, 0x12800, hex);
}

static void test_versions(void **state)
{
    (void)state;
    make(0x030b07f0);
    assert_int_equal(open_module(NULL), 0);
    make(0x030c00c1); /* a candidate has its release's layout */
    assert_int_equal(open_module(NULL), 0);
    make(0x030e00f0);
    assert_int_equal(open_module(NULL), CPYTHON_DAMAGED); /* it does not describe itself */
    make(0x030f00f0);
    assert_int_equal(open_module(NULL), CPYTHON_TOO_NEW);
    make(0x030d00b1);
    assert_int_equal(open_module(NULL), CPYTHON_PRERELEASE);
    make(0x030500f0);
    assert_int_equal(open_module(NULL), CPYTHON_TOO_OLD);
    make(0x02071200);
    assert_int_equal(open_module(NULL), CPYTHON_TOO_OLD);
    make(0x040000f0);
    assert_int_equal(open_module(NULL), CPYTHON_TOO_OLD);
}

static void test_refusals(void **state)
{
    (void)state;
    make(0x030b07f0);
    symbol_count = 0;
    assert_int_equal(open_module("/usr/bin/python3.11"), CPYTHON_NOT_PYTHON);
    make(0x030b07f0);
    add("_Py_NegativeRefcount", 0x12000);
    assert_int_equal(open_module(NULL), CPYTHON_DEBUG_BUILD);
    make(0x030b07f0);
    assert_int_equal(open_module("/usr/bin/python3.11d"), CPYTHON_DEBUG_BUILD);
    assert_int_equal(open_module("/lib/libpython3.6dm.so.1.0"), CPYTHON_DEBUG_BUILD);
    make(0x030d00f0);
    assert_int_equal(open_module("/lib/libpython3.13t.so.1.0"), CPYTHON_FREE_THREADED);
    make(0x030e00f0);
    assert_int_equal(open_module("/usr/local/bin/python3.14t"), CPYTHON_FREE_THREADED);
    assert_non_null(strstr(cpython_fault_text(CPYTHON_FREE_THREADED), "free-threaded"));
    make(0x030b07f0);
    symbols[1].name = "nothing";
    assert_int_equal(open_module(NULL), CPYTHON_NO_RUNTIME);
    make(0x030b07f0);
    symbols[2].name = "nothing";
    assert_int_equal(open_module(NULL), CPYTHON_NO_VERSION);
    assert_int_equal(open_module("/lib/libpython3.8.so.1.0"), 0);
    assert_int_equal(open_module("/opt/python3.9"), 0);
    assert_int_equal(open_module("/opt/python2.7"), CPYTHON_TOO_OLD);
    assert_int_equal(open_module("/opt/python"), CPYTHON_NO_VERSION);
    for (int fault = 0; fault >= CPYTHON_ABSENT; fault--)
        assert_non_null(cpython_fault_text(fault));
    assert_non_null(cpython_fault_text(-99));
    assert_non_null(cpython_fault_text(7));
}

/* 3.13 describes itself, and may lie. */
static void test_description(void **state)
{
    (void)state;
    make(0x030d01f0);
    assert_int_equal(open_module(NULL), CPYTHON_DAMAGED);
    memcpy(image.bytes + (IMAGE_RUNTIME - IMAGE_BASE), "xdebugpy", 8);
    assert_int_equal(open_module(NULL), CPYTHON_DAMAGED);
    image_put(&image, IMAGE_RUNTIME + 8, 0x030d01f0);
    assert_int_equal(open_module(NULL), 0);
    image_put(&image, IMAGE_RUNTIME + 16, 1);
    assert_int_equal(open_module(NULL), CPYTHON_FREE_THREADED);
    image_put(&image, IMAGE_RUNTIME + 16, 0);
    for (uint64_t word = 24; word < 24 + 8 * 56; word += 8) {
        uint64_t kept = image_get(&image, IMAGE_RUNTIME + word);
        image_put(&image, IMAGE_RUNTIME + word, UINT64_MAX);
        int fault = open_module(NULL);
        assert_true(fault == 0 || fault == CPYTHON_DAMAGED);
        image_put(&image, IMAGE_RUNTIME + word, kept);
    }
    image_put(&image, IMAGE_RUNTIME + 24 + 8 * 26, 4096); /* a frame's caller, out of reach */
    assert_int_equal(open_module(NULL), CPYTHON_DAMAGED);
}

/* 3.6 as it is when stripped: everything has to be read out of two small functions. */
static void test_code(void **state)
{
    (void)state;
    static const uint8_t get_version[] = {0x53, 0xe8, 0, 0,    0,    0,    0x48, 0x8d, 0x1d, 0xf3,
                                          0x00, 0,    0, 0x4c, 0x8d, 0x0d, 0xec, 0x01, 0,    0};
    static const uint8_t head[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8b,
                                   0x05, 0xf5, 0x0f, 0,    0,    0xc3};
    make(0);
    symbol_count = 0;
    add("_PyEval_EvalFrameDefault", 0x12000);
    add("Py_GetVersion", 0x12100);
    add("PyInterpreterState_Head", 0x14000);
    add("_PyThreadState_Current", 0x12f00);
    memcpy(image.bytes + 0x2100, get_version, sizeof(get_version));
    memcpy(image.bytes + 0x4000, head, sizeof(head));
    assert_int_equal(open_module(NULL), CPYTHON_NO_VERSION);
    memcpy(image.bytes + 0x2300, "3.6.15 (default,", 16);
    struct cpython py;
    const struct cpython_module module = {NULL, symbol, NULL};
    assert_int_equal(cpython_open(&py, &module, &image.memory), 0);
    assert_int_equal(py.micro, 15);
    assert_int_equal(py.interpreters, 0x15000);
    assert_int_equal(py.current, 0x12f00);
    image.bytes[0x4004] = 0x49; /* another instruction */
    assert_int_equal(open_module(NULL), CPYTHON_NO_RUNTIME);
}

static void test_parse(void **state)
{
    (void)state;
    struct version v;
    assert_true(version_parse("3.10.13 (main", 13, &v));
    assert_true(v.major == 3 && v.minor == 10 && v.micro == 13 && !v.prerelease);
    assert_true(version_parse("3.9.0rc2", 8, &v) && !v.prerelease);
    assert_true(version_parse("3.9.0a2+", 8, &v) && v.prerelease);
    assert_true(version_parse("3.9.1+", 6, &v) && !v.prerelease);
    assert_true(version_parse("3.9.1", 5, &v));
    assert_false(version_parse("3.9.", 4, &v));
    assert_false(version_parse("3.9.1x", 6, &v));
    assert_false(version_parse("3.9999.1", 8, &v));
    assert_false(version_parse("", 0, &v));
}

/* Python 2.7, where there is one, is refused by name. */
static void test_two(void **state)
{
    (void)state;
    glob_t found;
    struct cpython py;
    struct cpython_memory memory;
    struct interpreter_module module;
    if (glob("~/.pyenv/versions/2.7*/bin/python2.7", GLOB_TILDE, NULL, &found))
        skip();
    struct interpreter_run run =
        interpreter_start(found.gl_pathv[0], "-c", "import time; time.sleep(100)", NULL);
    cpython_memory_remote(&memory, run.pid, NULL);
    int fault = CPYTHON_NOT_PYTHON;
    for (int i = 0; i < 500 && fault == CPYTHON_NOT_PYTHON; i++, usleep(10000))
        fault = interpreter_open(run.pid, &py, &memory, &module);
    assert_int_equal(fault, CPYTHON_TOO_OLD);
    interpreter_stop(&run);
    globfree(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),    cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_description), cmocka_unit_test(test_code),
        cmocka_unit_test(test_parse),       cmocka_unit_test(test_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
