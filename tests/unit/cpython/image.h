/* A process's memory made by hand: bytes at an address, with an interpreter in them. */
#ifndef SONDE_TEST_IMAGE_H
#define SONDE_TEST_IMAGE_H

#include "cpython/cpython.h"

#define IMAGE_BASE 0x10000u
#define IMAGE_SIZE 65536u

struct image {
    uint8_t bytes[IMAGE_SIZE];
    struct cpython py;
    struct cpython_memory memory; /* reads bytes; what lies outside cannot be read */
    size_t reads;
    /* Called before each read, to let the process go on. */
    void (*meanwhile)(struct image *image);
};

/* Places in the image. */
enum {
    IMAGE_RUNTIME = 0x11000,
    IMAGE_INTERP = 0x13000,
    IMAGE_THREAD = 0x15000,
    IMAGE_CFRAME = 0x15800,
    IMAGE_FRAME_TYPE = 0x15900,
    IMAGE_CHUNK = 0x16000,
    IMAGE_CODE = 0x1a000,
    IMAGE_NAME = 0x1f000, /* the strs and the line table of all code objects */
    IMAGE_FILE = 0x1f100,
    IMAGE_TABLE = 0x1f200,
};

/* An interpreter of version 3.minor with one thread and no frames. */
void image_init(struct image *image, unsigned minor);
/* The interpreter and its thread, where image->py says that they are. */
void image_fill(struct image *image);
void image_put(struct image *image, uint64_t address, uint64_t word);
uint64_t image_get(const struct image *image, uint64_t address);

/* Where frame number i is put, and that frame with another as its caller. */
uint64_t image_frame_at(unsigned i);
void image_frame(struct image *image, unsigned i, uint64_t back);
/* The outermost one, in the way of its version: flagged, or called by a shim of its own. */
#define IMAGE_LAST_SHIM 9
void image_outermost(struct image *image, unsigned i);
/* The same, on the C stack: a shim. */
void image_shim(struct image *image, unsigned i, uint64_t back);
/* The code object of frame i: "nam\u00e9", at line 7 of "f.py". Its type is the frames' type. */
void image_code(struct image *image, unsigned i);
/* Makes frame i the innermost; or none. */
void image_top(struct image *image, unsigned i);
void image_leave(struct image *image);

#endif
