/* The entries of a frame section: finds the FDEs, reads their CIEs, and puts them in order. */
#ifndef SONDE_UNWIND_ENTRIES_H
#define SONDE_UNWIND_ENTRIES_H

#include "unwind/cfi.h"
#include "unwind/pages.h"
#include "unwind/rows.h"

/* One FDE. */
struct entry {
    uint32_t start, end; /* vaddr - image->low */
    uint32_t code;       /* offset of its instructions in the section ... */
    uint32_t code_end;   /* ... and where they end */
    uint32_t cie;        /* offset of its CIE */
};

#define CIE_CACHE 64

struct entries {
    const struct rows_image *image;
    struct pages pages; /* struct entry, count of them */
    uint32_t count;
    uint32_t dropped;
    uint64_t budget; /* see struct cfi */
    struct cfi cfi;
    struct {
        uint32_t offset; /* + 1; 0 is free */
        struct cie cie;
    } cache[CIE_CACHE];
};

/* The CIE at `offset`, from the cache if it was read lately; NULL if it is none. */
const struct cie *entries_cie(struct entries *e, uint64_t offset);

/* Reads all FDEs, sorted by start; those that begin at the same address in the order found. */
int entries_read(struct entries *e);

static inline const struct entry *entries_at(const struct entries *e, uint32_t index)
{
    return (const struct entry *)e->pages.data + index;
}

#endif
