/* See beside.h. */
#include "capture/beside.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int beside_find(const char *built, const char *name, char *out, size_t size, struct error *err)
{
    const char *const places[] = {built, "lib/sonde", "lib/x86_64-linux-gnu/sonde", "lib64/sonde"};
    char self[PATH_MAX], path[PATH_MAX + 128];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        return error_errno(err, FAULT_SYSTEM, "cannot tell where sonde itself is");
    self[n] = 0;
    *strrchr(self, '/') = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%s/../%s/%s", self, places[i], name);
        char *real = access(path, R_OK) == 0 ? realpath(path, NULL) : NULL;
        bool fits = real && strlen(real) < size;
        if (fits)
            snprintf(out, size, "%s", real);
        free(real);
        if (fits)
            return 0;
    }
    return error_set(err, FAULT_SYSTEM, "%s, which sonde needs for this, is not beside it", name);
}
