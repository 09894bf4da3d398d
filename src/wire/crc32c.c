/* CRC-32C: SSE4.2 instruction or a table; see crc32c.h. */
#include "wire/crc32c.h"

#include <string.h>

#define POLYNOMIAL 0x82f63b78u

static uint32_t by_table(uint32_t crc, const uint8_t *p, size_t len)
{
    static uint32_t table[256];
    if (!table[1]) {
        /* Idempotent, so that two threads may fill it at once. */
        for (uint32_t i = 255; i < 256; i--) {
            uint32_t c = i;
            for (int k = 0; k < 8; k++)
                c = c & 1 ? (c >> 1) ^ POLYNOMIAL : c >> 1;
            table[i] = c;
        }
    }
    while (len--)
        crc = table[(crc ^ *p++) & 0xff] ^ (crc >> 8);
    return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const uint8_t *p,
                                                                 size_t len)
{
    uint64_t c = crc;
    for (; len >= 8; len -= 8, p += 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        c = __builtin_ia32_crc32di(c, w);
    }
    while (len--)
        c = __builtin_ia32_crc32qi((uint32_t)c, *p++);
    return (uint32_t)c;
}

static int has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2");
}
#else
static uint32_t by_instruction(uint32_t crc, const uint8_t *p, size_t len)
{
    return by_table(crc, p, len);
}

static int has_instruction(void)
{
    return 0;
}
#endif

uint32_t crc32c(uint32_t crc, const void *data, size_t len)
{
    return ~(has_instruction() ? by_instruction(~crc, data, len) : by_table(~crc, data, len));
}
