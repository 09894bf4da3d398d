/* A recording as one page in a file: what `graph --kind page` and `run --html` write. */
#ifndef SONDE_CMD_PAGE_H
#define SONDE_CMD_PAGE_H

#include "base/error.h"
#include "recording/loader.h"

struct page_request {
    const char *recording;
    const char *base; /* another to compare it with, or NULL */
    const char *output, *title;
    struct load_options load;
};

int page_save(const struct page_request *r, struct error *err);

#endif
