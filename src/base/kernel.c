/* The running kernel; see perf_data_kernel.h. */
#include "base/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

uint64_t kernel_text(void)
{
    FILE *f = fopen("/proc/kallsyms", "re");
    char line[256];
    uint64_t found = 0;
    for (int i = 0; f && i < 5000 && !found && fgets(line, sizeof line, f); i++)
        if (strstr(line, " _text\n") || strstr(line, " _stext\n"))
            found = strtoull(line, NULL, 16);
    if (f)
        fclose(f);
    return found;
}

bool kernel_is(const char *release, const char *host)
{
    struct utsname u;
    return release && host && !uname(&u) && !strcmp(u.release, release) &&
           !strcmp(u.nodename, host);
}

bool kernel_ran(uint64_t time)
{
    struct timespec now, up;
    if (clock_gettime(CLOCK_REALTIME, &now) || clock_gettime(CLOCK_BOOTTIME, &up))
        return false;
    return time / 1000000000 >= (uint64_t)(now.tv_sec - up.tv_sec);
}
