/* This process's own modules, and the stack of the calling thread. */
#ifndef SONDE_TEST_SELF_H
#define SONDE_TEST_SELF_H

#include <stdint.h>

#include "unwind/map.h"

void self_map(struct unwind_map *map);
uint64_t self_stack_end(void);

#endif
