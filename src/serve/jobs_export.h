/* A job as a profile, in any format that sonde writes. */
#ifndef SONDE_SERVE_JOBS_EXPORT_H
#define SONDE_SERVE_JOBS_EXPORT_H

#include "base/map.h"
#include "base/text.h"
#include "base/vector.h"
#include "serve/jobs.h"

/* How much there was of each row of a job, to tell later what has come since. */
struct jobs_counted {
    struct names rows;
    VECTOR(int64_t) values;
    struct text scratch;
    size_t max; /* rows; more is a fault */
};
/* Of one event (named in the query); release it in every case. */
int jobs_count(struct jobs_counted *n, struct store *s, const struct store_query *query,
               struct error *err);
void jobs_counted_release(struct jobs_counted *n);

/* Answers with the job's stacks, or its functions where no stacks came, in `format`; with `since`,
 * what has come after that. */
void jobs_export_answer(struct http_request *q, struct jobs *j, const struct store_query *query,
                        const char *format, const struct jobs_counted *since);

#endif
