/* Byte order and constants shared by the block writer and reader. */
#ifndef SONDE_BLOCK_INTERNAL_H
#define SONDE_BLOCK_INTERNAL_H

#include <stdint.h>

#define BLOCK_MAGIC_HEAD                                                                           \
    {                                                                                              \
        'S', 'O', 'N', 'D', 'E', '\r', '\n', 0x1a                                                  \
    }
#define BLOCK_MAGIC 0x4b4c4253u /* "SBLK" */

enum packing { PACKING_NONE = 0, PACKING_ZSTD = 1 };

static inline void put_u16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static inline void put_u32(uint8_t *p, uint32_t v)
{
    put_u16(p, (uint16_t)v);
    put_u16(p + 2, (uint16_t)(v >> 16));
}

static inline uint16_t get_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t get_u32(const uint8_t *p)
{
    return get_u16(p) | (uint32_t)get_u16(p + 2) << 16;
}

#endif
