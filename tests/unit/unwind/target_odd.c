/*
 * Does, between two SIGSTOPs, what is hard to unwind: lazily bound PLT calls, realigned frames,
 * alloca, signals on both stacks, the vdso, longjmp, contexts, calls that never return. Run step by
 * step by test_steps.
 */
#include <alloca.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static volatile int sink;
static jmp_buf escape;
static ucontext_t main_context, other_context;

static __attribute__((noinline)) void touch(void *p, int n)
{
    memset(p, n, (size_t)n);
    sink += ((char *)p)[n - 1];
}

/* Aligned more than the ABI gives, and of unknown size: the frame is found through a saved
 * argument pointer. */
static __attribute__((noinline)) void realigned(int n)
{
    _Alignas(64) char fixed[64];
    char *variable = alloca((size_t)n);
    touch(fixed, 64);
    touch(variable, n);
    sink += fixed[n % 64];
}

static __attribute__((noinline)) void sized(int n)
{
    char *variable = alloca((size_t)n);
    touch(variable, n);
}

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
    (void)info;
    (void)context;
    sized(sig + 20);
}

static void signals(void)
{
    static char alternate[65536];
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate)};
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    action.sa_flags |= SA_ONSTACK;
    sigaction(SIGUSR2, &action, NULL);
    raise(SIGUSR1);
    raise(SIGUSR2);
}

static __attribute__((noinline, noreturn)) void leave(void)
{
    longjmp(escape, 1);
}

/* The last instruction is the call: its return address belongs to what follows. */
static __attribute__((noinline)) void last_call(int n)
{
    sized(n);
    leave();
}

static void in_context(void)
{
    realigned(50);
    swapcontext(&other_context, &main_context);
    sized(60);
}

static void contexts(void)
{
    static char stack[65536];
    getcontext(&other_context);
    other_context.uc_stack.ss_sp = stack;
    other_context.uc_stack.ss_size = sizeof(stack);
    other_context.uc_link = &main_context;
    makecontext(&other_context, in_context, 0);
    swapcontext(&main_context, &other_context);
    swapcontext(&main_context, &other_context);
}

static void *in_thread(void *arg)
{
    sized(70);
    return arg;
}

int main(void)
{
    int numbers[] = {5, 2, 9, 1, 7};
    char text[64];
    struct timespec now;
    pthread_t thread;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    raise(SIGSTOP);
    realigned(100);
    sized(200);
    qsort(numbers, 5, sizeof(int), compare);
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(text, sizeof(text), "%g %d", sin((double)now.tv_nsec), numbers[2]);
    signals();
    if (!setjmp(escape))
        last_call(30);
    contexts();
    pthread_create(&thread, NULL, in_thread, text);
    pthread_join(thread, NULL);
    raise(SIGSTOP);
    return 0;
}
