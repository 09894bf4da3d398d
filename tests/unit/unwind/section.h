/* Writes a frame section byte by byte, for tests of its reader. */
#ifndef SONDE_TEST_SECTION_H
#define SONDE_TEST_SECTION_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/rows.h"

#define SECTION_VADDR 0x100000ull
#define SECTION_LOW 0x1000ull /* of the module the section belongs to */
#define SECTION_HIGH 0x200000ull

struct section {
    uint8_t data[4096];
    size_t size;
    size_t entry; /* where the length of the entry being written stands */
    int wide;     /* write entries in the 64-bit format */
    int debug;    /* as .debug_frame */
};

void section_bytes(struct section *s, const void *bytes, size_t size);
void section_number(struct section *s, uint64_t value, size_t size);

/* A CIE (zR, pcrel sdata4, CFA = rsp + 8, RA at CFA - 8) with instructions; its offset. */
size_t section_cie(struct section *s, uint8_t version, const void *code, size_t size);
/* An FDE of that CIE. */
void section_fde(struct section *s, size_t cie, uint64_t start, uint32_t length, const void *code,
                 size_t size);
struct rows_image section_image(const struct section *s);

#endif
