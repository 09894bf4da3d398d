/* x86-64's half of arch.h; include that one. */
#ifndef SONDE_AGENT_ARCH_X86_64_H
#define SONDE_AGENT_ARCH_X86_64_H

#include <emmintrin.h>
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

static inline uint32_t arch_bits_of(__m128i first, __m128i second)
{
    __m128i words = _mm_packs_epi32(first, second);
    return (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(words, _mm_setzero_si128()));
}

/* Pairs of words, their low halves together and their high ones. */
static inline __m128i arch_halves(__m128i a, __m128i b, int high)
{
    __m128 x = _mm_castsi128_ps(a), y = _mm_castsi128_ps(b);
    return _mm_castps_si128(high ? _mm_shuffle_ps(x, y, 0xdd) : _mm_shuffle_ps(x, y, 0x88));
}

static inline void arch_line_look(const uint64_t *line, uint32_t key, uint32_t mask, uint32_t *same,
                                  uint32_t *empty)
{
    const __m128i *at = (const __m128i *)line;
    __m128i a = _mm_load_si128(at), b = _mm_load_si128(at + 1);
    __m128i c = _mm_load_si128(at + 2), d = _mm_load_si128(at + 3);
    __m128i k = _mm_set1_epi32((int)key), m = _mm_set1_epi32((int)mask), none = _mm_setzero_si128();
    __m128i first = _mm_cmpeq_epi32(_mm_and_si128(arch_halves(a, b, 0), m), k);
    __m128i second = _mm_cmpeq_epi32(_mm_and_si128(arch_halves(c, d, 0), m), k);
    *empty = arch_bits_of(_mm_cmpeq_epi32(arch_halves(a, b, 1), none),
                          _mm_cmpeq_epi32(arch_halves(c, d, 1), none));
    *same = arch_bits_of(first, second) & ~*empty;
}

#endif
