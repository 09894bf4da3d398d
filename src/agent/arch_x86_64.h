/* x86-64's half of arch.h; include that one. */
#ifndef SONDE_AGENT_ARCH_X86_64_H
#define SONDE_AGENT_ARCH_X86_64_H

#include <emmintrin.h>
#include <stdint.h>

/* mov $number, %eax (5 bytes); syscall (2 bytes) */
#define arch_code_before 7
#define arch_code_after 2

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

static inline uint32_t arch_keys_equal(const uint16_t *keys, uint16_t key)
{
    __m128i all = _mm_load_si128((const __m128i *)keys);
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi16(all, _mm_set1_epi16((short)key)));
}

#endif
