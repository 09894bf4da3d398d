/* What runpath.c works in. */
#include "../../targets/work.h"

uint64_t hidden_work(uint64_t units);

uint64_t hidden_work(uint64_t units)
{
    return work(1, units);
}
