/* CRC-32C (Castagnoli), as iSCSI and ext4 use it; by instruction where the CPU has it. */
#ifndef SONDE_CRC32C_H
#define SONDE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* `crc` is 0 at first, then the result of the call before: parts may be fed one by one. */
uint32_t crc32c(uint32_t crc, const void *data, size_t len);

#endif
