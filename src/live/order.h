/* Commands as the page and Redis send them, in JSON, turned into lines of capture/control.h. */
#ifndef SONDE_LIVE_ORDER_H
#define SONDE_LIVE_ORDER_H

#include "base/error.h"
#include "base/text.h"

/* {"command": "start"|"stop"|"snapshot", "what": "cpu"|"heap", "pid": 123}, {"command": "rate",
 * "hz": 499}, {"command": "mark", "text": "..."}, {"command": "status"}. FAULT_INPUT says what is
 * wrong. */
int order_parse(const char *json, size_t len, struct text *line, struct error *err);

#endif
