/* x86-64's half of arch.h; include that one. */
#ifndef SONDE_AGENT_ARCH_X86_64_H
#define SONDE_AGENT_ARCH_X86_64_H

#include <stdint.h>

/* mov $number, %eax (5 bytes); syscall (2 bytes) */
#define arch_code_before 7

static inline long raw_syscall(long n, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static inline uint64_t arch_ticks(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

static inline uint64_t arch_thread_pointer(void)
{
    uint64_t self;
    __asm__("movq %%fs:0, %0" : "=r"(self));
    return self;
}

#endif
