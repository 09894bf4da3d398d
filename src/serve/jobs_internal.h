/* What the routes of jobs share. */
#ifndef SONDE_SERVE_JOBS_INTERNAL_H
#define SONDE_SERVE_JOBS_INTERNAL_H

#include "base/json.h"
#include "serve/jobs.h"

/* The status that fits a fault of the store's, with what to do where that helps. */
void jobs_refuse(struct http_request *q, const struct error *err);
/* {id} of the path; false if it is none, which has been answered then. */
bool jobs_id(struct http_request *q, uint32_t *id);
/* A number in the query, `otherwise` if there is none; false if it is wrong, answered then. */
bool jobs_number(struct http_request *q, const char *key, uint64_t max, uint64_t otherwise,
                 uint64_t *out);
/* A way into the store; NULL has been answered. jobs_close answers a fault. */
struct store *jobs_store(struct http_request *q, struct jobs *j);
void jobs_close(struct http_request *q, struct jobs *j, struct store *s, int rc,
                const struct error *err);
/* Sends what the writer holds, and releases it. */
void jobs_send(struct http_request *q, int status, struct json *json);

/* An object that is read out of the store: begin, fill `json` from `store`, end with the result. */
struct jobs_reply {
    struct http_request *request;
    struct jobs *jobs;
    struct store *store;
    struct json json;
    struct error error;
};
/* False if there is no store, which has been answered. */
bool jobs_begin(struct jobs_reply *r, struct http_request *q, struct jobs *j);
/* Closes what is open in `json` and sends it, or says what the fault `rc` was. */
void jobs_end(struct jobs_reply *r, int status, int rc);
/* A new job, if there may be one more. */
int jobs_make(struct store *s, struct jobs *j, struct job *job, struct error *err);
/* Stores the batch and answers; releases it. */
void jobs_add(struct http_request *q, struct jobs *j, struct batch *b);

http_handler_fn jobs_live;
http_handler_fn jobs_list, jobs_create, jobs_show, jobs_remove;
http_handler_fn jobs_push, jobs_push_profile, jobs_ingest;
http_handler_fn jobs_profile, jobs_curve, jobs_bench, jobs_recordings, jobs_recording, jobs_compare;
http_handler_fn jobs_pprof, jobs_pprof_index;
http_handler_fn jobs_metrics, jobs_health;

#endif
