/*
 * faults [PAGES] [UNITS]: touches PAGES new pages, one page fault each, with UNITS of work before
 * each, and prints how many page faults the kernel counted meanwhile.
 */
#include <sys/mman.h>
#include <sys/resource.h>

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
    long before = count_faults();
    touch_pages(area, pages, argument(argc, argv, 2, 0));
    printf("%ld\n", count_faults() - before);
    return 0;
}
