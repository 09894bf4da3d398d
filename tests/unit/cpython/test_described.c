/*
 * A 3.14 as it would lie in memory, made by hand: nothing but its description of itself says where
 * things are. References to code carry tags, and under the interpreter's own frames lies one more,
 * which each thread begins with.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "image.h"

#define VERSION 0x030e00f0u
#define OWNER_INTERPRETER 3
#define OWNER_C_STACK 4

/* Words of the description and what they say; offsets that no other version has. */
static const struct {
    uint32_t word, says;
} description[] = {
    {2, 0x400},                                                        /* of the runtime */
    {4, 16},    {5, 8},    {6, 24},   {9, 40},   {12, 48},             /* of an interpreter ... */
    {13, 64},   {15, 80},  {16, 72},                                   /* ... and its lock */
    {21, 32},   {22, 40},  {23, 88},  {24, 96},  {25, 104}, {26, 248}, /* of a thread */
    {29, 8},    {30, 0},   {31, 64},  {33, 74},                        /* of a frame */
    {37, 112},  {38, 120}, {39, 128}, {40, 136}, {41, 68},  {45, 208}, /* of code */
    {77, 40},   {82, 80},
};

static struct image image;

static bool symbol(void *ctx, const char *name, uint64_t *address)
{
    (void)ctx;
    *address = !strcmp(name, "_PyEval_EvalFrameDefault") ? 0x12000
               : !strcmp(name, "_PyRuntime")             ? IMAGE_RUNTIME
               : !strcmp(name, "Py_Version")             ? 0x12800
               : !strcmp(name, "PyCode_Type")            ? IMAGE_FRAME_TYPE
                                                         : 0;
    return *address != 0;
}

static int open_image(void)
{
    const struct cpython_module module = {NULL, symbol, NULL};
    return cpython_open(&image.py, &module, &image.memory);
}

static void describe(void)
{
    image_init(&image, 14);
    memset(image.bytes, 0, sizeof(image.bytes));
    image_put(&image, 0x12800, VERSION);
    memcpy(image.bytes + (IMAGE_RUNTIME - IMAGE_BASE), "xdebugpy", 8);
    image_put(&image, IMAGE_RUNTIME + 8, VERSION);
    for (size_t i = 0; i < sizeof(description) / sizeof(description[0]); i++)
        image_put(&image, IMAGE_RUNTIME + 24 + 8 * description[i].word, description[i].says);
}

static void put_owner(unsigned i, uint8_t owner)
{
    image.bytes[image_frame_at(i) + image.py.layout.frame_owner - IMAGE_BASE] = owner;
}

/* Two functions, called by the interpreter, on a thread's first frame. */
static void fill(void)
{
    image_fill(&image);
    image_frame(&image, 0, image_frame_at(1));
    image_frame(&image, 1, image_frame_at(2));
    image_frame(&image, 2, image_frame_at(3));
    image_frame(&image, 3, 0);
    put_owner(2, OWNER_INTERPRETER);
    put_owner(3, OWNER_C_STACK);
    image_code(&image, 0);
    image_code(&image, 1);
    image_top(&image, 0);
    uint64_t reference = image_frame_at(0) + image.py.layout.frame_code;
    image_put(&image, reference, image_get(&image, reference) | 1);
}

static void test_frames(void **state)
{
    (void)state;
    struct cpython_thread thread[2];
    struct cpython_frame frame[8];
    struct cpython_code code;
    struct cpython_end end;
    describe();
    assert_int_equal(open_image(), 0);
    assert_int_equal(image.py.minor, 14);
    fill();
    assert_int_equal(cpython_threads(&image.py, &image.memory, 0, thread, 2), 1);
    assert_int_equal(thread[0].state, IMAGE_THREAD);
    assert_int_equal(cpython_walk(&image.py, &image.memory, thread[0].state, frame, 8, &end), 2);
    assert_int_equal(end.reason, CPYTHON_COMPLETE);
    assert_int_equal(frame[0].code, IMAGE_CODE);
    assert_int_equal(frame[1].code, IMAGE_CODE + 0x100);
    assert_false(frame[0].flags & CPYTHON_FRAME_ENTRY);
    assert_true(frame[1].flags & CPYTHON_FRAME_ENTRY);
    assert_int_equal(cpython_code_read(&image.py, &image.memory, frame[0].code, &code), 0);
    assert_string_equal(code.name, "nam\u00e9");
    assert_string_equal(code.filename, "f.py");
    assert_int_equal(code.first_line, 7);
    image_put(&image, IMAGE_THREAD + image.py.layout.thread_frame, image_frame_at(3));
    assert_int_equal(cpython_walk(&image.py, &image.memory, thread[0].state, frame, 8, &end), 0);
    assert_int_equal(end.reason, CPYTHON_COMPLETE); /* it runs no Python now */
    fill();
    put_owner(2, OWNER_C_STACK + 1);
    cpython_walk(&image.py, &image.memory, thread[0].state, frame, 8, &end);
    assert_int_equal(end.reason, CPYTHON_IMPOSSIBLE);
}

static void test_refusals(void **state)
{
    (void)state;
    describe();
    image_put(&image, IMAGE_RUNTIME + 16, 1);
    assert_int_equal(open_image(), CPYTHON_FREE_THREADED);
    describe();
    image_put(&image, IMAGE_RUNTIME + 8, 0x030d00f0); /* another's description */
    assert_int_equal(open_image(), CPYTHON_DAMAGED);
    for (uint32_t word = 0; word < 84; word++) {
        describe();
        image_put(&image, IMAGE_RUNTIME + 24 + 8 * word, UINT64_MAX);
        int fault = open_image();
        assert_true(fault == 0 || fault == CPYTHON_DAMAGED);
    }
    describe();
    image_put(&image, IMAGE_RUNTIME + 24 + 8 * 29, 4096); /* a frame's caller, out of reach */
    assert_int_equal(open_image(), CPYTHON_DAMAGED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_frames),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
