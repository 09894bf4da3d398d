/* sonde-truth KIND FILE: work of one kind; FILE gets what is true of it. See truth.h. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "truth/truth.h"

static const struct {
    const char *name;
    void (*run)(FILE *out);
} kinds[] = {
    {"cpu", truth_cpu}, {"wall", truth_wall}, {"heap", truth_heap}, {"calls", truth_calls}};

/* CPU time of the process, ns. */
static uint64_t spent(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000u +
           (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000u;
}

static char buffer[4096]; /* stdio would allocate its own, which is for nobody to see */

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 3 && i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(argv[1], kinds[i].name) != 0)
            continue;
        FILE *out = fopen(argv[2], "w");
        if (!out) {
            dprintf(2, "sonde-truth: cannot write %s\n", argv[2]);
            return 1;
        }
        setvbuf(out, buffer, _IOFBF, sizeof buffer);
        fputs("truth 1\n", out);
        uint64_t before = spent();
        kinds[i].run(out);
        fprintf(out, "spent %llu\n", (unsigned long long)(spent() - before));
        return fclose(out) ? 1 : 0;
    }
    dprintf(2, "usage: sonde-truth cpu|wall|heap|calls FILE\n");
    return 2;
}
