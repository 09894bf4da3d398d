/*
 * faults [PAGES] [UNITS|waits]: touches PAGES new pages, one page fault each, with UNITS of work
 * before each, and prints how many page faults the kernel counted meanwhile. With "waits" it says
 * when it is ready, and begins when something is written to it.
 */
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "work.h"

#define PAGE 4096u

KEPT void touch_pages(volatile char *area, uint64_t pages, uint64_t units)
{
    for (uint64_t i = 0; i < pages; i++)
        area[i * PAGE] = (char)work(i, units);
}

static long count_faults(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_minflt + used.ru_majflt;
}

int main(int argc, char **argv)
{
    uint64_t pages = argument(argc, argv, 1, 5000);
    size_t size = pages * PAGE;
    char *area = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(area != MAP_FAILED && madvise(area, size, MADV_NOHUGEPAGE) == 0, "mmap");
    char go;
    if (argc > 2 && !strcmp(argv[2], "waits"))
        must(write(1, "ready\n", 6) == 6 && read(0, &go, 1) == 1, "waits");
    long before = count_faults();
    touch_pages(area, pages, argument(argc, argv, 2, 0));
    printf("%ld\n", count_faults() - before);
    return 0;
}
