/* Reading files, with progress and names; see reading.h. */
#include "cmd/reading.h"

#include <stdio.h>

#include "cmd/progress.h"
#include "symbol/profile.h"

/* Recordings of our own were given names in full when they were finished, or were meant to have
 * none. */
static int add_names(struct profile *p, struct error *err)
{
    struct symbol_summary summary;
    struct progress progress;
    struct symbol_options how = {.progress = progress_show, .context = &progress};
    bool bare = false;
    if (p->complete && !profile_meta_get(p, "imported_from"))
        return 0;
    symbol_demangle_profile(p);
    for (size_t i = 0; i < p->frames.len && !bare; i++)
        bare = !p->frames.data[i].location_count && p->frames.data[i].address;
    if (!bare)
        return 0;
    progress_begin(&progress, "looking up names");
    int rc = symbol_profile(p, NULL, false, &how, &summary, err);
    progress_end(&progress);
    return rc;
}

/* What is missing may be what is looked for, so nobody should have to open a report to hear of it.
 */
static void tell_damage(const struct profile *p, size_t from)
{
    for (size_t i = from; i < p->notes.len; i++) {
        struct text t = TEXT_INIT;
        text_add_printable(&t, profile_text(p, p->notes.data[i].text));
        if (p->notes.data[i].damage)
            fprintf(stderr, "sonde: %s\n", t.data);
        text_release(&t);
    }
}

int reading_open(const char *path, const struct format *format, const struct load_options *options,
                 struct profile *p, struct error *err)
{
    struct progress progress;
    struct load_options lo = *options;
    size_t before = p->notes.len;
    progress_begin(&progress, "reading");
    lo.progress = progress_show;
    lo.context = &progress;
    int rc = format ? profile_open_as(format, path, &lo, p, err) : profile_open(path, &lo, p, err);
    progress_end(&progress);
    if (!rc)
        tell_damage(p, before);
    return rc ? rc : add_names(p, err);
}
