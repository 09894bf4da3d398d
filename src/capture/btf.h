/* Where the running kernel keeps a field of one of its structures, from its own type information.
 */
#ifndef SONDE_BTF_H
#define SONDE_BTF_H

#include <stddef.h>
#include <stdint.h>

/* The byte offsets of `names` (NULL-terminated) in the structure, in that order. 0, or -1 if the
 * kernel does not describe itself or has no such field. */
int btf_kernel_offsets(const char *structure, const char *const *names, uint32_t *offsets);

/* The same on `size` bytes of type information. */
int btf_offsets(const uint8_t *data, size_t size, const char *structure, const char *const *names,
                uint32_t *offsets);

#endif
