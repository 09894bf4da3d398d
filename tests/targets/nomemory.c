/* T26. nomemory: every way to ask for too much gives NULL and ENOMEM, and what is there stays. */
#include <sys/resource.h>

#include "work.h"

static void expect_null(const char *what, void *block)
{
    printf("%s: %s, %s\n", what, block ? "a block" : "NULL", errno == ENOMEM ? "ENOMEM" : "?");
    errno = 0;
}

int main(void)
{
    struct rlimit limit = {1ull << 30, 1ull << 30};
    must(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
    volatile size_t huge = (size_t)1 << 40, half = (size_t)1 << 63;
    char *volatile kept = malloc(100);
    char *same;
    memset(kept, 7, 100);
    errno = 0;
    expect_null("malloc", malloc(huge));
    expect_null("calloc", calloc(huge, 16));
    expect_null("calloc that overflows", calloc(half, 4));
    expect_null("realloc", realloc(kept, huge));
    expect_null("reallocarray that overflows", reallocarray(kept, half, 4));
    expect_null("aligned_alloc", aligned_alloc(4096, huge));
    same = realloc(kept, 200);
    printf("kept: %d\n", same && same[99] == 7);
    free(same);
    return work(1, 50000) == 0;
}
