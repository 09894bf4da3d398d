/* See cpus.h. */
#include "capture/cpus.h"

#include <stdlib.h>

#include "base/io.h"
#include "base/vector.h"

#define CPU_MAX 65536

/* The kernel's text is like "0-3,8,10-11". */
void cpus_online(struct cpus *out)
{
    char *text = NULL;
    if (io_slurp("/sys/devices/system/cpu/online", 1 << 16, &text, NULL, NULL)) {
        *vector_push(out) = 0;
        return;
    }
    for (char *s = text; *s >= '0' && *s <= '9';) {
        long first = strtol(s, &s, 10), last = first;
        if (*s == '-')
            last = strtol(s + 1, &s, 10);
        for (long cpu = first; cpu <= last && cpu < CPU_MAX; cpu++)
            *vector_push(out) = (int)cpu;
        if (*s == ',')
            s++;
    }
    free(text);
}
