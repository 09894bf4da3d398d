/* A view on standard output, or on another descriptor: for people, as JSON, or its main table as
 * CSV. */
#ifndef SONDE_PRINTING_H
#define SONDE_PRINTING_H

#include <stdbool.h>

#include "analyze/view.h"
#include "base/error.h"

int view_print(const struct view *v, bool as_json, bool as_csv, struct error *err);
int view_print_to(int fd, const struct view *v, bool as_json, bool as_csv, struct error *err);

#endif
