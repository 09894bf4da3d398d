/* Calls that are counted: built with -finstrument-functions, so that the compiler tells of each. */
#include "truth/truth.h"

#define OUTER 2000

void truth_outer(uint64_t *seed);
void truth_inner(uint64_t *seed);
uint64_t truth_recurses(uint64_t n);

KEPT void truth_inner(uint64_t *seed)
{
    *seed = work(*seed, 2);
}

KEPT void truth_outer(uint64_t *seed)
{
    for (int i = 0; i < 20; i++)
        truth_inner(seed);
}

KEPT uint64_t truth_recurses(uint64_t n)
{
    return n ? n + truth_recurses(n - 1) : 0;
}

void truth_calls(FILE *out)
{
    uint64_t seed = 1;
    for (int i = 0; i < OUTER; i++)
        truth_outer(&seed);
    for (int i = 0; i < OUTER; i++)
        seed += truth_recurses(9);
    fputs("kind calls\nevent calls\nbound 0.1%\n", out);
    fprintf(out, "count truth_outer %d\n", OUTER);
    fprintf(out, "count truth_inner %d\n", OUTER * 20);
    fprintf(out, "count truth_recurses %d\n", OUTER * 10);
    fprintf(out, "# %016llx\n", (unsigned long long)seed);
}
