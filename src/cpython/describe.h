/* What 3.13 says of its own layout; never leaves the room. */
#ifndef SONDE_CPYTHON_DESCRIBE_H
#define SONDE_CPYTHON_DESCRIBE_H

#include "cpython/cpython.h"

/* Reads _Py_DebugOffsets at the start of _PyRuntime into *layout, which holds its table's row. */
int describe_read(uint64_t runtime, const struct cpython_memory *memory, struct layout *layout);

#endif
