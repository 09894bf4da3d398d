/* T16. altstack: its signal handler runs on its own alternate stack, works there, and checks so. */
#include <signal.h>
#include <unistd.h>

#include "work.h"

#define STACK (32u << 10)

static char alternate[STACK] __attribute__((aligned(16)));
static volatile sig_atomic_t inside, outside;
static volatile uint64_t sink;

static void handle(int number)
{
    (void)number;
    char here;
    uintptr_t at = (uintptr_t)&here, low = (uintptr_t)alternate;
    if (at >= low && at < low + STACK)
        inside = inside + 1;
    else
        outside = outside + 1;
    sink = work(sink, 2000);
}

int main(void)
{
    stack_t stack = {.ss_sp = alternate, .ss_size = STACK}, now;
    struct sigaction on_alternate = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    must(sigaltstack(&stack, NULL) == 0 && sigaction(SIGUSR1, &on_alternate, NULL) == 0,
         "sigaltstack");
    for (int i = 0; i < 100; i++) {
        sink = work(sink, 1000);
        kill(getpid(), SIGUSR1);
    }
    must(sigaltstack(NULL, &now) == 0, "sigaltstack");
    printf("inside %d, outside %d, stack %s\n", inside, outside,
           now.ss_sp == alternate && now.ss_size == STACK ? "unchanged" : "changed");
    return 0;
}
