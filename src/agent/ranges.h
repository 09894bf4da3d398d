/* What is mapped in this process, and which of it is the agent's. */
#ifndef SONDE_AGENT_RANGES_H
#define SONDE_AGENT_RANGES_H

#include <stdbool.h>
#include <stdint.h>

struct range {
    uint64_t start, end;
    bool ours;
};

/* In the order of addresses, as the kernel tells them. False if there is no telling. */
bool ranges_each(void (*each)(struct range r, uint64_t *context), uint64_t *context);

#endif
