/* Files that are part of the program; see files.h. */
#include "serve/files.h"

#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "serve/http_internal.h"

static void answer(struct http_request *q, const struct files_entry *f)
{
    char tag[24];
    const char *have = http_header(q, "if-none-match"), *takes = http_header(q, "accept-encoding");
    snprintf(tag, sizeof tag, "\"%016llx\"", (unsigned long long)hash_bytes(f->data, f->len));
    http_reply_header(q, "ETag", tag);
    http_reply_header(q, "Cache-Control", "no-cache");
    if (have && strcmp(have, tag) == 0) {
        http_reply_static(q, 304, NULL, "", 0);
        return;
    }
    if (!f->gzipped || (takes && strstr(takes, "gzip"))) {
        if (f->gzipped)
            http_reply_header(q, "Content-Encoding", "gzip");
        http_reply_static(q, 200, f->type, f->data, f->len);
        return;
    }
    struct text packed = {.data = (char *)f->data, .len = f->len}, plain = TEXT_INIT;
    const char *why;
    int status = inflate_body("gzip", &packed, (size_t)64 << 20, &plain, &why);
    if (status)
        http_reply_error(q, 500, "a file of the page is damaged");
    else
        http_reply_text(q, 200, f->type, &plain);
    text_release(&plain);
}

bool files_answer(struct http_request *q, const struct files_entry *files, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(files[i].path, http_path(q)) == 0) {
            answer(q, &files[i]);
            return true;
        }
    }
    return false;
}
