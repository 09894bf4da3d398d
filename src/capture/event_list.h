/* Every event that can be named here, for `sonde list`. */
#ifndef SONDE_EVENT_LIST_H
#define SONDE_EVENT_LIST_H

#include <stdbool.h>

enum event_group {
    EVENT_HARDWARE,
    EVENT_CACHE,
    EVENT_SOFTWARE,
    EVENT_PMU,
    EVENT_TRACEPOINT,
    EVENT_PFM
};

struct event_entry {
    enum event_group group;
    const char *name, *alias; /* alias may be NULL */
    const char *what;         /* half a sentence, or "" */
    bool opens;
    const char *why; /* it does not open; or how that is known, where not tried; or "" */
};

/* Calls for each whose name or alias matches the shell pattern (NULL: all), group by group. */
void event_list(const char *pattern, void (*each)(void *context, const struct event_entry *e),
                void *context);
/* Whether libpfm4 is there to be asked. */
bool event_listing_complete(void);

#endif
