/* The running kernel: whether addresses of its code that somebody kept mean something here. */
#ifndef SONDE_KERNEL_H
#define SONDE_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

/* Where the running kernel stands, 0 if it does not say. */
uint64_t kernel_text(void);
/* Is this the machine, and its kernel? NULL is nobody's. */
bool kernel_is(const char *release, const char *host);
/* Did this boot last already at that time (ns since 1970)? */
bool kernel_ran(uint64_t time);

#endif
