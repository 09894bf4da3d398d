/* Cells and stacks: each distinct one once, however many there are and however they come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "profile/profile.h"

#define STACKS 50000
#define SAMPLES 200000
#define THREADS 3

static void make(struct profile *p)
{
    profile_init(p);
    profile_event_add(p, "cpu", UNIT_NANOSECONDS, 0);
    profile_event_add(p, "page-faults", UNIT_COUNT, 0);
    uint32_t process = profile_process_add(p, 1, PROFILE_NONE, 0);
    for (int i = 0; i < THREADS; i++)
        profile_thread_add(p, process, i + 1, "t", 0);
    uint32_t module = profile_module_add(p, CODE_ELF, "/bin/x", NULL, 0);
    for (uint32_t i = 0; i < STACKS; i++)
        profile_stack_add(p, i / 2, profile_frame_add(p, module, i % 97));
}

static void test_stacks_are_found_again(void **state)
{
    (void)state;
    struct profile p;
    make(&p);
    size_t known = p.stacks.len;
    assert_true(known > STACKS / 2);
    for (uint32_t i = 1; i < known; i++)
        assert_int_equal(profile_stack_add(&p, p.stacks.data[i].parent, p.stacks.data[i].frame), i);
    assert_int_equal(p.stacks.len, known);
    profile_release(&p);
}

/* Of one name in modules that differ in the last bit alone: two functions, not one. */
static void test_functions_of_neighbours(void **state)
{
    (void)state;
    struct profile p;
    profile_init(&p);
    for (uint32_t module = 0; module < 64; module++)
        assert_int_equal(profile_function_add(&p, "_start", "", "", 0, module), module);
    profile_release(&p);
}

static void test_many_at_once_is_one_by_one(void **state)
{
    (void)state;
    struct profile one, many;
    make(&one);
    make(&many);
    srand(3);
    struct profile_sample *samples = calloc(SAMPLES, sizeof *samples);
    for (size_t i = 0; i < SAMPLES; i++) {
        samples[i] = (struct profile_sample){.value = (uint64_t)rand(),
                                             .event = (uint32_t)rand() % 2,
                                             .thread = (uint32_t)rand() % THREADS,
                                             .stack = (uint32_t)rand() % (STACKS / 2)};
        profile_count(&one, samples[i].event, samples[i].thread, samples[i].stack, 1,
                      samples[i].value);
    }
    /* Calls of every size, the empty one too. */
    for (size_t at = 0, step = 0; at < SAMPLES; at += step, step = (step + 7) % 501) {
        size_t left = SAMPLES - at;
        profile_count_samples(&many, samples + at, step < left ? step : left);
    }
    assert_int_equal(one.cells.len, many.cells.len);
    for (int i = 0; i < 2; i++)
        assert_int_equal(one.events.data[i].value, many.events.data[i].value);
    assert_int_equal(one.events.data[0].samples + one.events.data[1].samples, SAMPLES);
    for (uint32_t i = 0; i < one.cells.len; i++) {
        const struct profile_cell *c = &one.cells.data[i], *other = &many.cells.data[i];
        assert_true(c->event == other->event && c->thread == other->thread &&
                    c->stack == other->stack && c->count == other->count &&
                    c->value == other->value);
        assert_int_equal(profile_cell_find(&one, c->event, c->thread, c->stack), i);
    }
    assert_int_equal(profile_cell_find(&one, 0, THREADS, 0), PROFILE_NONE);
    free(samples);
    profile_release(&one);
    profile_release(&many);
}

static void test_an_empty_profile_has_no_cells(void **state)
{
    (void)state;
    struct profile p;
    profile_init(&p);
    assert_int_equal(profile_cell_find(&p, 0, 0, 0), PROFILE_NONE);
    profile_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stacks_are_found_again),
        cmocka_unit_test(test_functions_of_neighbours),
        cmocka_unit_test(test_many_at_once_is_one_by_one),
        cmocka_unit_test(test_an_empty_profile_has_no_cells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
