/* A job as a profile: stacks that were added, in any format that sonde writes. */
#ifndef SONDE_SERVE_JOBS_EXPORT_H
#define SONDE_SERVE_JOBS_EXPORT_H

#include "serve/jobs.h"

/* Answers with the job's stacks, or its functions where no stacks came, in `format`. */
void jobs_export_answer(struct http_request *q, struct jobs *j, const struct store_query *query,
                        const char *format);

#endif
