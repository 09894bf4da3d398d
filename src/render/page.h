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

/* The first part of a document has been written. */
typedef int page_turn(void *context);

struct page_options {
    const char *title; /* NULL: what ran */
    bool live;         /* the recording goes on: curves as they are, no tables of the heap */
    bool sources;      /* put source text into it, where the files can be read here */
};

struct page;

/* Adds to a finished profile what the page tells beside what was recorded: once, before page_new or
 * page_html. */
void page_prepare(struct profile *p);

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
/* The same in two parts: what the first view needs, then the rest. */
int page_write_parts(struct page *g, page_sink *sink, page_turn *turn, void *context);
/* What is new since the last page_delta (or page_new). Its sequence is one higher. */
int page_delta(struct page *g, page_sink *sink, void *context);
uint64_t page_sequence(const struct page *g);

/* A part of the timeline that somebody looks at. */
struct page_window {
    uint64_t from, to;       /* ns since the recording's start */
    uint32_t pixels;         /* that it is drawn with; 0: no spans stand together */
    const uint32_t *threads; /* by number; none: all */
    size_t thread_count;
};
/* "3.7.12" -> numbers of threads; how many there are, which may be more than there is room for. */
size_t page_threads(const char *text, uint32_t *out, size_t room);
/* The spans that it shows, as a document of their columns; symbols are those of the last delta. */
int page_spans(struct page *g, const struct page_window *w, page_sink *sink, void *context);

/* A file that is complete in itself; `base`, if not NULL, is what it is compared with. */
int page_html(const struct profile *p, const struct profile *base, const struct page_options *o,
              page_sink *sink, void *context);

/* A file of the served page, or NULL: "/" of a session, "/jobs" of a server of jobs, "/page.js",
 * "/page.css". */
struct page_asset {
    const char *path, *type, *data;
    size_t len;
};
const struct page_asset *page_asset(const char *path);

#endif
