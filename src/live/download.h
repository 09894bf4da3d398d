/* The recording so far, as a download in any format that can be written. */
#ifndef SONDE_LIVE_DOWNLOAD_H
#define SONDE_LIVE_DOWNLOAD_H

#include "serve/http.h"

/* Answers with ?format= (sonde if there is none) of the recording at `path`; takes long. */
void download_answer(struct http_request *q, const char *path);
/* "sonde, page, callgrind, … and speedscope" */
void download_names(struct text *out);

#endif
