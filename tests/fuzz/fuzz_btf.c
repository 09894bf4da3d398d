/* The kernel's type information: what is found lies within a structure that has a name. */
#include <stdint.h>
#include <stdlib.h>

#include "capture/btf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"pid", "tgid", NULL};
    uint32_t offsets[2] = {0};
    struct btf_wanted wanted[] = {{"task_struct", names, offsets}, {0}};
    if (btf_offsets(data, size, wanted) == 0 &&
        (offsets[0] > UINT32_MAX / 8 || offsets[1] > UINT32_MAX / 8))
        abort();
    return 0;
}
