/* Walks of our own stack, against glibc's backtrace() and against what we know we called. */
#include <alloca.h>
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <cmocka.h>

#include "self.h"
#include "unwind/walk.h"

#define DEPTH 256

static struct unwind_map map;
static struct unwind_cache cache;

struct stack {
    uint64_t address[DEPTH];
    size_t count;
    struct unwind_end end;
};

/* Our callers and theirs, from the outermost in: under a sanitizer backtrace() has a frame more. */
static void check_against_backtrace(const struct stack *s, void *const *theirs, int count)
{
    assert_int_equal(s->end.reason, UNWIND_COMPLETE);
    assert_true((size_t)count >= s->count && (size_t)count <= s->count + 1);
    for (size_t i = 1; i < s->count; i++)
        assert_int_equal(s->address[s->count - i], (uint64_t)theirs[(size_t)count - i]);
}

/* Walks here by both ways, cold and warm, and compares with backtrace(). */
static __attribute__((noinline)) void check_here(uint64_t high)
{
    void *theirs[DEPTH];
    struct stack s;
    struct unwind_regs regs;
    int count = backtrace(theirs, DEPTH);
    for (int i = 0; i < 2; i++) {
        s.count = unwind_here(&map, high, &cache, s.address, DEPTH, &s.end);
        check_against_backtrace(&s, theirs, count);
    }
    unwind_regs_here(&regs);
    uint64_t sp = regs.value[UNWIND_SP];
    const struct unwind_memory m = {.start = sp, .data = (const void *)sp, .size = high - sp};
    s.count = unwind_walk(&map, &regs, &m, s.address, DEPTH, &s.end);
    check_against_backtrace(&s, theirs, count);
}

static struct unwind_guesses guesses;

/* The words that a walk read hold every return address that it found, in order. */
static void check_trace(const struct unwind_call *call, uint64_t high, const struct stack *s)
{
    struct unwind_trace trace;
    const uint64_t *words = (const uint64_t *)call->sp;
    size_t at = 0;
    assert_true(unwind_trace(&map, call, high, &cache, &trace));
    for (size_t i = 1; i < s->count; i++, at++) {
        while (at < trace.count && words[trace.word[at]] != s->address[i])
            at++;
        assert_true(at < trace.count);
    }
    assert_false(unwind_trace(&map, call, call->sp + 8, &cache, &trace));
}

/* The walk of a hook: from its caller on, the same as the full walk finds; at any stack end, and
 * when guesses come from another stack. Returns how many frames it had. */
static __attribute__((noinline, optimize("no-omit-frame-pointer"))) size_t
check_callers(uint64_t high)
{
    struct stack all, some;
    const uint64_t *frame = __builtin_frame_address(0);
    const struct unwind_call call = {
        .fp = frame[0], .ip = frame[1], .sp = (uint64_t)(uintptr_t)(frame + 2)};
    enum unwind_reason reason;
    uint64_t hash = 0;
    all.count = unwind_here(&map, high, &cache, all.address, DEPTH, &all.end);
    for (int i = 0; i < 2; i++) {
        some.count = unwind_callers(&map, &call, high, &cache, &guesses, some.address, DEPTH, &hash,
                                    &reason);
        assert_int_equal(some.count, all.count - 1);
        assert_int_equal(reason, UNWIND_COMPLETE);
        assert_memory_equal(some.address, all.address + 1, some.count * sizeof(uint64_t));
        assert_true(hash == unwind_hash(some.address, some.count));
    }
    check_trace(&call, high, &some);
    some.count =
        unwind_callers(&map, &call, high, &cache, &guesses, some.address, 2, &hash, &reason);
    assert_int_equal(some.count, 2);
    assert_int_equal(reason, UNWIND_DEPTH);
    for (uint64_t end = call.sp + 8; end < call.sp + 512; end += 8) {
        size_t n =
            unwind_callers(&map, &call, end, &cache, &guesses, some.address, DEPTH, &hash, &reason);
        assert_true(n < all.count);
    }
    return all.count;
}

static __attribute__((noinline)) size_t callers_below(int depth, uint64_t high)
{
    volatile char room[40];
    room[0] = (char)depth;
    size_t n = depth ? callers_below(depth - 1, high) : check_callers(high);
    return n + (size_t)(room[0] - depth);
}

static __attribute__((noinline)) size_t callers_wide(int depth, uint64_t high)
{
    volatile char room[200];
    room[0] = (char)depth;
    size_t n = depth ? callers_wide(depth - 1, high) : callers_below(3, high);
    return n + (size_t)(room[0] - depth);
}

static void test_callers(void **state)
{
    (void)state;
    uint64_t high = self_stack_end();
    size_t least = callers_below(0, high);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(callers_below(i, high), least + (size_t)i);
        assert_int_equal(callers_wide(i, high), least + (size_t)i + 4);
    }
}

static __attribute__((noinline)) void realigned(int n, uint64_t high)
{
    _Alignas(64) volatile char fixed[64];
    volatile char *variable = alloca((size_t)n);
    variable[n - 1] = fixed[0] = 1;
    check_here(high);
    variable[0] = fixed[1];
}

static int compare(const void *a, const void *b)
{
    static int once;
    if (!once++)
        realigned(77, self_stack_end());
    return *(const int *)a - *(const int *)b;
}

static void test_calls(void **state)
{
    (void)state;
    int numbers[] = {3, 1, 2};
    check_here(self_stack_end());
    realigned(100, self_stack_end());
    qsort(numbers, 3, sizeof(int), compare);
    assert_int_equal(numbers[0], 1);
}

