/* Reads one or two recordings and writes the page; see page.h. */
#include "cmd/page.h"

#include "cmd/picture.h"
#include "cmd/reading.h"

static int read_whole(const char *path, struct load_options load, struct profile *p,
                      struct error *err)
{
    load.keep_samples = load.keep_spans = true;
    int result = reading_open(path, NULL, &load, p, err);
    if (!result)
        page_prepare(p);
    return result;
}

int page_save(const struct page_request *r, struct error *err)
{
    struct profile profile, base;
    profile_init(&profile);
    profile_init(&base);
    int result = read_whole(r->recording, r->load, &profile, err);
    if (!result && r->base)
        result = read_whole(r->base, r->load, &base, err);
    if (!result)
        result =
            picture_write_page(r->output, &profile, r->base ? &base : NULL,
                               &(struct page_options){.title = r->title, .sources = true}, err);
    profile_release(&profile);
    profile_release(&base);
    return result;
}
