/*
 * The file underneath a recording: a head, then blocks. A block holds whole
 * records, is compressed on its own and carries its own checksum, so that a file
 * that was cut or damaged gives everything up to, and after, the damage.
 *
 *     head   8 bytes  "SONDE\r\n\x1a"
 *            u16 major | u16 minor | u32 zero
 *     block  u32 magic "SBLK" | u32 sequence | u32 stored | u32 raw
 *            u8 packing (0 none, 1 zstd) | u8[3] zero | u32 crc32c of the 20 bytes before and the
 * body body, `stored` bytes
 *
 * All little-endian. The same bytes travel over a socket.
 */
#ifndef SONDE_BLOCK_H
#define SONDE_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define BLOCK_HEAD_SIZE 16
#define BLOCK_HEADER_SIZE 24
#define BLOCK_RAW_MAX ((uint32_t)16 << 20)
#define BLOCK_MAJOR 1
#define BLOCK_MINOR 0

struct block_writer;

/* Takes over fd. Writes the head at once. */
int block_writer_new(int fd, struct block_writer **out, struct error *err);
/* Appends one block with these records; at most BLOCK_RAW_MAX bytes. */
int block_write(struct block_writer *w, const void *records, size_t len, struct error *err);
uint64_t block_bytes_written(const struct block_writer *w);
/* Closes the descriptor; 0 or FAULT_SYSTEM if the last bytes did not reach the disk. */
int block_writer_free(struct block_writer *w, struct error *err);

/* What a reader found wrong, for the report. */
struct block_damage {
    uint64_t blocks_skipped; /* by checksum or by gaps in the sequence */
    uint64_t bytes_skipped;
    uint64_t first_offset; /* where the first damage begins */
    bool cut;              /* the file ends inside a block */
};

struct block_reader;

/* FAULT_INPUT if it is not a recording or of a newer major version. `name` is for messages. */
int block_reader_new(int fd, const char *name, struct block_reader **out, struct error *err);
/* 1 and the next block's records (valid until the next call), 0 at the end, negative on failure. */
int block_read(struct block_reader *r, const uint8_t **records, size_t *len, struct error *err);
/* The file still grows: where it ends inside a block there will be more, so block_read gives 0 and
 * may be called again. Turned off for the last call, when whoever wrote it is done. */
void block_reader_follow(struct block_reader *r, bool on);
const struct block_damage *block_reader_damage(const struct block_reader *r);
uint64_t block_reader_offset(const struct block_reader *r); /* bytes consumed, for progress */
void block_reader_free(struct block_reader *r);

#endif
