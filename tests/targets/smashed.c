/*
 * T4. smashed [UNITS]: works with a frame pointer that points nowhere, and on a stack whose
 * neighbours may not be read, so that whoever walks the stack meets bad addresses.
 */
#include <sys/mman.h>
#include <ucontext.h>

#include "work.h"

#define STACK (64u << 10)

static ucontext_t home, lonely;
static uint64_t units, result = 1;

/* The asm takes the frame pointer away for a while; it is restored before anybody needs it. */
KEPT uint64_t without_frame(uint64_t seed, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
#if defined(__x86_64__)
        uint64_t n = 600;
        __asm__ volatile("push %%rbp\n\t"
                         "mov $0x123456789abcdef0, %%rbp\n\t"
                         "1: imul %[k], %[s]\n\t"
                         "add $1, %[s]\n\t"
                         "dec %[n]\n\t"
                         "jnz 1b\n\t"
                         "pop %%rbp"
                         : [s] "+r"(seed), [n] "+r"(n)
                         : [k] "r"(6364136223846793005u)
                         : "cc", "memory");
#else
        seed = work(seed, 1);
#endif
    }
    return seed;
}

static void alone(void)
{
    result = without_frame(result, units);
}

int main(int argc, char **argv)
{
    units = argument(argc, argv, 1, 300000) / 2;
    result = without_frame(result, units);
    char *area = mmap(NULL, STACK * 3, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(area != MAP_FAILED && mprotect(area + STACK, STACK, PROT_READ | PROT_WRITE) == 0, "mmap");
    getcontext(&lonely);
    lonely.uc_stack.ss_sp = area + STACK;
    lonely.uc_stack.ss_size = STACK;
    lonely.uc_link = &home;
    makecontext(&lonely, alone, 0);
    must(swapcontext(&home, &lonely) == 0, "swapcontext");
    printf("%016llx\n", (unsigned long long)result);
    return 0;
}
