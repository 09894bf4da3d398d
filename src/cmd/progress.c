/* How far it is; see progress.h. */
#include "cmd/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

#define AFTER 700000000ull
#define EVERY 100000000ull

void progress_begin(struct progress *p, const char *doing)
{
    *p = (struct progress){.doing = doing, .began = clock_now(), .wanted = isatty(STDERR_FILENO)};
}

void progress_show(void *context, uint64_t done, uint64_t size)
{
    struct progress *p = context;
    uint64_t now = p->wanted ? clock_now() : 0;
    if (!p->wanted || now - p->began < AFTER || now - p->shown < EVERY)
        return;
    p->shown = now;
    p->on = true;
    if (size)
        fprintf(stderr, "\r%s %3.0f %%\033[K", p->doing, 100.0 * (double)done / (double)size);
    else
        fprintf(stderr, "\r%s %.0f MB\033[K", p->doing, (double)done / 1e6);
}

void progress_end(struct progress *p)
{
    if (p->on)
        fputs("\r\033[K", stderr);
    p->on = false;
}
