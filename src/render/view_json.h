/*
 * A view as JSON: what `--json` prints, the HTTP API sends and the page reads.
 *
 *     {"view": "report", "title": ..., "sections": {"functions": {"kind": "table", "title": ...,
 *      "columns": [{"id": "self", "heading": "self", "kind": "ns"}, ...],
 *      "rows": [{"self": 1000, ...}], "omitted": 0}, ...}}
 *
 * Numbers are raw: ns, bytes, counts, percentages from 0 to 100; null is "not known".
 * Rows of trees carry their "depth"; a row that stands for others has "rest": true.
 */
#ifndef SONDE_VIEW_JSON_H
#define SONDE_VIEW_JSON_H

#include "analyze/view.h"
#include "base/json.h"

void view_json(const struct view *v, struct json *j);

#endif
