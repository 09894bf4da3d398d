/*
 * Programs whose profile is known, in one: each does work of one kind, measures it itself, and
 * writes down what a profiler should have seen (the format is in docs/VERIFY.md). They are what
 * `sonde verify` runs. Nothing of sonde is in them; libc alone.
 */
#ifndef SONDE_TRUTH_H
#define SONDE_TRUTH_H

#include <stdint.h>
#include <stdio.h>

/* Neither inlined, cloned nor reasoned about, and found by name in a stripped program, too. */
#define KEPT __attribute__((noinline, noclone, noipa, visibility("default")))

/* About a microsecond a unit; the loop is inlined, so it is the caller's own time. */
static inline __attribute__((always_inline)) uint64_t work(uint64_t seed, uint64_t units)
{
    for (uint64_t i = 0; i < units * 600; i++)
        seed = seed * 6364136223846793005u + (seed >> 29) + 1;
    return seed;
}

/* Each does its work and writes its claims. */
void truth_cpu(FILE *out);
void truth_wall(FILE *out);
void truth_heap(FILE *out);
void truth_calls(FILE *out);

#endif
