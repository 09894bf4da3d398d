/* Reading files, with progress and names; see reading.h. */
#include "cmd/reading.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "symbol/profile.h"

#define PROGRESS_AFTER 700000000ull
#define PROGRESS_EVERY 100000000ull

struct progress {
    uint64_t began, shown;
    bool on;
};

static void progress_show(void *context, uint64_t done, uint64_t size)
{
    struct progress *pr = context;
    uint64_t now = clock_now();
    if (now - pr->began < PROGRESS_AFTER || now - pr->shown < PROGRESS_EVERY)
        return;
    pr->shown = now;
    pr->on = true;
    if (size)
        fprintf(stderr, "\rreading %3.0f %%", 100.0 * (double)done / (double)size);
    else
        fprintf(stderr, "\rreading %.0f MB", (double)done / 1e6);
}

/* Recordings of our own were given names when they were made, or were meant to have none. */
static int add_names(struct profile *p, struct error *err)
{
    struct symbol_summary summary;
    struct symbol_options how = {0};
    bool bare = false;
    if (!profile_meta_get(p, "imported_from"))
        return 0;
    for (size_t i = 0; i < p->frames.len && !bare; i++)
        bare = !p->frames.data[i].location_count && p->frames.data[i].address;
    return bare ? symbol_profile(p, NULL, false, &how, &summary, err) : 0;
}

int reading_open(const char *path, const struct format *format, const struct load_options *options,
                 struct profile *p, struct error *err)
{
    struct progress pr = {.began = clock_now()};
    struct load_options lo = *options;
    if (isatty(STDERR_FILENO)) {
        lo.progress = progress_show;
        lo.context = &pr;
    }
    int rc = format ? profile_open_as(format, path, &lo, p, err) : profile_open(path, &lo, p, err);
    if (pr.on)
        fputs("\r\033[K", stderr);
    return rc ? rc : add_names(p, err);
}
