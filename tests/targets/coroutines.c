/*
 * T25. coroutines [COUNT]: two coroutines on stacks of their own take turns, each working 50 %, and
 * one long jump out of ten frames a turn. Turns differ in length, so as not to keep step with a
 * clock.
 */
#include <setjmp.h>
#include <ucontext.h>

#include "work.h"

static ucontext_t home, ping, pong;
static char stacks[2][64 << 10] __attribute__((aligned(16)));
static jmp_buf out;
static uint64_t count, turn, results[2];

KEPT void leave(int depth)
{
    if (depth == 0)
        longjmp(out, 1);
    leave(depth - 1);
    results[0]++;
}

static uint64_t length(void)
{
    return 300 + turn * 137 % 400;
}

KEPT uint64_t in_ping(uint64_t seed)
{
    return work(seed, length());
}

KEPT uint64_t in_pong(uint64_t seed)
{
    return work(seed, length());
}

KEPT void jump_out(void)
{
    if (!setjmp(out))
        leave(10);
}

static void run_ping(void)
{
    for (turn = 0; turn < count; turn++) {
        results[0] = in_ping(results[0]);
        jump_out();
        swapcontext(&ping, &pong);
    }
}

static void run_pong(void)
{
    for (;;) {
        results[1] = in_pong(results[1]);
        swapcontext(&pong, &ping);
    }
}

static void prepare(ucontext_t *context, char *stack, void (*entry)(void))
{
    must(getcontext(context) == 0, "getcontext");
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = sizeof stacks[0];
    context->uc_link = &home;
    makecontext(context, entry, 0);
}

int main(int argc, char **argv)
{
    count = argument(argc, argv, 1, 500);
    prepare(&ping, stacks[0], run_ping);
    prepare(&pong, stacks[1], run_pong);
    must(swapcontext(&home, &ping) == 0, "swapcontext");
    printf("%016llx %016llx\n", (unsigned long long)results[0], (unsigned long long)results[1]);
    return 0;
}