static void *in_thread(void *arg)
{
    realigned(50, self_stack_end());
    return arg;
}

static void test_thread(void **state)
{
    (void)state;
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
}

static struct stack in_handler, interrupted;

static void on_signal(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)info;
    static struct unwind_cache own;
    struct unwind_regs regs;
    uint64_t high = self_stack_end();
    struct stack *s = &in_handler;
    s->count = unwind_here(&map, high, &own, s->address, DEPTH, &s->end);
    unwind_regs_from_ucontext(&regs, context);
    s = &interrupted;
    s->count = unwind_local(&map, &regs, high, &own, s->address, DEPTH, &s->end);
}

/* What the handler sees below its signal frame is what the interrupted code sees of itself. */
static void test_signal(void **state)
{
    (void)state;
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    size_t at = in_handler.end.interrupted;
    assert_int_equal(in_handler.end.reason, UNWIND_COMPLETE);
    assert_int_equal(interrupted.end.reason, UNWIND_COMPLETE);
    assert_int_equal(interrupted.end.interrupted, 0);
    assert_true(at >= 2);
    assert_int_equal(in_handler.count - at, interrupted.count);
    assert_memory_equal(in_handler.address + at, interrupted.address,
                        interrupted.count * sizeof(uint64_t));
}

static char context_stack[65536];
static ucontext_t home, away;
static struct stack in_context;

static void run_in_context(void)
{
    uint64_t high = (uint64_t)(context_stack + sizeof(context_stack));
    in_context.count = unwind_here(&map, high, &cache, in_context.address, DEPTH, &in_context.end);
}

static void test_context(void **state)
{
    (void)state;
    getcontext(&away);
    away.uc_stack.ss_sp = context_stack;
    away.uc_stack.ss_size = sizeof(context_stack);
    away.uc_link = &home;
    makecontext(&away, run_in_context, 0);
    swapcontext(&home, &away);
    assert_int_equal(in_context.end.reason, UNWIND_COMPLETE);
    assert_int_equal(in_context.count, 2);
}

static void test_depth(void **state)
{
    (void)state;
    struct stack all, some;
    struct unwind_regs regs;
    uint64_t high = self_stack_end();
    unwind_regs_here(&regs);
    all.count = unwind_local(&map, &regs, high, &cache, all.address, DEPTH, &all.end);
    assert_true(all.count > 4);
    for (size_t max = 1; max <= all.count; max++) {
        some.count = unwind_local(&map, &regs, high, &cache, some.address, max, &some.end);
        assert_int_equal(some.count, max);
        assert_memory_equal(some.address, all.address, max * sizeof(uint64_t));
        assert_int_equal(some.end.reason, max < all.count ? UNWIND_DEPTH : UNWIND_COMPLETE);
    }
    assert_int_equal(unwind_local(&map, &regs, high, &cache, some.address, 0, &some.end), 0);
}

/* A stack that ends too early: the walk says which address it missed, and gives what it had. */
static void test_short_stack(void **state)
{
    (void)state;
    struct stack all, some;
    struct unwind_regs regs;
    uint64_t high = self_stack_end();
    unwind_regs_here(&regs);
    uint64_t sp = regs.value[UNWIND_SP];
    all.count = unwind_local(&map, &regs, high, &cache, all.address, DEPTH, &all.end);
    size_t last = 0;
    for (uint64_t end = sp; end < sp + 16384 && end < high; end += 8) {
        some.count = unwind_local(&map, &regs, end, &cache, some.address, DEPTH, &some.end);
        assert_true(some.count >= last && some.count <= all.count);
        assert_memory_equal(some.address, all.address, some.count * sizeof(uint64_t));
        if (some.count < all.count) {
            assert_int_equal(some.end.reason, UNWIND_MEMORY);
            assert_true(some.end.address + 8 > end);
        }
        last = some.count;
    }
    assert_true(last > 2);
}

/* What the cache remembers of a module goes when the map changes. */
static void test_map_change(void **state)
{
    (void)state;
    struct stack s;
    struct unwind_regs regs;
    struct unwind_module mine;
    uint64_t high = self_stack_end();
    unwind_regs_here(&regs);
    assert_true(unwind_map_find(&map, regs.value[UNWIND_IP], &mine));
    s.count = unwind_local(&map, &regs, high, &cache, s.address, DEPTH, &s.end);
    assert_int_equal(s.end.reason, UNWIND_COMPLETE);
    unwind_map_remove(&map, mine.start, mine.end);
    regs.value[UNWIND_FP] = 1; /* no frame pointer either */
    s.count = unwind_local(&map, &regs, high, &cache, s.address, DEPTH, &s.end);
    assert_int_equal(s.end.reason, UNWIND_NO_ROWS);
    assert_int_equal(s.end.address, regs.value[UNWIND_IP]);
    assert_int_equal(s.count, 1);
    unwind_map_add(&map, &mine);
}

int main(void)
{
    void *warm[4];
    backtrace(warm, 4); /* loads libgcc_s, so that it is in the map */
    self_map(&map);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),       cmocka_unit_test(test_callers),
        cmocka_unit_test(test_thread),      cmocka_unit_test(test_signal),
        cmocka_unit_test(test_context),     cmocka_unit_test(test_depth),
        cmocka_unit_test(test_short_stack), cmocka_unit_test(test_map_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
