/*
 * Our own reader of ELF files: header, sections, build-id. Every offset and count is checked
 * against the file's size before use, and bytes are read rather than mapped, so that neither a
 * made-up file nor one cut while open can do harm. Native byte order, 32 and 64 bit.
 */
#ifndef SONDE_SYMBOL_IMAGE_H
#define SONDE_SYMBOL_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define IMAGE_BUILD_ID_MAX 64
#define IMAGE_SECTIONS_MAX (1u << 18)

struct image_section {
    const char *name; /* "" if it has none that can be read */
    uint32_t type, link, info;
    uint64_t flags, address, offset, size, entry_size;
};

struct image {
    int fd;          /* -1: in memory */
    uint8_t *memory; /* owned */
    uint64_t size;
    char *path; /* for messages; below the root */
    bool wide;  /* 64 bit */
    uint16_t machine;
    struct image_section *section;
    size_t sections;
    char *names;
    uint8_t build_id[IMAGE_BUILD_ID_MAX];
    size_t build_id_len; /* 0: none */
};

/* NULL with FAULT_MISSING (no file), FAULT_SYSTEM (not allowed) or FAULT_INPUT (not an ELF file
 * that can be read). */
struct image *image_open(const char *root, const char *path, struct error *err);
/* Takes `fd`. */
struct image *image_from_fd(int fd, const char *path, struct error *err);
/* Takes `data` (from malloc), also on failure. */
struct image *image_from_memory(uint8_t *data, size_t size, const char *label, struct error *err);
void image_free(struct image *image);

/* Exactly `len` bytes from `offset`, or false. */
bool image_read(const struct image *image, uint64_t offset, void *data, size_t len);

/* The first section of that name with bytes in the file, or NULL. */
const struct image_section *image_find(const struct image *image, const char *name);
/* The section that holds a virtual address and is code, or NULL. */
const struct image_section *image_code_at(const struct image *image, uint64_t address);
/* A section's bytes and a NUL after them; NULL if it is missing, empty, over `max` or cut off. The
 * caller frees. */
uint8_t *image_load(const struct image *image, const struct image_section *section, size_t max,
                    size_t *len);

/* Bytes that the compressed debug sections claim to grow to. */
uint64_t image_inflated(const struct image *image);

bool image_is(const struct image *image, const uint8_t *build_id, size_t len);

#endif
