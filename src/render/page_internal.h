/* What the page's writers share: the state of a document, and its columns. */
#ifndef SONDE_PAGE_INTERNAL_H
#define SONDE_PAGE_INTERNAL_H

#include "analyze/lexicon.h"
#include "analyze/spans.h"
#include "analyze/timeline.h"
#include "base/json.h"
#include "base/text.h"
#include "render/page.h"

/* How the numbers of a column become bytes: LEB128 of the number, of its zigzag, or of the zigzag
 * of its difference to the row before. */
enum column_coding { COLUMN_PLAIN, COLUMN_SIGNED, COLUMN_DELTA };

struct column {
    const char *name;
    enum column_coding coding;
    bool later; /* not needed for the first view: in a file it stands in a part of its own */
    uint64_t rows, last;
    struct text bytes;
};

#define COLUMNS_MAX 40

struct columns {
    struct column all[COLUMNS_MAX];
    size_t len;
};

struct column *column_add(struct columns *c, const char *name, enum column_coding coding);
void column_put(struct column *c, uint64_t value); /* of signed ones: as int64_t */
void columns_json(const struct columns *c, struct json *j);
int columns_write(const struct columns *c, bool later, page_sink *sink, void *context);
void columns_release(struct columns *c);

struct sent_cell {
    uint64_t count, value;
};

/* What a reader of all documents so far has. */
struct page_mark {
    uint64_t sequence;
    size_t strings, modules, symbols, stacks;
    VECTOR(struct sent_cell) cells; /* by cell of the profile */
    VECTOR(uint64_t) series;        /* by series: points */
    struct timeline fresh;          /* rows since */
};

struct page {
    const struct profile *profile;
    struct page_options options;
    struct lexicon lexicon;
    struct timeline timeline;
    struct spans spans;
    struct names strings;     /* of the document */
    VECTOR(uint32_t) changed; /* frames that are new or got names since the last delta */
    struct page_mark mark;
    bool whole;      /* being written: all of it, not what is new */
    page_turn *turn; /* being written in two parts */
};

/* The head's parts. */
void page_facts(struct page *g, struct json *j);
void page_tables(struct page *g, struct json *j);
void page_sources(struct page *g, struct json *j);
void page_curves(struct page *g, struct json *j, struct columns *c);
void page_put_spans(struct page *g, struct json *j, struct columns *c);
/* Magic, head and columns; `turn` (or NULL) is called before those that come later. */
int page_put_document(struct json *head, const struct columns *c, page_sink *sink, page_turn *turn,
                      void *context);
uint32_t page_string(struct page *g, const char *text);

#endif
