/* What is published: tables of the state, as text and as JSON; and answers to commands. All of it
 * takes long and touches nothing but the state. */
#ifndef SONDE_LIVE_TABLES_H
#define SONDE_LIVE_TABLES_H

#include "live/state.h"

struct tables {
    unsigned limit;                             /* rows */
    int32_t pid;                                /* whose memory; 0: all */
    struct state_mark before;                   /* when the last tables were made */
    struct text cpu, cpu_json, heap, heap_json; /* empty where there is nothing */
};

void tables_init(struct tables *t, unsigned limit);
void tables_release(struct tables *t);
/* CPU since the last call; memory as it is now. */
void tables_make(struct tables *t, struct state *s);

struct tables_answer {
    int32_t select;   /* out: the process to show from now on, 0 for all, -1: as before */
    int32_t selected; /* in: which one is shown */
    struct text text; /* out: JSON */
};

/* A message: a process number (0: all) selects, JSON {"command": "select", "pid": N} as well; other
 * commands go to the session's socket, if there is one. */
void tables_order(const char *message, size_t len, struct state *s, const char *control,
                  struct tables_answer *out);

#endif
