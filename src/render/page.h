/*
 * The page: one document of data that the browser computes every view from, and the file
 * that holds page and document together. docs/PAGE.md draws the document. A file is written at once
 * (page_html); a server keeps a struct page beside a profile that is still being fed, sends
 * the whole document to who arrives and deltas to who is there.
 *
 * Owned by one thread at a time.
 */
#ifndef SONDE_PAGE_H
#define SONDE_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

/* Receives pieces in order; what is not 0 ends the writing and is returned. */
typedef int page_sink(void *context, const char *data, size_t len);

struct page_options {
    const char *title; /* NULL: what ran */
    bool live;         /* the recording goes on: curves as they are, no tables of the heap */
};

struct page;

/* The profile must outlive the page; samples (load_options.keep_samples) give it times. */
struct page *page_new(const struct profile *p, const struct page_options *o);
void page_free(struct page *g);

/*
 * Takes in what a profile has got since page_new or the last update: counts all of
 * profile.samples, which the caller therefore empties (samples_release) after each call and after
 * page_new. The next delta tells of it.
 */
void page_update(struct page *g);
/* The whole document, as of the last page_update. Its sequence is that of the last delta: make one
 * after each update, and who got the whole goes on with the next. */
int page_write(struct page *g, page_sink *sink, void *context);
/* What is new since the last page_delta (or page_new). Its sequence is one higher. */
int page_delta(struct page *g, page_sink *sink, void *context);
uint64_t page_sequence(const struct page *g);

/* A file that is complete in itself; `base`, if not NULL, is what it is compared with. */
int page_html(const struct profile *p, const struct profile *base, const struct page_options *o,
              page_sink *sink, void *context);

/* A file of the served page, or NULL: "/", "/page.js", "/page.css". */
struct page_asset {
    const char *path, *type, *data;
    size_t len;
};
const struct page_asset *page_asset(const char *path);

#endif
