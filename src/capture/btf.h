/* Where the running kernel keeps fields of its structures, from its own type information. */
#ifndef SONDE_BTF_H
#define SONDE_BTF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct btf_wanted {
    const char *structure;    /* NULL after the last */
    const char *const *names; /* NULL-terminated */
    uint32_t *offsets;        /* in bytes, filled in for each name */
    bool optional;            /* 0 is filled in if there is no such field */
};

/* 0, or -1 if the kernel does not describe itself or has no such field. The kernel takes 5 to 10 ms
 * to hand its description over; so an answer is kept for the boot. */
int btf_kernel_offsets(const struct btf_wanted *wanted);

/* The same on `size` bytes of type information. */
int btf_offsets(const uint8_t *data, size_t size, const struct btf_wanted *wanted);

#endif
