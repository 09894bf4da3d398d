/* Files that are part of the program: the page. */
#ifndef SONDE_SERVE_FILES_H
#define SONDE_SERVE_FILES_H

#include "serve/http.h"

struct files_entry {
    const char *path; /* "/", "/app.js" */
    const char *type;
    const void *data;
    size_t len;
    bool gzipped; /* the data is: sent as it is, or inflated for who cannot take it */
};

/* Answers with the entry of that path, if there is one; with 304 if the client has it already. */
bool files_answer(struct http_request *q, const struct files_entry *files, size_t count);

#endif
