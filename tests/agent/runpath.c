/* runpath: asks a library to load another by its bare name, which only the library's own search
 * path can find, then works inside it. */
#include <stdint.h>
#include <stdio.h>

uint64_t outer_work(uint64_t units);

int main(void)
{
    printf("%016llx\n", (unsigned long long)outer_work(300000));
    return 0;
}
