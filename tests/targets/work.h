/*
 * Work of a known amount, for programs whose profile is known beforehand. A unit
 * is the same chain of dependent multiplications everywhere (about 1 µs), so that
 * time is in proportion to units on any machine. The loop is inlined: a sample
 * falls into the function that asked for the work, not into one shared by all.
 */
#ifndef SONDE_TARGETS_WORK_H
#define SONDE_TARGETS_WORK_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Neither inlined, cloned nor reasoned about: the function is there under its own name. */
#define KEPT __attribute__((noinline, noclone, noipa))

static inline __attribute__((always_inline)) uint64_t work(uint64_t seed, uint64_t units)
{
    for (uint64_t i = 0; i < units * 600; i++)
        seed = seed * 6364136223846793005u + (seed >> 29) + 1;
    return seed;
}

/* Argument n as a number, or `otherwise` if there are fewer. */
static inline uint64_t argument(int argc, char **argv, int n, uint64_t otherwise)
{
    return argc > n ? strtoull(argv[n], NULL, 10) : otherwise;
}

/* Ends the program with status 99 and the reason: the test's own set-up failed. */
static inline void must(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(99);
}

#endif
