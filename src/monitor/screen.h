/* The monitor on a terminal that can be written on anywhere. */
#ifndef SONDE_WATCH_SCREEN_H
#define SONDE_WATCH_SCREEN_H

#include <stdio.h>

#include "base/error.h"
#include "monitor/listing.h"

struct screen_options {
    struct listing_choice rows;
    uint64_t interval; /* ns */
    FILE *out, *in;    /* the terminal */
    /* Called after each look; true ends the screen. May be NULL. */
    bool (*looked)(void *context, struct watch *w);
    void *context;
};

/* Until the user leaves. FAULT_SYSTEM if the terminal is not one. */
int screen_run(struct watch *w, const struct screen_options *options, struct error *err);

#endif
